// roofcast validate local: published speeds of single-user engines.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error_summary.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "reports/records_csv.h"
#include "reports/result_schema.h"
#include "reports/table.h"
#include "sim/plan/measured/local_runs.h"

namespace roofcast::cli {
namespace po = boost::program_options;
namespace {

/// Errors of ln(predicted / measured): `within` 90 % intervals of a relative standard deviation.
struct Errors {
  ErrorSummary summary;
  double within = 0, deviation = 0;
};

reports::Json errors_json(const std::string& group, const ErrorSummary& e) {
  return {{"group", group}, {"rows", e.rows}, {"mape", e.mape}, {"median", e.median}, {"p90", e.p90}, {"bias", e.bias}};
}

Errors errors_of(const std::vector<double>& logs, double deviation) {
  Errors e;
  std::vector<double> ratios;
  double squares = 0, held = 0;
  for (const double log : logs) {
    ratios.push_back(std::exp(log));
    squares += log * log;
    held += std::abs(log) <= kNinetyPercent * deviation ? 1 : 0;
  }
  const std::vector<double> ones(ratios.size(), 1.0);
  const double n = static_cast<double>(std::max<std::size_t>(1, logs.size()));
  e.summary = summarize(ratios, ones);
  e.within = held / n;
  e.deviation = std::sqrt(squares / n);
  return e;
}

std::string shares_text(const RooflineBackend& b) {
  std::string out =
      fmt::format("  - name: {}\n    operator_time: {:.3g} us\n", b.name, b.operator_time.in(kMicrosecond));
  if (b.few_tokens > 0) out += fmt::format("    few_tokens: {:g}\n", b.few_tokens);
  if (b.pass_tokens > 0) out += fmt::format("    pass_tokens: {:g}\n", b.pass_tokens);
  for (const auto& [name, rates] : {std::pair{"few", &b.few}, {"many", &b.many}}) {
    if (rates->values_per_cycle > 0 || rates->flops_per_cycle > 0)
      out += fmt::format("    {}: {{values_per_cycle: {:.3g}, flops_per_cycle: {:.3g}}}\n", name,
                         rates->values_per_cycle, rates->flops_per_cycle);
  }
  out += "    formats:\n";
  for (std::size_t i = 0; i < b.wide.size(); ++i) {
    const RooflineShares& s = b.wide[i];
    out += fmt::format("      w{}: {{memory: {:.3g}, compute: {:.3g}",
                       i == 0   ? 16
                       : i == 1 ? 8
                                : 4,
                       s.memory, s.compute);
    if (s.flops_per_cycle > 0) out += fmt::format(", flops_per_cycle: {:g}", std::round(s.flops_per_cycle));
    out += "}\n";
  }
  return out;
}

std::string rows_csv(const CsvTable& table, const std::vector<LocalRun>& runs) {
  std::string out;
  std::vector<std::size_t> columns;
  for (const char* column :
       {"engine", "gpu", "gpus", "model", "weights", "test", "depth", "sequences", "tokens_per_s"}) {
    if (const auto at = table.find(column)) {
      columns.push_back(*at);
      out += std::string(column) + ",";
    }
  }
  out += "predicted,error\n";
  for (std::size_t row = 0; row < runs.size(); ++row) {
    for (const std::size_t column : columns) out += csv_field(table.at(row, column)) + ",";
    const double speed = predicted_speed(runs[row]);
    out += fmt::format("{:.5g},{:.4f}\n", speed, speed / runs[row].tokens_per_s - 1);
  }
  return out;
}

}  // namespace

int run_validate_local(std::span<const std::string> arguments) {
  Options options("roofcast validate local --data FILE.csv [--leave-out gpu] [--refit] [--out FILE.csv]",
                  "Predicts published speeds (columns engine, gpu, model, weights, test such as pp512 or tg128,\n"
                  "tokens_per_s; optional gpus, depth, sequences) and prints the errors by backend, of engines whose\n"
                  "kernels are in configs/rooflines.");
  options.add().add_options()("data", po::value<std::string>(), "FILE.csv: measured speeds")(
      "leave-out", po::value<std::string>(), "gpu: constants fitted without the row's GPU as well")(
      "refit", "fit the constants to the table, and print them as the file of rooflines has them")(
      "out", po::value<std::string>(), "FILE.csv: each row with its prediction")(
      "format", po::value<std::string>()->default_value("table"), "table | json | csv, of the errors");
  if (!options.parse(arguments)) return kDone;
  if (!options.has("data")) throw ConfigError("--data: missing; which table of speeds?");
  if (options.has("leave-out") && options.text("leave-out") != "gpu")
    throw ConfigError("--leave-out: " +
                      unknown_name("class", options.text("leave-out"), std::vector<std::string>{"gpu"}));
  const CsvTable table = CsvTable::read_file(options.text("data"));
  const std::vector<LocalRun> runs = read_local_runs(table);
  const std::vector<BackendScore> scores = score_backends(runs, options.has("refit"), options.has("leave-out"));
  reports::Table errors(
      {"backend", "rows", "GPUs", "MAPE", "median", "p90", "bias", "left out", "within 90 %", "deviation"});
  reports::Json result = reports::result_head(reports::ResultKind::kValidation);
  result["of"] = "local";
  reports::Json groups = reports::Json::array(), coverage = reports::Json::array();
  std::string constants;
  for (const BackendScore& score : scores) {
    const bool apart = !score.left_out.empty();
    const Errors all = errors_of(score.logs, score.backend.discrepancy);
    const Errors left = errors_of(score.left_out, score.backend.discrepancy);
    const Errors& judged = apart ? left : all;
    const ErrorSummary& e = all.summary;
    const auto percent = [](double fraction) { return fmt::format("{:.1f} %", 100 * fraction); };
    errors.row({score.name, std::to_string(e.rows), std::to_string(score.gpus.size()), percent(e.mape),
                percent(e.median), percent(e.p90), fmt::format("{:+.1f} %", 100 * e.bias),
                apart ? percent(left.summary.mape) : "-", fmt::format("{:.0f} %", 100 * judged.within),
                fmt::format("{:.3f}", judged.deviation)});
    groups.push_back(errors_json(score.name, e));
    if (apart) groups.push_back(errors_json(score.name + ", GPU left out", left.summary));
    coverage.push_back({{"class", score.name},
                        {"metric", "tokens_per_s"},
                        {"rows", judged.summary.rows},
                        {"coverage", judged.within},
                        {"median_ratio", std::exp(2 * kNinetyPercent * score.backend.discrepancy)}});
    constants += "# " + score.name + "\n" + shares_text(score.backend);
  }
  result["groups"] = groups;
  result["coverage"] = coverage;
  if (options.has("out")) options.write(rows_csv(table, runs));
  const std::string& format = options.format();
  fmt::print("{}", format == "json"  ? reports::result_text(result)
                   : format == "csv" ? reports::records_csv(groups)
                                     : errors.text());
  if (options.has("refit") && format == "table") fmt::print("\nbackends:\n{}", constants);
  return kDone;
}

}  // namespace roofcast::cli
