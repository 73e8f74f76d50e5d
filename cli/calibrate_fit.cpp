// roofcast calibrate fit: constants of a GPU from measurements.

#include <algorithm>
#include <cstdio>
#include <set>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/read_file.h"
#include "calibrate/gpu_file.h"
#include "calibrate/kernel_rows.h"
#include "calibrate/operators.h"
#include "calibrate/record_tables.h"
#include "calibrate/shared_kernels.h"
#include "cli/command.h"
#include "cli/options.h"
#include "reports/table.h"

namespace roofcast {
namespace po = boost::program_options;
namespace {

std::set<KernelFamily> families_of(const CsvTable& table) {
  std::set<KernelFamily> found;
  const std::size_t column = table.column("engine");
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::optional<KernelFamily> family = family_of_engine(table.at(row, column), table.mark(row, column));
    if (family) found.insert(*family);
  }
  if (found.empty()) return {KernelFamily::kTrtllm, KernelFamily::kVllm};  // collectives belong to all
  return found;
}

/// Mean absolute error, its median, 90th percentile, the bias and the error weighted by time, in percent.
std::string errors_of(const ErrorSummary& errors) {
  if (errors.rows == 0) return "-";
  return fmt::format("{:.1f}, {:.1f}, {:.1f}, {:+.1f}, {:.1f} %", 100 * errors.mape, 100 * errors.median,
                     100 * errors.p90, 100 * errors.bias, 100 * errors.time_weighted);
}

std::string summary(const std::vector<FamilyConstants>& all) {
  Table table({"constants", "engine", "rows", "MAPE, median, p90, bias, by time", "left out", "discrepancy"});
  for (const FamilyConstants& of : all) {
    for (const FittedConstants& block : of.blocks) {
      table.row({block.block, std::string(name_of(of.family)), std::to_string(block.record.rows),
                 errors_of(block.on_rows), errors_of(block.left_out),
                 fmt::format("{:.1f} %", 100 * block.record.discrepancy)});
    }
  }
  return table.text();
}

/// What a reader of the constants should not read physics into.
std::string doubts(const std::vector<FamilyConstants>& all) {
  std::string text;
  for (const FamilyConstants& of : all) {
    for (const FittedConstants& block : of.blocks) {
      if (fit_detail::leans_on_priors(static_cast<std::size_t>(block.record.rows), block.fields)) {
        text += fmt::format("{} {}: {} rows hold its constants near their priors more than they tell them\n",
                            name_of(of.family), block.block, block.record.rows);
      }
      for (const FieldReport& field : block.fields) {
        if (field.state == FieldState::kFitted || field.state == FieldState::kFixed) continue;
        text += fmt::format("{} {}: {} = {:.4g} {}\n", name_of(of.family), block.block, field.name, field.value,
                            name_of(field.state));
      }
    }
  }
  return text;
}

std::string engines_of(const CsvTable& table, KernelFamily family) {
  std::set<std::string> engines;
  const std::size_t column = table.column("engine");
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto of = family_of_engine(table.at(row, column), table.mark(row, column));
    if (!of || *of == family) engines.emplace(table.at(row, column));
  }
  std::string text;
  for (const std::string& engine : engines) text += (text.empty() ? "" : ", ") + engine;
  return text;
}

/// One table of one operator, and where it comes from.
struct Input {
  const KernelOperator* op = nullptr;
  CsvTable table;
  std::string source;
};

const KernelOperator* wanted_operator(const Options& options) {
  return options.has("op") ? &find_operator(options.text("op"), Mark{"--op", 0, 0}) : nullptr;
}

void require_times(const CsvTable& table) {
  const std::size_t column = table.column("latency_us");
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.at(row, column).empty())
      throw ConfigError(table.mark(row, column), "'latency_us' is blank, and constants are fitted to times");
  }
}

