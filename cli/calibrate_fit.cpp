// roofcast calibrate fit: constants of a GPU from measurements.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/read_file.h"
#include "base/text.h"
#include "calibrate/gpu_file.h"
#include "calibrate/kernel_rows.h"
#include "calibrate/machine_fit.h"
#include "calibrate/operators.h"
#include "calibrate/record_tables.h"
#include "calibrate/shared_kernels.h"
#include "cli/calibration_json.h"
#include "cli/command.h"
#include "cli/options.h"
#include "reports/table.h"

namespace roofcast::cli {
namespace po = boost::program_options;
namespace {

/// The sets of kernels that a table informs. Libraries and our own streams inform every set that extends none, because
/// a set that extends another uses the same libraries.
std::vector<std::shared_ptr<const KernelRules>> sets_of(const CsvTable& table) {
  std::set<std::string> makers;
  const std::size_t column = table.column("engine");
  for (std::size_t row = 0; row < table.rows(); ++row)
    makers.insert(calibrate::kernels_of(table.at(row, column), table.location(row, column)));
  const auto is_told = [&](const KernelRules& rules) {
    if (makers.contains("")) return rules.base() == nullptr;
    return makers.contains(rules.name()) || std::any_of(makers.begin(), makers.end(), [&](const std::string& maker) {
             const KernelRules* base = kernel_rules(maker)->base();
             return base != nullptr && base->name() == rules.name();
           });
  };
  std::vector<std::shared_ptr<const KernelRules>> sets = all_kernel_rules();
  std::erase_if(sets, [&](const auto& rules) { return !is_told(*rules); });
  return sets;
}

/// Mean absolute error, median, 90th percentile, bias, and the error weighted by time, in percent.
std::string errors_of(const ErrorSummary& errors) {
  if (errors.rows == 0) return "-";
  return fmt::format("{:.1f}, {:.1f}, {:.1f}, {:+.1f}, {:.1f} %", 100 * errors.mape, 100 * errors.median,
                     100 * errors.p90, 100 * errors.bias, 100 * errors.time_weighted);
}

std::string summary(const std::vector<calibrate::FittedSet>& all) {
  reports::Table table({"constants", "engine", "rows", "determined", "inherited", "MAPE, median, p90, bias, by time",
                        "left out", "discrepancy"});
  for (const calibrate::FittedSet& of : all) {
    for (const calibrate::FittedConstants& block : of.blocks) {
      const auto count = [&](auto&& is) {
        return std::to_string(std::count_if(block.fields.begin(), block.fields.end(), is));
      };
      table.row(
          {block.block, of.kernels, std::to_string(block.record.rows),
           count([](const calibrate::FieldReport& field) { return field.is_determined(); }),
           count([](const calibrate::FieldReport& field) { return field.state == calibrate::FieldState::kPooled; }),
           errors_of(block.on_rows), errors_of(block.left_out),
           fmt::format("{:.1f} %", 100 * block.record.discrepancy)});
    }
  }
  return table.text();
}

/// Warns of constants without physical meaning.
std::string doubts(const std::vector<calibrate::FittedSet>& all) {
  std::string text;
  for (const calibrate::FittedSet& of : all) {
    for (const calibrate::FittedConstants& block : of.blocks) {
      if (calibrate::fit_detail::leans_on_priors(static_cast<std::size_t>(block.record.rows), block.fields)) {
        text += fmt::format("{} {}: {} rows determine its constants less than their priors do\n", of.kernels,
                            block.block, block.record.rows);
      }
      for (const calibrate::FieldReport& field : block.fields) {
        if (field.state != calibrate::FieldState::kAtBound && field.state != calibrate::FieldState::kNotIdentified)
          continue;
        text += fmt::format("{} {}: {} = {:.4g} {}\n", of.kernels, block.block, field.name, field.value,
                            name_of(field.state));
      }
    }
  }
  return text;
}

std::string engines_of(const CsvTable& table, const KernelRules& rules) {
  std::set<std::string> engines;
  const std::size_t column = table.column("engine");
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string of = calibrate::kernels_of(table.at(row, column), table.location(row, column));
    if (of.empty() || of == rules.name()) engines.emplace(table.at(row, column));
  }
  std::string text;
  for (const std::string& engine : engines) text += (text.empty() ? "" : ", ") + engine;
  return text;
}

/// One table of one operator, and its source.
struct Input {
  const calibrate::KernelOperator* op = nullptr;
  CsvTable table;
  std::string source;
  bool measured_here = false;  ///< by `calibrate measure`
};

/// All tables, and whether they are what `calibrate measure` wrote on one machine.
struct Inputs {
  std::vector<Input> tables;
  std::vector<calibrate::MeasuredTable> machine;  ///< tables from `calibrate measure`
  std::string source;                             ///< of the last of them
};

/// The GPU's constants on the measured machine; empty: unchanged.
struct ThisMachine {
  std::optional<calibrate::FitResult<MachineShares>> fit;
  GpuSpec spec;
  std::optional<calibrate::BenchmarkedGpu> before;  ///< the constants before

