// roofcast calibrate show: constants and ceilings against the datasheet, and their plots.

#include <fmt/format.h>

#include <algorithm>

#include "base/config_library.h"
#include "base/read_file.h"
#include "base/text.h"
#include "calibrate/ceilings.h"
#include "calibrate/record_tables.h"
#include "calibrate/validate.h"
#include "cli/calibrate_charts.h"
#include "cli/calibration_json.h"
#include "cli/command.h"
#include "cli/options.h"
#include "hw/constants_file.h"
#include "hw/kernel_rules.h"
#include "reports/plot_files.h"
#include "reports/table.h"
#include "sim/plan/power.h"
#include "sim/plan/scenario.h"
#include "sim/step/step_model.h"

namespace roofcast::cli {
namespace po = boost::program_options;
namespace {

std::string percent(double fraction) { return fmt::format("{:.1f} %", 100 * fraction); }

std::string ceiling_table(const std::vector<calibrate::Ceiling>& ceilings) {
  reports::Table table({"ceiling", "reached", "unit", "datasheet", "share", "standard error", "read off"});
  for (const calibrate::Ceiling& c : ceilings) {
    table.row({c.name, reports::significant(c.value), c.unit, c.datasheet ? reports::significant(*c.datasheet) : "-",
               c.datasheet ? percent(c.value / *c.datasheet) : "-",
               c.relative_error > 0 ? percent(c.relative_error) : "-", c.from});
  }
  return table.text();
}

std::string constants_table(const std::vector<calibrate::ShownBlock>& blocks) {
  reports::Table table(
      {"constants", "constant", "value", "standard error", "rows", "MAPE", "discrepancy", "provenance"});
  for (const calibrate::ShownBlock& block : blocks) {
    for (const calibrate::ShownBlock::Constant& c : block.constants) {
      const std::string error = c.standard_error ? reports::significant(*c.standard_error, 2)
                                : c.stated       ? "fixed"
                                                 : "inherited";
      table.row({block.family + " " + block.block, c.name, reports::significant(c.value, 5), error,
                 std::to_string(block.rows), reports::significant(block.mape, 3),
                 reports::significant(block.discrepancy, 3), block.provenance});
    }
  }
  return table.text();
}

/// The number of constants that the rows determine.
std::string constants_count(const std::vector<calibrate::ShownBlock>& blocks) {
  constexpr int kFew = 10;
  reports::Table table(
      {"engine", "blocks", "determined", "inherited", "fixed", "rows", "rows per constant", "blocks under ten"});
  std::vector<std::string_view> families{kSharedMap};
  const auto sets = all_kernel_rules();
  for (const auto& rules : sets) families.push_back(rules->name());
  for (const std::string_view family : families) {
    int count = 0, told = 0, beneath = 0, held = 0, few = 0;
    long rows = 0;
    for (const calibrate::ShownBlock& block : blocks) {
      if (block.family != family) continue;
      const auto of = [&](auto&& is) {
        return static_cast<int>(std::count_if(block.constants.begin(), block.constants.end(), is));
      };
      const int here = of([](const calibrate::ShownBlock::Constant& c) { return c.standard_error.has_value(); });
      const int taken = of([](const calibrate::ShownBlock::Constant& c) { return !c.stated; });
      ++count, told += here, beneath += taken, held += static_cast<int>(block.constants.size()) - here - taken;
      if (here > 0) rows += block.rows;
      if (here > 0 && block.rows < kFew * here) ++few;
    }
    if (count == 0) continue;
    table.row({std::string(family), std::to_string(count), std::to_string(told), std::to_string(beneath),
               std::to_string(held), std::to_string(rows),
               told > 0 ? fmt::format("{:.0f}", static_cast<double>(rows) / told) : "-", std::to_string(few)});
  }
  return table.text();
}

/// The GPU of --gpu, or the one in configs/hardware that matches the device; null if there is none.
ConfigTree gpu_of(const Options& options, const calibrate::RecordFile& file) {
  if (options.has("gpu")) {
    const ConfigTree tree = load_named("hardware", options.text("gpu"), SourceLocation{"--gpu", 0, 0});
    calibrate::require_device(file, parse_gpu_spec(ConfigReader(tree, "a GPU")));
    return tree;
  }
  return calibrate::gpu_of_device(calibrate::device_of(file));
}

/// Microseconds of the attention in a measured step, if the file has it at the same shape.
std::optional<double> attention_of(const calibrate::RecordFile& file, const calibrate::Record& step) {
  const auto same = [&](const calibrate::Record& r) {
    const calibrate::Point& p = r.point;
    return p.op == "attention_decode" && r.has_time() && p.number("batch") == step.point.number("batch") &&
           p.number("context_len") == step.point.number("context") && p.number("heads") == 32 &&
           p.number("kv_heads") == 8 && p.number("head_dim") == 128;
  };
  const auto found = std::find_if(file.records.begin(), file.records.end(), same);
  if (found == file.records.end()) return std::nullopt;
  return calibrate::statistics_of(found->samples_us).median_us;
}

/// Measured decode steps against the GPU time that `estimate` predicts; empty if there are none. The step runs our own
/// attention, estimate an engine's: `this attention` substitutes the measured one.
std::string step_table(const calibrate::RecordFile& file, const std::string& gpu_file) {
  reports::Table table({"decode step, Llama-3.1-8B bf16", "context", "measured ms", "estimated ms", "error",
                        "this attention ms", "error"});
  std::optional<StepModel> model;
  double sum = 0, rows = 0;
  for (const calibrate::Record& r : file.records) {
    if (r.point.op != "decode_step" || !r.has_time()) continue;
    if (!model) {
      ConfigTree tree = make_map({}, SourceLocation{"calibrate show", 0, 0});
      tree = with_assignment(tree, "model=llama-3.1-8b", "calibrate show");
      tree = with_value(tree, "gpu", make_scalar(gpu_file, SourceLocation{"--gpu", 0, 0}), "--gpu");
      model.emplace(read_scenario(tree, Fidelity::kCalibrated).deployment);
    }
    const auto batch = static_cast<double>(r.point.number("batch")),
               context = static_cast<double>(r.point.number("context"));
    const StepBatch step{.decodes = static_cast<int>(batch), .decode_context = batch * context, .prefills = {}};
    const StepBreakdown priced = model->breakdown(step);
    const double estimated = priced.gpu_time.in(kMillisecond);
    const double measured = calibrate::statistics_of(r.samples_us).median_us / 1000;
    const auto error = [&](double ms) { return fmt::format("{:+.1f} %", 100 * (ms / measured - 1)); };
    std::string own = "-", own_error = "-";
    if (const std::optional<double> attention = attention_of(file, r)) {
      double with_it = estimated;
      for (const OperatorTime& o : priced.operators) {
        if (o.name == "attention") with_it += o.count * *attention / 1000 - o.cost.time.in(kMillisecond);
      }
      own = reports::significant(with_it);
      own_error = error(with_it);
      sum += std::abs(with_it / measured - 1), rows += 1;
    }
    const bool loaded = r.point.find("load_ms") != nullptr;
    table.row({fmt::format("batch {:.0f}{}", batch, loaded ? ", under load" : ""), fmt::format("{:.0f}", context),
               reports::significant(measured), reports::significant(estimated), error(estimated), own, own_error});
  }
  if (!model) return "";
  const std::string mean = rows > 0 ? fmt::format("mean error with this attention {}\n", percent(sum / rows)) : "";
  return "\n" + table.text() + mean;
}

/// Board power under load against power_of() for the same work in the same time.
std::string power_table(const calibrate::RecordFile& file, const GpuSpec& gpu) {
  reports::Table table({"board power", "measured W", "forecast W", "error", "clock MHz"});
  bool any = false;
  for (const calibrate::Record& r : file.records) {
    constexpr std::int64_t kMeanOver = 1000;  // ms: averaging time of NVML's reading
    const bool steady = r.point.find("load_ms") != nullptr && r.point.number("load_ms") > kMeanOver;
    if (!steady || !r.has_time() || r.during.power_w <= 0) continue;
    const double seconds = calibrate::statistics_of(r.samples_us).median_us * 1e-6;
    Utilization busy{.memory = r.bytes / seconds / gpu.memory_bandwidth.base()};
    if (!r.point.dtype.empty())
      busy.compute = r.flops / seconds / gpu.peak(parse_dtype(r.point.dtype, SourceLocation{"dtype", 0, 0})).base();
    const double forecast = power_of(gpu, busy).value;
    any = true;
    table.row({r.point.key(), fmt::format("{:.0f}", r.during.power_w), fmt::format("{:.0f}", forecast),
               fmt::format("{:+.1f} %", 100 * (forecast / r.during.power_w - 1)),
               fmt::format("{:.0f}", r.during.sm_clock_mhz)});
  }
  return any ? "\n" + table.text() : "";
}

std::string kernel_errors(const std::vector<calibrate::MeasuredTable>& tables,
                          const std::vector<calibrate::KernelValidation>& found) {
  reports::Table table({"constants in force against these measurements", "rows", "MAPE", "median", "bias"});
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const ErrorSummary& all = found[i].groups.back().errors;
    table.row({std::string(tables[i].op), std::to_string(all.rows), percent(all.mape), percent(all.median),
               fmt::format("{:+.1f} %", 100 * all.bias)});
  }
  return "\n" + table.text();
}

std::string left_out(const calibrate::RecordFile& file) {
  std::string text;
  const bool always = calibrate::is_always_held_down(file);
  for (const calibrate::Record& r : file.records) {
    if (!always && r.has_time() && is_held_down(r)) text += r.point.key() + ": power or heat held the clock down\n";
    if (!r.has_time())
      text += fmt::format("{}: {}{}{}\n", r.point.key(), name_of(r.stop), r.note.empty() ? "" : ": ", r.note);
  }
  return text.empty() ? "" : "\n" + text;
}

void draw(const Options& options, std::vector<reports::Chart> charts) {
  if (!options.has("svg")) return;
  std::erase_if(charts, [](reports::Chart& chart) { return !reports::clean(chart); });
  for (const std::string& path : reports::write_plots(charts, reports::PlotFormat::kSvg, options.text("svg")))
    fmt::print(stderr, "{}\n", path);
}

/// Measurements as data, one row per ceiling.
std::string records_data(const calibrate::RecordFile& file, const std::optional<calibrate::BenchmarkedGpu>& gpu,
                         const std::vector<calibrate::KernelValidation>& found, const std::string& format) {
  reports::Json out = calibration_head("measurements");
  out["device"] = calibrate::device_of(file).name;
  out["ceilings"] = ceilings_json(calibrate::ceilings_of(file, gpu ? &gpu->spec : nullptr));
  out["kernels"] = kernel_errors_json(found);
  return calibration_text(out, "ceilings", format);
}

bool wants_data(const Options& options) { return options.format() != "table" || options.has("columns"); }

int show_records(const Options& options, const calibrate::RecordFile& file) {
  const calibrate::Device& device = calibrate::device_of(file);
  if (file.torn) fmt::print(stderr, "{}: the last line is cut off; it is left out\n", file.path);
  const bool data = wants_data(options);
  if (!data)
    fmt::print("{}, driver {}, CUDA {}, {} measurements\n\n", device.name, device.driver.empty() ? "-" : device.driver,
               device.cuda.empty() ? "-" : device.cuda, file.records.size());
  const ConfigTree tree = gpu_of(options, file);
  if (!tree)
    fmt::print(stderr, "no file of configs/hardware has as many SMs and as much memory: no datasheet beside it\n");
  const std::optional<calibrate::BenchmarkedGpu> gpu =
      tree ? std::optional(calibrate::load_benchmarked_gpu(tree)) : std::nullopt;
  if (!data) fmt::print("{}", ceiling_table(calibrate::ceilings_of(file, gpu ? &gpu->spec : nullptr)));
  const std::vector<calibrate::MeasuredTable> tables = tables_of(file);
  std::vector<calibrate::KernelValidation> found;
  if (gpu && !tables.empty()) {
    for (const calibrate::MeasuredTable& table : tables)
      found.push_back(calibrate::validate_kernels(
          table.table, *gpu, &calibrate::find_operator(table.op, SourceLocation{file.path, 0, 0})));
    if (!data) fmt::print("{}", kernel_errors(tables, found));
  }
  if (data) {
    fmt::print("{}",
               options.formatted([&](const std::string& format) { return records_data(file, gpu, found, format); }));
  } else {
    if (gpu) fmt::print("{}", step_table(file, options.has("gpu") ? options.text("gpu") : gpu->spec.name));
    if (gpu && power_known(gpu->spec)) fmt::print("{}", power_table(file, gpu->spec));
    fmt::print("{}", left_out(file));
  }
  draw(options, measurement_charts(file, tables, found));
  return kDone;
}

int show_constants(const Options& options, const std::string& path) {
  const ConfigTree tree = load_named("hardware", path, SourceLocation{"calibrate show", 0, 0});
  const GpuSpec gpu = parse_gpu_spec(ConfigReader(tree, "a GPU"));
  const std::vector<calibrate::ShownBlock> blocks = calibrate::blocks_of(tree);
  if (blocks.empty()) {
    fmt::print("{}: no constants of its own\n", gpu.name);
    return kDone;
  }
  const std::vector<calibrate::Ceiling> ceilings = calibrate::ceilings_of(blocks, gpu);
  fmt::print("{}", options.formatted([&](const std::string& format) {
    if (format == "table")
      return fmt::format("{}, as fitted\n\n{}\n{}\n{}", gpu.name, ceiling_table(ceilings), constants_table(blocks),
                         constants_count(blocks));
    reports::Json out = calibration_head("constants");
    out["gpu"] = gpu.name;
    out["ceilings"] = ceilings_json(ceilings);
    out["constants"] = constants_json(blocks);
    return calibration_text(out, "constants", format);
  }));
  draw(options, constants_charts(ceilings));
  return kDone;
}

}  // namespace

int run_calibrate_show(std::span<const std::string> arguments) {
  Options options(
      "roofcast calibrate show FILE.jsonl|FILE.yaml|NAME [--gpu NAME|FILE] [--svg DIR]",
      "Measurements: ceilings beside the datasheet, the constants in force against each kernel, decode steps\n"
      "against `estimate`, and what could not be measured. A GPU file: its constants with standard errors.");
  options.add().add_options()(
      "gpu", po::value<std::string>(),
      "NAME|FILE: GPU whose datasheet and constants apply (default: recognized by SMs and memory)")(
      "svg", po::value<std::string>(), "DIR: plots as SVG");
  options.add_format_flags();
  options.positional("file", 1);
  if (!options.parse(arguments)) return kDone;
  if (!options.has("file")) throw ConfigError("calibrate show: which file? measurements as JSONL, or a GPU file");
  const std::string& path = options.value<std::vector<std::string>>("file").front();
  if (path.ends_with(".jsonl")) return show_records(options, calibrate::read_records(path));
  return show_constants(options, path);
}

}  // namespace roofcast::cli