/// A CSV is one table; the lines of `calibrate measure` become one an operator.
std::vector<Input> read_inputs(const std::string& path, const Options& options, const GpuSpec& gpu) {
  const KernelOperator* wanted = wanted_operator(options);
  const std::string text = read_file(path, 2'000'000'000);
  std::vector<Input> inputs;
  if (!looks_like_records(text)) {
    CsvTable table = CsvTable::parse(text, path);
    require_times(table);
    if (table.rows() == 0) throw ConfigError(Mark{path, 0, 0}, "holds no rows to fit constants to");
    const KernelOperator& op = wanted ? *wanted : operator_of(table);
    inputs.push_back({&op, std::move(table), options.text("source")});
    return inputs;
  }
  if (text.find("ttft") != std::string::npos || text.find("time_to_first_token") != std::string::npos)
    throw ConfigError(Mark{path, 0, 0}, "a run of a server: with --scenario SCENARIO.yaml it fits host costs");
  const RecordFile file = parse_records(text, path);
  require_device(file, gpu);
  if (file.torn) fmt::print(stderr, "{}: the last line is cut off; it is left out\n", path);
  const Record& first = file.records.front();
  const std::string source =
      options.has("source")
          ? options.text("source")
          : fmt::format("calibrate measure on {}, driver {}, CUDA {}, commit {}, {}", first.device.name,
                        first.device.driver, first.device.cuda, first.commit, first.time.substr(0, 10));
  for (MeasuredTable& measured : tables_of(file)) {
    const KernelOperator& op = find_operator(measured.op, Mark{path, 0, 0});
    const bool named = wanted && wanted == &op;
    if (named || (!wanted && measured.fit_by_default)) {
      inputs.push_back({&op, std::move(measured.table), source});
    } else if (!wanted) {
      fmt::print(stderr, "{}: {} rows of {} are by kernels that no engine runs; --op {} fits them all the same\n", path,
                 measured.table.rows(), op.name, op.name);
    }
  }
  if (inputs.empty())
    throw ConfigError(Mark{path, 0, 0}, wanted ? fmt::format("holds no measurement of {}", wanted->name)
                                               : "holds no measurement that constants can be fitted to");
  return inputs;
}

std::vector<FamilyConstants> fit_table(const Input& input, const Options& options, const ConfigNode& tree,
                                       const GpuSpec& gpu, std::vector<std::string>* too_few) {
  const CsvTable& table = input.table;
  FitOptions fit;
  fit.seed = static_cast<std::uint64_t>(options.integer("seed", 0, INT64_MAX));
  fit.starts = static_cast<int>(options.integer("starts", 1, 1000));
  fit.folds_run = static_cast<int>(options.integer("folds", 0, fit.folds));
  fit.too_few = too_few;
  std::vector<FamilyConstants> out;
  for (const KernelFamily family : families_of(table)) {
    if (options.has("engine") && options.text("engine") != name_of(family)) continue;
    fmt::print(stderr, "fitting {} of {} under {} ({} rows)\n", input.op->name, gpu.name, name_of(family),
               table.rows());
    fit.source = input.source;
    if (options.has("keep")) {
      fit.kept = constants_in(tree, family);
      if (!fit.kept)
        throw ConfigError(fmt::format("--keep: {} has no constants of its own under {}", gpu.name, name_of(family)));
    }
    if (!fit.source.empty()) fit.source += ", ";
    // Constants that stay keep their source, too, unless another is named.
    if (!fit.kept || !fit.source.empty()) fit.source += engines_of(table, family);
    out.push_back({family, input.op->fit(table, gpu, family, fit)});
  }
  return out;
}

/// The blocks go to the efficiency files and into the GPU file, one family after the other.
void write_constants(const std::vector<FamilyConstants>& all, const Options& options, ConfigTree tree,
                     const GpuSpec& gpu) {
  for (const FamilyConstants& of : all) {
    const std::string heading = fmt::format("Constants of the {} under {}.", gpu.name, name_of(of.family));
    if (options.has("efficiency-dir")) {
      write_efficiency_file(fmt::format("{}/{}-{}.yaml", options.text("efficiency-dir"), gpu.name, name_of(of.family)),
                            heading, of.blocks);
    }
    if (options.has("out")) {
      write_gpu_file(options.text("out"), tree, of.family, of.blocks);
      tree = parse_config_file(options.text("out"));
    }
  }
}

/// What a block with too few rows is told: nothing new, when others could be fitted.
void report_too_few(const std::vector<std::string>& too_few, const std::vector<FamilyConstants>& all) {
  const bool none = std::all_of(all.begin(), all.end(), [](const FamilyConstants& of) { return of.blocks.empty(); });
  if (none && !too_few.empty()) throw ConfigError(too_few.front());
  for (const std::string& text : too_few) fmt::print(stderr, "{}; its constants stay as they were\n", text);
}

/// Of all tables, and of the kernels that another family's constants stand for.
std::vector<FamilyConstants> fit_all(const Options& options, const ConfigTree& tree, const GpuSpec& gpu) {
  std::vector<FamilyConstants> all;
  std::vector<std::string> too_few;
  for (const std::string& path : options.value<std::vector<std::string>>("measurements")) {
    for (const Input& input : read_inputs(path, options, gpu)) {
      for (FamilyConstants& found : fit_table(input, options, *tree, gpu, &too_few)) all.push_back(std::move(found));
    }
  }
  report_too_few(too_few, all);
  for (FamilyConstants& shared : shared_constants(all, gpu)) {
    if (!options.has("engine") || options.text("engine") == name_of(shared.family)) all.push_back(std::move(shared));
  }
  return all;
}

/// Serving runs in place of kernel times: the host costs of the scenario's engine.
int fit_host_costs(const Options& options) {
  for (const char* flag :
       {"gpu", "op", "engine", "out", "efficiency-dir", "keep", "source", "starts", "folds", "seed"}) {
    if (options.has(flag)) throw ConfigError(fmt::format("--{}: not with --scenario", flag));
  }
  if (!options.has("measurements")) throw ConfigError("calibrate fit: which runs of the scenario?");
  std::vector<std::string> host{"--scenario", options.text("scenario")};
  for (const std::string& run : options.value<std::vector<std::string>>("measurements")) {
    host.insert(host.end(), {"--bench", run});
  }
  return run_calibrate_host(host);
}

}  // namespace

