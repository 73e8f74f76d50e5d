// roofcast validate serving: predictions against measured serving runs.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>

#include "base/output_file.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "reports/records_csv.h"
#include "reports/result_schema.h"
#include "reports/table.h"
#include "reports/validation_report.h"
#include "sim/plan/measured/coverage.h"
#include "sim/plan/measured/left_out.h"
#include "sim/plan/measured/measured_requests.h"
#include "sim/plan/measured/published_runs.h"
#include "sim/plan/measured/serving_accuracy.h"

namespace roofcast::cli {
namespace po = boost::program_options;
namespace {

std::string field(double value) { return value > 0 ? fmt::format("{:.6g}", value) : std::string(); }

/// The columns of a table, without the predictions of an earlier validation.
std::vector<std::size_t> kept_columns(const CsvTable& table) {
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < table.columns().size(); ++i) {
    if (!table.columns()[i].starts_with("predicted_")) kept.push_back(i);
  }
  const bool predicted = kept.size() < table.columns().size();
  if (predicted) std::erase_if(kept, [&](std::size_t i) { return table.columns()[i] == "note"; });
  return kept;
}

constexpr const char* kIntervalColumns =
    "predicted_ttft_low_ms,predicted_ttft_high_ms,predicted_tpot_low_ms,predicted_tpot_high_ms,";

std::string range_fields(const std::optional<RunIntervals::Range>& range) {
  return range ? field(range->low) + "," + field(range->high) + "," : std::string(",,");
}

/// Prints text per table, or collects one result.
class Printed {
 public:
  Printed(const Options& options, const char* of)
      : options_(options), result_(reports::result_head(reports::ResultKind::kValidation)) {
    result_["of"] = of;
  }
  void add(const char* list, const reports::Table& table, reports::Json entries, const char* heading = "") {
    if (as_tables()) fmt::print("{}{}", heading, table.text());
    result_[list] = std::move(entries);
  }
  /// Call once at the end.
  void finish() const {
    if (as_tables()) return;
    fmt::print("{}", options_.formatted([&](const std::string& format) {
      return format == "json" ? reports::result_text(result_) : reports::records_csv(records());
    }));
  }

 private:
  bool as_tables() const { return options_.format() == "table" && !options_.has("columns"); }
  /// The entries of all lists, one after the other.
  reports::Json records() const {
    reports::Json all = reports::Json::array();
    for (const reports::Json& list : result_) {
      if (list.is_array()) all.insert(all.end(), list.begin(), list.end());
    }
    return all;
  }

  const Options& options_;
  reports::Json result_;
};

void add_coverage(Printed& printed, const std::vector<CoverageLine>& lines) {
  reports::Table table({"class", "metric", "rows", "within 90 %", "median high / low"});
  for (const CoverageLine& line : lines) {
    table.row({line.name, line.metric, std::to_string(line.rows), fmt::format("{:.0f} %", 100 * line.inside),
               fmt::format("{:.2f}", line.width)});
  }
  printed.add("coverage", table, reports::coverage_json(lines));
}

/// Columns that have an interval in at least one row.
std::vector<std::string> ranged_columns(const MeasuredRuns& runs, const std::vector<RunIntervals>& intervals) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    if (!runs.runs[i].note.empty()) continue;
    for (const ColumnRange& r : ranges_of(runs.runs[i], runs.kind, intervals[i])) {
      if (std::find(out.begin(), out.end(), r.column) == out.end()) out.push_back(r.column);
    }
  }
  return out;
}