  const Efficiency* constants(const std::string& kernels) const {
    if (!before) return nullptr;
    return &before->of(kernels);
  }
  /// The GPU file that the fitted constants go into.
  ConfigTree on_file(const ConfigTree& gpu, const std::string& source) const {
    const auto differs = [&](const Parameter<MachineShares>& share) { return fit->value.*share.member != 1.0; };
    const auto shares = MachineShares::fields();
    if (!fit || std::none_of(shares.begin(), shares.end(), differs)) return gpu;
    return calibrate::with_machine(gpu, fit->value, source);
  }
};

const calibrate::KernelOperator* wanted_operator(const Options& options) {
  return options.has("op") ? &calibrate::find_operator(options.text("op"), SourceLocation{"--op", 0, 0}) : nullptr;
}

void require_times(const CsvTable& table) {
  const calibrate::KernelTable rows(table, {});
  const std::size_t column = rows.time_column() ? *rows.time_column() : table.column("latency_us");
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.at(row, column).empty()) {
      throw ConfigError(table.location(row, column),
                        fmt::format("'{}' is blank, and constants are fitted to times", table.columns()[column]));
    }
  }
}

std::string source_of(const calibrate::RecordFile& file, const Options& options) {
  if (options.has("source")) return options.text("source");
  const calibrate::Record& first = file.records.front();
  return fmt::format("calibrate measure on {}, driver {}, CUDA {}, commit {}, {}", first.device.name,
                     first.device.driver, first.device.cuda, first.commit, first.time.substr(0, 10));
}

/// A CSV is one table; the lines of `calibrate measure` become one table per operator.
void read_inputs(const std::string& path, const Options& options, const GpuSpec& gpu, Inputs& inputs) {
  const calibrate::KernelOperator* wanted = wanted_operator(options);
  const std::string text = read_file(path, calibrate::kMostRecordBytes);
  if (!calibrate::looks_like_records(text)) {
    CsvTable table = CsvTable::parse(text, path);
    require_times(table);
    if (table.rows() == 0) throw ConfigError(SourceLocation{path, 0, 0}, "holds no rows to fit constants to");
    const calibrate::KernelOperator& op = wanted ? *wanted : calibrate::operator_of(table);
    inputs.tables.push_back({&op, std::move(table), options.text("source")});
    return;
  }
  if (text.find("ttft") != std::string::npos || text.find("time_to_first_token") != std::string::npos)
    throw ConfigError(SourceLocation{path, 0, 0},
                      "a run of a server: with --scenario SCENARIO.yaml it fits host costs");
  const calibrate::RecordFile file = calibrate::parse_records(text, path);
  calibrate::require_device(file, gpu);
  if (file.torn) fmt::print(stderr, "{}: the last line is cut off; it is left out\n", path);
  inputs.source = source_of(file, options);
  bool any = false;
  for (const calibrate::MeasuredTable& measured : tables_of(file)) {
    const calibrate::KernelOperator& op = calibrate::find_operator(measured.op, SourceLocation{path, 0, 0});
    inputs.machine.push_back(measured);
    if (wanted && wanted != &op) continue;
    inputs.tables.push_back({&op, measured.table, inputs.source, true});
    any = true;
  }
  if (!any)
    throw ConfigError(SourceLocation{path, 0, 0}, wanted ? fmt::format("holds no measurement of {}", wanted->name)
                                                         : "holds no measurement that constants can be fitted to");
}

