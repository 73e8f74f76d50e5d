// roofcast validate kernels: predicted against measured kernel times.

#include <map>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/read_file.h"
#include "calibrate/record_tables.h"
#include "calibrate/validate.h"
#include "cli/command.h"
#include "cli/options.h"
#include "reports/records_csv.h"
#include "reports/result_schema.h"
#include "reports/table.h"

namespace roofcast::cli {
namespace po = boost::program_options;
namespace {

std::string operator_list() {
  std::string text;
  for (const calibrate::KernelOperator& op : calibrate::kernel_operators())
    text += fmt::format("\n  {:<20} {}", op.name, op.help);
  return text;
}

/// One table, and its predictions.
struct Validated {
  CsvTable table;
  calibrate::KernelValidation found;
};

std::string errors_text(const std::vector<Validated>& all, const std::string& format) {
  reports::Table table({"group", "rows", "MAPE", "median", "p90", "bias", "time-weighted", "within 90 %"});
  reports::Json result = reports::result_head(reports::ResultKind::kValidation);
  result["of"] = "kernels";
  reports::Json& groups = result["groups"] = reports::Json::array();
  const auto percent = [](double fraction) { return fmt::format("{:.1f} %", 100 * fraction); };
  for (const Validated& one : all) {
    for (const calibrate::ErrorGroup& group : one.found.groups) {
      const ErrorSummary& e = group.errors;
      const std::string name = all.size() > 1 ? fmt::format("{}: {}", one.found.op->name, group.name) : group.name;
      table.row({name, std::to_string(e.rows), percent(e.mape), percent(e.median), percent(e.p90),
                 fmt::format("{:+.1f} %", 100 * e.bias), percent(e.time_weighted),
                 fmt::format("{:.0f} %", 100 * group.coverage)});
      groups.push_back({{"op", one.found.op->name},
                        {"group", group.name},
                        {"rows", e.rows},
                        {"mape", e.mape},
                        {"median", e.median},
                        {"p90", e.p90},
                        {"bias", e.bias},
                        {"time_weighted", e.time_weighted},
                        {"coverage", group.coverage}});
    }
  }
  if (format == "json") return reports::result_text(result);
  return format == "csv" ? reports::records_csv(groups) : table.text();
}

/// Reports skipped rows, one line per kind of error.
void name_faults(const std::vector<ConfigError>& faults) {
  std::map<std::string, std::pair<const ConfigError*, int>> alike;
  for (const ConfigError& fault : faults) {
    auto& [first, rows] = alike[fault.message()];
    if (first == nullptr) first = &fault;
    ++rows;
  }
  for (const auto& [message, found] : alike) {
    const auto& [first, rows] = found;
    fmt::print(stderr, "passed over: {}{}\n", first->what(), rows > 1 ? fmt::format(" ({} rows)", rows) : "");
  }
}

/// A CSV is one table; the lines of `calibrate measure` become one table per operator.
std::vector<CsvTable> read_tables(const std::string& path, const GpuSpec& gpu, const calibrate::KernelOperator*& op) {
  const std::string text = read_file(path, calibrate::kMostRecordBytes);
  if (!calibrate::looks_like_records(text)) return {CsvTable::parse(text, path)};
  const calibrate::RecordFile file = calibrate::parse_records(text, path);
  calibrate::require_device(file, gpu);
  std::vector<CsvTable> tables;
  for (calibrate::MeasuredTable& measured : tables_of(file)) {
    if (!op || op->name == measured.op) tables.push_back(std::move(measured.table));
  }
  if (tables.empty())
    throw ConfigError(SourceLocation{path, 0, 0}, "holds no measurement of a kernel that can be predicted");
  return tables;
}

/// The GPU as if it had not been measured: with the constants of `source`, transferred.
ConfigTree unmeasured(const ConfigTree& gpu, const std::string& source) {
  const SourceLocation location{"--carried-over-from", 0, 0};
  const auto architecture = [](const ConfigTree& tree) {
    return parse_gpu_spec(ConfigReader(tree, "a GPU")).architecture;
  };
  const bool another = architecture(gpu) != architecture(load_named("hardware", source, location));
  return with_value(with_sibling(gpu), "efficiency",
                    make_map({{"carried_over_from", location, make_scalar(source, location)},
                              {"another_generation", location, make_scalar(another ? "true" : "false", location)}},
                             location),
                    location.path.str());
}

}  // namespace

int run_validate_kernels(std::span<const std::string> arguments) {
  Options options(
      "roofcast validate kernels --gpu NAME|FILE --data FILE.csv [--op OP] [--out FILE.csv]",
      "Predicts every row of a table of kernel times, as a benchmark would time it, and prints the errors.\n"
      "Operators, each known by its columns:" +
          operator_list());
  options.add().add_options()("gpu", po::value<std::string>(), "NAME|FILE")(
      "data", po::value<std::string>(), "FILE.csv: measured kernel times, or FILE.jsonl of calibrate measure")(
      "op", po::value<std::string>(), "OP: the operator (default: known by its columns)")(
      "carried-over-from", po::value<std::string>(),
      "GPU: treat --gpu as unmeasured, with the constants of this one carried over")(
      "fidelity", po::value<std::string>()->default_value("calibrated"), "ideal | calibrated")(
      "out", po::value<std::string>(), "FILE.csv: the table with predicted_us beside it");
  options.add_format_flags();
  if (!options.parse(arguments)) return kDone;
  if (!options.has("gpu")) throw ConfigError("--gpu: missing; which GPU were the times measured on?");
  if (!options.has("data")) throw ConfigError("--data: missing; which table of kernel times?");
  const calibrate::KernelOperator* op =
      options.has("op") ? &calibrate::find_operator(options.text("op"), SourceLocation{"--op", 0, 0}) : nullptr;
  ConfigTree document = load_named("hardware", options.text("gpu"), SourceLocation{"--gpu", 0, 0});
  if (options.has("carried-over-from")) document = unmeasured(document, options.text("carried-over-from"));
  const calibrate::BenchmarkedGpu gpu = calibrate::load_benchmarked_gpu(document, options.fidelity());
  std::vector<Validated> all;
  for (CsvTable& table : read_tables(options.text("data"), gpu.spec, op)) {
    calibrate::KernelValidation found = calibrate::validate_kernels(table, gpu, op);
    name_faults(found.faults);
    all.push_back({std::move(table), std::move(found)});
  }
  if (options.has("out") && all.size() > 1)
    throw ConfigError("--out: the file holds several operators; --op names one");
  const Validated& first = all.front();
  if (options.has("out")) options.write(calibrate::with_predictions(first.table, first.found.predicted));
  if (first.found.groups.empty()) {
    fmt::print(stderr, "{}: no times in latency_us, so {} predictions and no errors\n", first.table.path(),
               first.found.predicted.size());
    if (!options.has("out")) options.write(calibrate::with_predictions(first.table, first.found.predicted));
    return kDone;
  }
  fmt::print("{}", options.formatted([&](const std::string& format) { return errors_text(all, format); }));
  return kDone;
}

}  // namespace roofcast::cli