/// The table with its predictions.
std::string predicted_csv(const CsvTable& table, const MeasuredRuns& runs, const std::vector<RowPrediction>& rows,
                          const std::vector<RunIntervals>& intervals) {
  const bool aggregated = closed_loop(runs.kind), ranges = aggregated && !intervals.empty();
  const std::vector<std::size_t> kept = kept_columns(table);
  std::string out;
  for (const std::size_t i : kept) out += csv_field(table.columns()[i]) + ",";
  const bool steady = runs.kind == RunKind::kSteady, submissions = runs.kind == RunKind::kSubmission;
  out += aggregated    ? "predicted_ttft_ms,predicted_tpot_ms,"
         : steady      ? "predicted_itl_ms,predicted_output_tokens_per_s,"
         : submissions ? "predicted_tokens_per_s,predicted_p99_ttft_ms,predicted_p99_tpot_ms,predicted_met,"
                       : "predicted_value,";
  std::vector<std::string> ranged;
  if (ranges) {
    out += kIntervalColumns;
  } else if (!intervals.empty()) {
    ranged = ranged_columns(runs, intervals);
    for (const std::string& column : ranged) out += fmt::format("predicted_{0}_low,predicted_{0}_high,", column);
  }
  out += "note\n";
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (const std::size_t i : kept) out += csv_field(table.at(row, i)) + ",";
    const RunPrediction p = rows[row].prediction.value_or(RunPrediction{});
    out += aggregated ? field(p.ttft_ms) + "," + field(p.tpot_ms)
           : steady   ? field(p.itl_ms) + "," + field(p.output_tokens_per_s)
           : submissions
               ? fmt::format("{},{},{},{:d}", field(p.value), field(p.p99_ttft_ms), field(p.p99_tpot_ms), p.met)
               : field(p.value);
    out += ",";
    if (ranges)
      out += range_fields(intervals[row].of("mean_ttft_ms")) + range_fields(intervals[row].of("mean_tpot_ms"));
    const std::vector<ColumnRange> own =
        ranged.empty() ? std::vector<ColumnRange>{} : ranges_of(runs.runs[row], runs.kind, intervals[row]);
    for (const std::string& column : ranged) {
      const auto at = std::find_if(own.begin(), own.end(), [&](const ColumnRange& r) { return r.column == column; });
      out += range_fields(at == own.end() ? std::nullopt : at->range);
    }
    out += csv_field(rows[row].note) + "\n";
  }
  return out;
}

const std::vector<std::string> kAccuracyColumns = {"group", "metric", "rows",     "MAPE",    "median",
                                                   "p90",   "bias",   "Spearman", "repeats", "neighbours"};

reports::Table accuracy_table(const std::vector<AccuracyLine>& lines) {
  reports::Table table(kAccuracyColumns);
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
  }
  return table;
}

void make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw ConfigError(fmt::format("--emit-scenarios: cannot make the folder '{}'", folder));
}

void emit_scenario(const std::string& folder, std::string name, const ConfigNode& scenario) {
  std::replace(name.begin(), name.end(), '/', '-');
  write_file("--emit-scenarios", fmt::format("{}/{}.yaml", folder, name), to_yaml(scenario));
}

/// Runs with the scenarios that describe them.
int validate_published(const Options& options, const CsvTable& table) {
  if (options.has("emit-scenarios")) {
    make_folder(options.text("emit-scenarios"));
    for (std::size_t row = 0; row < table.rows(); ++row)
      emit_scenario(options.text("emit-scenarios"), fmt::format("row-{}", row + 1), *published_scenario(table, row));
  }
  const bool ranges = options.has("intervals");
  const std::vector<PublishedRun> runs = predict_published(table, ranges);
  if (options.has("out")) {
    const std::vector<std::size_t> kept = kept_columns(table);
    std::string csv;
    for (const std::size_t i : kept) csv += csv_field(table.columns()[i]) + ",";
    for (const char* metric : kPublishedMetrics) csv += fmt::format("predicted_{},", metric);
    if (ranges)
      csv += std::string(kIntervalColumns) + "predicted_output_throughput_low,predicted_output_throughput_high,";
    csv += "note\n";
    for (std::size_t row = 0; row < runs.size(); ++row) {
      for (const std::size_t i : kept) csv += csv_field(table.at(row, i)) + ",";
      for (std::size_t k = 0; k < std::size(kPublishedMetrics); ++k)
        csv += (runs[row].predictions.empty() ? std::string() : field(runs[row].predictions[k])) + ",";
      if (ranges)
        for (const char* metric : {"mean_ttft_ms", "mean_tpot_ms", "output_throughput"})
          csv += range_fields(runs[row].intervals.of(metric));
      csv += csv_field(runs[row].note) + "\n";
    }
    options.write(csv);
  }
  const std::vector<AccuracyLine> lines = accuracy_of_published(table, runs);
  Printed printed(options, "serving");
  printed.add("groups", accuracy_table(lines), reports::accuracy_json(lines));
  if (ranges) add_coverage(printed, coverage(covered_published(table, runs)));
  printed.finish();
  for (std::size_t row = 0; row < runs.size(); ++row) {
    if (!runs[row].doubt.empty()) fmt::print(stderr, "not scored: row {}: {}\n", row + 1, runs[row].doubt);
  }
  return kDone;
}

/// A file of requests starts with a JSON object, a table with a column name.
bool holds_json_lines(const std::string& path) {
  std::ifstream file(path);
  char first = 0;
  return file >> first && first == '{';
}