calibrate::FitOptions fit_options(const Options& options) {
  calibrate::FitOptions fit;
  fit.seed = static_cast<std::uint64_t>(options.integer("seed", 0, INT64_MAX));
  fit.starts = static_cast<int>(options.integer("starts", 1, 1000));
  fit.folds_run = static_cast<int>(options.integer("folds", 0, fit.folds));
  if (isatty(STDERR_FILENO) != 0) fit.begins = [](const std::string& what) { fmt::print(stderr, "\r{}\033[K", what); };
  return fit;
}

/// The machine's fractions go to a GPU file, because efficiency files belong to a type of GPU.
ThisMachine find_machine(const Inputs& inputs, const Options& options, const ConfigTree& tree, const GpuSpec& gpu,
                         std::vector<std::string>* too_few) {
  ThisMachine machine{{}, gpu, {}};
  if (inputs.machine.empty() || options.has("keep")) return machine;
  machine.before = calibrate::load_benchmarked_gpu(tree);
  if (options.has("efficiency-dir")) return machine;
  calibrate::FitOptions fit = fit_options(options);
  fit.too_few = too_few;
  machine.fit = calibrate::fit_machine(inputs.machine, *machine.before, fit);
  machine.before = on_machine(*machine.before, machine.fit->value);
  machine.spec = machine.before->spec;
  return machine;
}

/// Constants can only be kept if they are stated for this GPU and this kernel.
void require_stated(const calibrate::FittedSet& kept, const ConfigTree& gpu) {
  for (const calibrate::FittedConstants& block : kept.blocks) {
    const bool stated =
        block_in(constants_in(*gpu, "shared"), block.block) || block_in(constants_in(*gpu, kept.kernels), block.block);
    if (!stated) throw ConfigError(fmt::format("--keep: {} has no constants of its own", block.block));
  }
}

std::vector<calibrate::FittedSet> fit_table(const Input& input, const Options& options, const ConfigTree& tree,
                                            const ThisMachine& machine, std::vector<std::string>* too_few) {
  const CsvTable& table = input.table;
  const GpuSpec& gpu = machine.spec;
  calibrate::FitOptions fit = fit_options(options);
  fit.too_few = too_few;
  std::vector<calibrate::FittedSet> out;
  const ConfigTree file = machine.on_file(tree, input.source);
  for (const auto& rules : sets_of(table)) {
    const std::string& name = rules->name();
    if (options.has("engine") && options.text("engine") != name) continue;
    fmt::print(stderr, "fitting {} of {} under {} ({} rows)\n", input.op->name, gpu.name, name, table.rows());
    fit.source = input.source;
    if (input.measured_here) fit.before = machine.constants(name);
    const Efficiency in_force = load_gpu(tree, name).efficiency;
    const BlocksBeneath beneath = blocks_beneath(file, name);
    fit.beneath = &beneath;
    if (options.has("keep")) {
      if (!constants_in(*tree, name))
        throw ConfigError(fmt::format("--keep: {} has no constants of its own under {}", gpu.name, name));
      fit.kept = &in_force;
    }
    if (!fit.source.empty()) fit.source += ", ";
    // Constants that stay also keep their source, unless another is named.
    if (!fit.kept || !fit.source.empty()) fit.source += engines_of(table, *rules);
    out.push_back({name, input.op->fit(table, gpu, *rules, fit)});
    if (fit.kept) require_stated(out.back(), tree);
    if (fit.begins) fmt::print(stderr, "\r\033[K");
    if (out.back().blocks.empty()) {
      fmt::print(stderr, "no row of {} times a kernel that {} runs: its constants stay as they are\n", input.op->name,
                 name);
    }
  }
  return out;
}