int run_calibrate_fit(std::span<const std::string> arguments) {
  Options options(
      "roofcast calibrate fit MEASUREMENTS... --gpu NAME|FILE [--out FILE.yaml] [--efficiency-dir DIR]\n"
      "       roofcast calibrate fit RUN.json... --scenario SCENARIO.yaml     (as `calibrate host --bench`)",
      "Fits the constants of a GPU to what `calibrate measure` wrote, or to tables of kernel times as CSV\n"
      "(columns: roofcast validate kernels --help). Needs no GPU. What it writes to --out is a GPU file that\n"
      "--gpu FILE takes. A block with too few measurements keeps its constants and says so.");
  options.add().add_options()("gpu", po::value<std::string>(), "NAME|FILE whose datasheet is meant")(
      "op", po::value<std::string>(), "which operator the tables are of (default: known by their columns)")(
      "engine", po::value<std::string>(),
      "trtllm | vllm: only the rows of these engines, and only its constants (default: all)")(
      "out", po::value<std::string>(), "FILE.yaml: the GPU with its new constants")(
      "efficiency-dir", po::value<std::string>(),
      "DIR: put the new blocks into DIR/<gpu>-<engine>.yaml, keep the others")(
      "keep", "leave the GPU's constants as they are; renew the rows, mape and discrepancy beside them")(
      "source", po::value<std::string>(), "where the measurements come from, for the record")(
      "starts", po::value<std::string>()->default_value("3"), "searches, the first from the priors")(
      "folds", po::value<std::string>()->default_value("2"),
      "fifths of the shape families left out in turn, to score them")(
      "seed", po::value<std::string>()->default_value("1"), "of the starts and samples")(
      "scenario", po::value<std::string>(), "FILE or name: what serving runs (vllm bench serve) measured");
  options.positional("measurements", -1);
  if (!options.parse(arguments)) return kDone;
  if (options.has("scenario")) return fit_host_costs(options);
  if (!options.has("gpu")) throw ConfigError("--gpu: missing; which GPU were the times measured on?");
  if (!options.has("measurements")) throw ConfigError("calibrate fit: which tables of measurements?");
  if (options.has("engine") && options.text("engine") != "trtllm" && options.text("engine") != "vllm") {
    throw ConfigError(fmt::format("--engine: must be trtllm or vllm, got '{}'", options.text("engine")));
  }
  const ConfigTree tree = load_named("hardware", options.text("gpu"), Mark{"--gpu", 0, 0});
  const GpuSpec gpu = parse_gpu_spec(ConfigReader(tree, "a GPU"));
  const std::vector<FamilyConstants> all = fit_all(options, tree, gpu);
  write_constants(all, options, tree, gpu);
  fmt::print("{}", summary(all));
  const std::string doubtful = doubts(all);
  if (!doubtful.empty()) fmt::print("\n{}", doubtful);
  return kDone;
}

}  // namespace roofcast