/// Compares one run request by request.
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
  reports::Table lines({"metric", "statistic", "measured", "predicted", "error"});
  const std::vector<RequestStatistic> statistics = request_statistics(run);
  for (const RequestStatistic& s : statistics) {
    lines.row({s.metric, s.statistic, fmt::format("{:.1f} ms", s.measured_ms), fmt::format("{:.1f} ms", s.predicted_ms),
               fmt::format("{:+.1f} %", 100 * reports::error_of(s))});
  }
  Printed printed(options, "requests");
  printed.add("statistics", lines, reports::statistics_json(statistics));
  printed.finish();
  return kDone;
}

std::vector<RunPrediction> predictions_of(const std::vector<RowPrediction>& rows) {
  std::vector<RunPrediction> out;
  for (const RowPrediction& row : rows) out.push_back(row.prediction.value_or(RunPrediction{}));
  return out;
}

/// Counts submissions that met the limits of their load, and how many of them are predicted to meet them.
void add_limits(Printed& printed, const MeasuredRuns& runs, const std::vector<RowPrediction>& rows) {
  std::map<std::string, std::pair<int, int>> kept;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].prediction || !runs.runs[i].workload.objectives) continue;
    for (const std::string& group : {runs.runs[i].group, std::string("~all")}) {  // sorts after the groups
      ++kept[group].first;
      kept[group].second += rows[i].prediction->met ? 1 : 0;
    }
  }
  reports::Table table({"group", "met their limits", "predicted to"});
  reports::Json entries = reports::Json::array();
  for (const auto& [key, counts] : kept) {
    const std::string group = key == "~all" ? "all" : key;
    table.row({group, std::to_string(counts.first), std::to_string(counts.second)});
    entries.push_back({{"group", group}, {"kept", counts.first}, {"foretold", counts.second}});
  }
  printed.add("limits", table, std::move(entries));
}

void add_spreads(Printed& printed, const std::vector<PredictedTable>& tables) {
  reports::Table table({"load", "metric", "rows", "5 %", "50 %", "95 %"});
  std::vector<SpreadLine> lines = spreads_by_regime(tables);
  const std::vector<SpreadLine> rests = rests_by_regime(tables);
  lines.insert(lines.end(), rests.begin(), rests.end());
  for (const SpreadLine& line : lines) {
    table.row({line.regime, line.metric, std::to_string(line.rows), fmt::format("{:+.2f}", line.low),
               fmt::format("{:+.2f}", line.median), fmt::format("{:+.2f}", line.high)});
  }
  printed.add("spreads", table, reports::spreads_json(lines), "ln(measured / predicted)\n");
}

/// One file per row, named by its id.
void emit_scenarios(const MeasuredRuns& runs, const std::string& folder) {
  make_folder(folder);
  for (const MeasuredRun& run : runs.runs) {
    if (run.scenario) emit_scenario(folder, run.id, *run.scenario);
  }
}

/// Empty for `all` too, which leaves out each class in turn.
std::vector<std::string> left_out_classes(const Options& options) {
  if (!options.has("leave-out") || options.text("leave-out") == "all") return {};
  const std::vector<std::string> valid(class_names().begin(), class_names().end());
  std::vector<std::string> classes = split(options.text("leave-out"), ',');
  for (const std::string& name : classes) {
    if (std::find(valid.begin(), valid.end(), name) == valid.end())
      throw ConfigError("--leave-out: " + unknown_name("class", name, valid));
  }
  return classes;
}

/// Further tables that the validation uses.
struct OtherTables {
  std::vector<CsvTable> tables;
  std::vector<MeasuredRuns> runs;
};
OtherTables read_others(const Options& options) {
  OtherTables others;
  if (!options.has("also")) return others;
  for (const std::string& path : options.value<std::vector<std::string>>("also")) {
    others.tables.push_back(CsvTable::read_file(path));
    others.runs.push_back(read_measured_runs(others.tables.back()));
  }
  return others;
}

void leave_out_of(MeasuredRuns& runs, const CsvTable& table, OtherTables& others,
                  const std::vector<std::string>& classes) {
  if (!closed_loop(runs.kind)) throw ConfigError("--leave-out: host costs are fitted to closed loops; these are none");
  std::vector<MeasuredTable> tables{{&table, &runs}};
  for (std::size_t i = 0; i < others.tables.size(); ++i) tables.push_back({&others.tables[i], &others.runs[i]});
  leave_out(tables, classes);
}

