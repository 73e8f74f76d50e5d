// roofcast validate serving: predictions beside measured serving runs.

#include <cmath>
#include <cstdio>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/options.h"
#include "reports/table.h"
#include "sim/plan/measured/measured_requests.h"
#include "sim/plan/measured/published_runs.h"
#include "sim/plan/measured/serving_accuracy.h"

namespace roofcast {
namespace po = boost::program_options;
namespace {

std::string field(double value) { return value > 0 ? fmt::format("{:.6g}", value) : std::string(); }

/// The columns of a table but for predictions of an earlier validation, which new ones replace.
std::vector<std::size_t> kept_columns(const CsvTable& table) {
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < table.columns().size(); ++i) {
    if (!table.columns()[i].starts_with("predicted_")) kept.push_back(i);
  }
  const bool predicted = kept.size() < table.columns().size();
  if (predicted) std::erase_if(kept, [&](std::size_t i) { return table.columns()[i] == "note"; });
  return kept;
}

/// The table with its predictions beside it.
std::string predicted_csv(const CsvTable& table, const MeasuredRuns& runs, const std::vector<RowPrediction>& rows) {
  const bool aggregated = closed_loop(runs.kind);
  const std::vector<std::size_t> kept = kept_columns(table);
  std::string out;
  for (const std::size_t i : kept) out += csv_field(table.columns()[i]) + ",";
  out += aggregated ? "predicted_ttft_ms,predicted_tpot_ms,note\n" : "predicted_value,note\n";
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (const std::size_t i : kept) out += csv_field(table.at(row, i)) + ",";
    const RunPrediction p = rows[row].prediction.value_or(RunPrediction{});
    out += aggregated ? field(p.ttft_ms) + "," + field(p.tpot_ms) : field(p.value);
    out += "," + csv_field(rows[row].note) + "\n";
  }
  return out;
}

void add_lines(Table& table, nlohmann::ordered_json& json, const std::vector<AccuracyLine>& lines) {
  const auto percent = [](double fraction) { return fmt::format("{:.1f} %", 100 * fraction); };
  const auto of_rows = [&](double fraction, std::size_t n) {
    return n > 0 ? fmt::format("{} of {}", percent(fraction), n) : std::string("-");
  };
  for (const AccuracyLine& line : lines) {
    const ErrorSummary& e = line.errors;
    table.row({line.group, line.metric, std::to_string(e.rows), percent(e.mape), percent(e.median), percent(e.p90),
               fmt::format("{:+.1f} %", 100 * e.bias),
               std::isfinite(line.spearman) ? fmt::format("{:.3f}", line.spearman) : "-",
               of_rows(line.floor.repeats, line.floor.repeated), of_rows(line.floor.neighbours, line.floor.between)});
    json.push_back({{"group", line.group},
                    {"metric", line.metric},
                    {"rows", e.rows},
                    {"mape", e.mape},
                    {"median", e.median},
                    {"p90", e.p90},
                    {"bias", e.bias},
                    {"spearman", line.spearman},
                    {"repeats", {{"rows", line.floor.repeated}, {"mape", line.floor.repeats}}},
                    {"neighbours", {{"rows", line.floor.between}, {"mape", line.floor.neighbours}}}});
  }
}

void print(const Options& options, const Table& table, const nlohmann::ordered_json& json) {
  const std::string format = options.format();
  fmt::print("{}", format == "json" ? json.dump(2) + "\n" : format == "csv" ? table.csv() : table.text());
}

const std::vector<std::string> kAccuracyColumns = {"group", "metric", "rows",     "MAPE",    "median",
                                                   "p90",   "bias",   "Spearman", "repeats", "neighbours"};

/// Runs with the scenarios that describe them.
int validate_published(const Options& options, const CsvTable& table) {
  const std::vector<PublishedRun> runs = predict_published(table);
  if (options.has("out")) {
    const std::vector<std::size_t> kept = kept_columns(table);
    std::string csv;
    for (const std::size_t i : kept) csv += csv_field(table.columns()[i]) + ",";
    for (const char* metric : kPublishedMetrics) csv += fmt::format("predicted_{},", metric);
    csv += "note\n";
    for (std::size_t row = 0; row < runs.size(); ++row) {
      for (const std::size_t i : kept) csv += csv_field(table.at(row, i)) + ",";
      for (std::size_t k = 0; k < std::size(kPublishedMetrics); ++k)
        csv += (runs[row].predictions.empty() ? std::string() : field(runs[row].predictions[k])) + ",";
      csv += csv_field(runs[row].note) + "\n";
    }
    options.write(csv);
  }
  Table lines(kAccuracyColumns);
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  add_lines(lines, json, accuracy_of_published(table, runs));
  print(options, lines, json);
  return kDone;
}