/// Writes each file once: it contains either its old content or all blocks.
void write_constants(const std::vector<calibrate::FittedSet>& all, const Options& options, const ConfigTree& gpu) {
  std::set<std::string> moved;
  if (options.has("efficiency-dir"))
    calibrate::write_efficiency_files(options.text("efficiency-dir"), gpu, all, &moved);
  if (options.has("out"))
    calibrate::write_gpu_file(options.text("out"), calibrate::with_gpu_constants(gpu, all, &moved));
  for (const std::string& block : moved)
    fmt::print(stderr, "{}: not fitted, but it inherits constants that changed\n", block);
}

/// Reports blocks with too few rows; that is an error only if no other block could be fitted.
void report_too_few(const std::vector<std::string>& too_few, const std::vector<calibrate::FittedSet>& all) {
  const bool none =
      std::all_of(all.begin(), all.end(), [](const calibrate::FittedSet& of) { return of.blocks.empty(); });
  if (none && !too_few.empty()) throw ConfigError(too_few.front());
  for (const std::string& text : too_few) fmt::print(stderr, "{}; its constants stay as they were\n", text);
}

/// Fits of all tables, and of the kernels that share another set's constants.
std::vector<calibrate::FittedSet> fit_all(const Inputs& inputs, const Options& options, const ConfigTree& tree,
                                          const ThisMachine& machine, std::vector<std::string>& too_few) {
  std::vector<calibrate::FittedSet> all;
  for (const Input& input : inputs.tables) {
    for (calibrate::FittedSet& found : fit_table(input, options, tree, machine, &too_few))
      all.push_back(std::move(found));
  }
  report_too_few(too_few, all);
  for (calibrate::FittedSet& shared : calibrate::shared_constants(all, machine.spec)) {
    if (!options.has("engine") || options.text("engine") == shared.kernels) all.push_back(std::move(shared));
  }
  return all;
}

/// One line per fraction of the machine.
std::string shares_of(const calibrate::FitResult<MachineShares>& fit) {
  reports::Table table({"this machine gives", "of its kind", "standard error", ""});
  for (std::size_t i = 0; i < fit.fields.size(); ++i) {
    const calibrate::FieldReport& field = fit.fields[i];
    const std::string meaning(MachineShares::fields()[i].name);
    table.row({meaning, fmt::format("{:.3f}", field.value),
               field.is_determined() ? fmt::format("{:.3f}", field.standard_error) : "-",
               field.state == calibrate::FieldState::kFitted ? "" : std::string(name_of(field.state))});
  }
  return table.text() + fmt::format("from {} rows of libraries, with an error of {:.1f} %\n\n", fit.on_rows.rows,
                                    100 * fit.on_rows.mape);
}

/// The GPU of --gpu, or the shipped one that the first measurements identify by its SMs and memory.
ConfigTree gpu_of(const Options& options) {
  if (options.has("gpu")) return load_named("hardware", options.text("gpu"), SourceLocation{"--gpu", 0, 0});
  const std::string path = options.value<std::vector<std::string>>("measurements").front();
  const std::string text = read_file(path, calibrate::kMostRecordBytes);
  if (!calibrate::looks_like_records(text)) throw ConfigError("--gpu: missing; which GPU were the times measured on?");
  const calibrate::Device device = calibrate::device_of(calibrate::parse_records(text, path));
  const ConfigTree found = calibrate::gpu_of_device(device);
  if (!found)
    throw ConfigError(fmt::format("--gpu: missing, and no shipped GPU has the {} SMs and {:.1f} GB of '{}'",
                                  device.sm_count, device.memory_bytes / 1e9, device.name));
  return found;
}

/// With serving runs in place of kernel times: fits the host costs of the scenario's engine.
int fit_host_costs(const Options& options) {
  for (const char* flag :
       {"gpu", "op", "engine", "out", "efficiency-dir", "keep", "source", "starts", "folds", "seed"}) {
    if (options.has(flag)) throw ConfigError(fmt::format("--{}: not with --scenario", flag));
  }
  if (!options.has("measurements")) throw ConfigError("calibrate fit: --scenario needs the files of its runs");
  std::vector<std::string> host{"--scenario", options.text("scenario")};
  for (const std::string& run : options.value<std::vector<std::string>>("measurements")) {
    host.insert(host.end(), {"--bench", run});
  }
  for (const char* flag : {"format", "columns"}) {
    if (options.has(flag)) host.insert(host.end(), {std::string("--") + flag, options.text(flag)});
  }
  return run_calibrate_host(host);
}

}  // namespace