/// Predictions with each class left out, for every kind of class in turn.
int validate_each_class(const Options& options, const CsvTable& table) {
  for (const char* flag : {"out", "intervals", "spreads"}) {
    if (options.has(flag))
      throw ConfigError(
          fmt::format("--{}: goes with one kind of class; '--leave-out all' leaves out each in turn", flag));
  }
  std::vector<AccuracyLine> lines;
  for (const std::string_view kind : class_names()) {
    const std::vector<std::string> classes{std::string(kind)};
    MeasuredRuns runs = read_measured_runs(table);
    OtherTables others = read_others(options);
    leave_out_of(runs, table, others, classes);
    const std::vector<RowPrediction> rows = predict_all(runs);
    for (AccuracyLine& line : accuracy_by_class(runs, table, rows, classes)) {
      line.group = fmt::format("{}: {}", kind, line.group);
      lines.push_back(std::move(line));
    }
  }
  Printed printed(options, "serving");
  printed.add("groups", accuracy_table(lines), reports::accuracy_json(lines));
  printed.finish();
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
                              "FILE: measured runs (CSV, its kind known by its columns) or requests (JSON lines)")(
      "gpu", po::value<std::string>(), "NAME|FILE: what a file of requests ran on, where it does not say")(
      "model", po::value<std::string>(), "NAME|FILE: the model of a file of requests, in place of its settings'")(
      "out", po::value<std::string>(), "FILE.csv: the table with its predictions beside it")(
      "emit-scenarios", po::value<std::string>(), "DIR: the scenario of every row, as `simulate` takes it")(
      "leave-out", po::value<std::string>(),
      "version | harness | host | gpu | model, or several with commas: host costs fitted without the row's class; all: "
      "each in turn")("intervals", "90 % intervals of every row, and the share of the measured values inside")(
      "spreads",
      "quantiles of ln(measured / predicted) by load, as in configs/uncertainty/serving.yaml; with --intervals also "
      "what those of --data need beside their other causes")(
      "also", po::value<std::vector<std::string>>()->composing(),
      "FILE.csv: more closed loops, for the fit of --leave-out and for --spreads; repeatable");
  options.add_format_flags();
  if (!options.parse(arguments)) return kDone;
  if (!options.has("data")) throw ConfigError("--data: missing; which table of measured runs?");
  if (holds_json_lines(options.text("data"))) return validate_requests(options);
  const CsvTable table = CsvTable::read_file(options.text("data"));
  if (holds_scenarios(table)) return validate_published(options, table);
  if (options.has("leave-out") && options.text("leave-out") == "all") return validate_each_class(options, table);
  MeasuredRuns runs = read_measured_runs(table);
  if (options.has("emit-scenarios")) emit_scenarios(runs, options.text("emit-scenarios"));
  const std::vector<std::string> classes = left_out_classes(options);
  OtherTables others = read_others(options);
  if (!classes.empty()) leave_out_of(runs, table, others, classes);
  const std::vector<RowPrediction> rows = predict_all(runs);
  const std::vector<RunIntervals> intervals =
      options.has("intervals") ? run_intervals(runs) : std::vector<RunIntervals>{};
  if (options.has("out")) options.write(predicted_csv(table, runs, rows, intervals));
  std::vector<AccuracyLine> lines = accuracy_by_group(runs, table, rows);
  const auto add = [&](std::vector<AccuracyLine> more) { lines.insert(lines.end(), more.begin(), more.end()); };
  add(accuracy_by_load(runs, table, rows));
  if (!classes.empty()) add(accuracy_by_class(runs, table, rows, classes));
  std::size_t scored = 0, predicted = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    scored += runs.runs[i].scored ? 1 : 0;
    predicted += runs.runs[i].scored && rows[i].prediction ? 1 : 0;
  }
  Printed printed(options, "serving");
  printed.add("groups", accuracy_table(lines), reports::accuracy_json(lines));
  if (runs.kind == RunKind::kSubmission) add_limits(printed, runs, rows);
  if (!intervals.empty()) add_coverage(printed, coverage(covered_runs(runs, table, intervals)));
  if (options.has("spreads")) {
    std::vector<PredictedTable> tables{{&runs, &table, predictions_of(rows), intervals}};
    for (std::size_t i = 0; i < others.tables.size(); ++i)
      tables.push_back({&others.runs[i], &others.tables[i], predictions_of(predict_all(others.runs[i]))});
    add_spreads(printed, tables);
  }
  printed.finish();
  for (const MeasuredRun& run : runs.runs) {
    if (!run.doubt.empty() && run.doubt.find("marked suspect") == std::string::npos)
      fmt::print(stderr, "not scored: {}: {}\n", run.id, run.doubt);
  }
  fmt::print(stderr, "{} of {} scored rows predicted\n", predicted, scored);
  return kDone;
}

}  // namespace roofcast::cli