/// A file of requests begins with an object, a table with the name of a column.
bool holds_json_lines(const std::string& path) {
  std::ifstream file(path);
  char first = 0;
  return file >> first && first == '{';
}

/// One run request by request.
int validate_requests(const Options& options) {
  const auto given = [&](const char* flag) { return options.has(flag) ? options.text(flag) : std::string(); };
  RequestRun run = read_request_run(options.text("data"), given("gpu"), given("model"));
  if (run.left_out > 0) fmt::print(stderr, "{} requests without times left out\n", run.left_out);
  predict_requests(run);
  if (options.has("out")) {
    std::string csv =
        "request_id,arrival_s,prompt_tokens,output_tokens,ttft_ms,e2el_ms,predicted_ttft_ms,predicted_e2el_ms\n";
    for (const MeasuredRequest& r : run.requests)
      csv +=
          fmt::format("{},{:.6f},{},{},{},{},{},{}\n", csv_field(r.id), r.arrival_s, r.prompt_tokens, r.output_tokens,
                      field(r.ttft_ms), field(r.e2e_ms), field(r.predicted_ttft_ms), field(r.predicted_e2e_ms));
    options.write(csv);
  }
  Table lines({"metric", "statistic", "measured", "predicted", "error"});
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const RequestStatistic& s : request_statistics(run)) {
    const double error = s.measured_ms > 0 ? s.predicted_ms / s.measured_ms - 1 : 0;
    lines.row({s.metric, s.statistic, fmt::format("{:.1f} ms", s.measured_ms), fmt::format("{:.1f} ms", s.predicted_ms),
               fmt::format("{:+.1f} %", 100 * error)});
    json.push_back({{"metric", s.metric},
                    {"statistic", s.statistic},
                    {"measured_ms", s.measured_ms},
                    {"predicted_ms", s.predicted_ms},
                    {"error", error}});
  }
  print(options, lines, json);
  return kDone;
}

}  // namespace

int run_validate_serving(std::span<const std::string> arguments) {
  Options options(
      "roofcast validate serving --data FILE.csv|FILE_requests.jsonl [--gpu NAME] [--model NAME] [--out FILE.csv]",
      "Simulates every measured run of a table by its own protocol and prints the errors by group and load; or the\n"
      "runs of a table that describes each by a scenario; or one vLLM run with the times of every request (its\n"
      "settings in the meta.json beside it), and prints its percentiles.");
  options.add().add_options()("data", po::value<std::string>(),
                              "FILE of runs (CSV, its kind known by its columns) or of requests (JSON lines)")(
      "gpu", po::value<std::string>(), "NAME|FILE: what a file of requests ran on, where it does not say")(
      "model", po::value<std::string>(), "NAME|FILE: the model of a file of requests, in place of its settings'")(
      "out", po::value<std::string>(), "FILE.csv: the table with its predictions beside it")(
      "format", po::value<std::string>()->default_value("table"), "table | json | csv, of the errors");
  if (!options.parse(arguments)) return kDone;
  if (!options.has("data")) throw ConfigError("--data: missing; which table of measured runs?");
  if (holds_json_lines(options.text("data"))) return validate_requests(options);
  const CsvTable table = CsvTable::read_file(options.text("data"));
  if (holds_scenarios(table)) return validate_published(options, table);
  const MeasuredRuns runs = read_measured_runs(table);
  const std::vector<RowPrediction> rows = predict_all(runs);
  if (options.has("out")) options.write(predicted_csv(table, runs, rows));
  Table lines(kAccuracyColumns);
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  add_lines(lines, json, accuracy_by_group(runs, table, rows));
  add_lines(lines, json, accuracy_by_load(runs, table, rows));
  std::size_t scored = 0, predicted = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    scored += runs.runs[i].scored ? 1 : 0;
    predicted += runs.runs[i].scored && rows[i].prediction ? 1 : 0;
  }
  print(options, lines, json);
  fmt::print(stderr, "{} of {} scored rows predicted\n", predicted, scored);
  return kDone;
}

}  // namespace roofcast