int run_calibrate_fit(std::span<const std::string> arguments) {
  Options options(
      "roofcast calibrate fit MEASUREMENTS... [--gpu NAME|FILE] [--out FILE.yaml] [--efficiency-dir DIR]\n"
      "       roofcast calibrate fit RUN.json... --scenario SCENARIO.yaml     (as `calibrate host --bench`)",
      "Fits the constants of a GPU to what `calibrate measure` wrote, or to tables of kernel times as CSV\n"
      "(columns: roofcast validate kernels --help). Needs no GPU. What it writes to --out is a GPU file that\n"
      "--gpu FILE takes. A block with too few measurements keeps its constants and says so.");
  options.add().add_options()(
      "gpu", po::value<std::string>(),
      "NAME|FILE: GPU whose datasheet applies (default: the shipped GPU that the measurements of "
      "`calibrate measure` name)")("op", po::value<std::string>(),
                                   "OP: the operator of the tables (default: known by their columns)")(
      "engine", po::value<std::string>(),
      "trtllm | vllm | sglang: only the rows of this engine, and only its constants (default: all)")(
      "out", po::value<std::string>(), "FILE.yaml: the GPU with its new constants")(
      "efficiency-dir", po::value<std::string>(),
      "DIR: put the new blocks into DIR/<gpu>-<engine>.yaml or DIR/<gpu>-shared.yaml, where they are now; keep the "
      "others")("keep", "leave the GPU's constants as they are; renew the rows, mape and discrepancy beside them")(
      "source", po::value<std::string>(), "TEXT: where the measurements come from, for the record")(
      "starts", po::value<std::string>()->default_value("3"), "N: searches, the first from the priors")(
      "folds", po::value<std::string>()->default_value("2"),
      "N: fifths of the shape families to leave out in turn, to score them")(
      "seed", po::value<std::string>()->default_value("1"), "N: seed of the starts and samples")(
      "scenario", po::value<std::string>(), "NAME|FILE: scenario that the serving runs measured");
  options.add_format_flags();
  options.positional("measurements", -1);
  if (!options.parse(arguments)) return kDone;
  if (options.has("scenario")) return fit_host_costs(options);
  if (!options.has("measurements")) throw ConfigError("calibrate fit: which tables of measurements?");
  const std::vector<std::string>& sets = kernel_sets();
  if (options.has("engine") && std::count(sets.begin(), sets.end(), options.text("engine")) == 0)
    throw ConfigError("--engine: " + unknown_name("engine", options.text("engine"), sets));
  const ConfigTree tree = gpu_of(options);
  const GpuSpec gpu = parse_gpu_spec(ConfigReader(tree, "a GPU"));
  Inputs inputs;
  for (const std::string& path : options.value<std::vector<std::string>>("measurements"))
    read_inputs(path, options, gpu, inputs);
  std::vector<std::string> too_few;
  const ThisMachine machine = find_machine(inputs, options, tree, gpu, &too_few);
  const std::vector<calibrate::FittedSet> all = fit_all(inputs, options, tree, machine, too_few);
  write_constants(all, options, machine.on_file(tree, inputs.source));
  if (machine.fit && !machine.fit->fields.empty())
    fmt::print(options.format() == "table" ? stdout : stderr, "{}", shares_of(*machine.fit));
  fmt::print("{}", options.formatted([&](const std::string& format) {
    if (format == "table") return summary(all);
    reports::Json out = calibration_head("fit");
    out["gpu"] = gpu.name;
    out["fits"] = fits_json(all);
    return calibration_text(out, "fits", format);
  }));
  const std::string doubtful = doubts(all);
  if (!doubtful.empty()) fmt::print(options.format() == "table" ? stdout : stderr, "\n{}", doubtful);
  return kDone;
}

}  // namespace roofcast::cli
