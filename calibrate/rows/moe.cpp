#include "calibrate/rows/moe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/from_chars.h"
#include "hw/kernel_rules.h"
#include "hw/kernels/idle_sms.h"

namespace roofcast::calibrate {
namespace {

constexpr std::array<std::string_view, 9> kColumns{"dtype",   "tokens", "hidden_size", "inter_size",  "top_k",
                                                   "experts", "tp",     "ep",          "distribution"};
constexpr std::array<std::string_view, 2> kGroups{"dtype", "kernel"};

struct Formats {
  Dtype weights, activations;
};

Formats formats_of(const KernelTable& table, std::size_t row) {
  const std::string_view name = table.text(row, "dtype");
  if (name == "w4a16_mxfp4") return {Dtype::kMxfp4, Dtype::kBf16};
  if (name == "w4a8_mxfp4_mxfp8") return {Dtype::kMxfp4, Dtype::kFp8};
  if (name == "int4_wo") return {Dtype::kInt4, Dtype::kBf16};
  const Dtype both = table.dtype(row, "dtype");
  return {both, both};
}

Routing routing_of(const KernelTable& table, std::size_t row) {
  const std::string_view name = table.text(row, "distribution");
  if (name == "balanced") return {.kind = Routing::Kind::kBalanced, .exponent = 0.0};
  if (name == "uniform") return {.kind = Routing::Kind::kUniform, .exponent = 0.0};
  return power_law_named(table, row, name);
}

/// Whether experts have a gate. They do not if the kernel's name says so, or if the shape is one of Nemotron 3's, whose
/// experts square a ReLU (NVIDIA Nemotron 3 model cards): top 22 of 512, or top 6 of 128 of 2688 x 1856. vLLM 0.14
/// still ran these with a gate.
bool is_gated(const MoeRow& row) {
  if (row.header.kernel.find("nongated") != std::string::npos) return false;
  const MoeShape& s = row.shape;
  const bool nemotron =
      s.top_k == 22.0 || (s.hidden == 2688.0 && s.inter == 1856.0 && s.top_k == 6.0 && s.experts == 128.0);
  return !nemotron || row.header.engine.starts_with("vllm-0.14");
}

/// Whether the benchmark drew the power law in the older way (Routing::rest_to_first).
bool is_older_draw(std::string_view engine) { return engine.starts_with("vllm-0.14"); }

/// Whether the benchmark applied group-limited routing to its draws, as for DeepSeek-V3. vLLM's did so for that shape;
/// TensorRT-LLM's did so for all rows of its low-latency kernels, which were timed with that router for every model.
/// Source: NVIDIA aiconfigurator (Apache-2.0), collector/vllm/collect_moe.py and collector/trtllm/collect_moe.py.
bool is_group_limited(const MoeRow& row) {
  if (row.shape.asked == RequestedExperts::kLowLatency) return true;
  const MoeShape& s = row.shape;
  const bool deepseek = s.hidden == 7168.0 && s.inter == 2048.0 && s.top_k == 8.0 && s.experts == 256.0;
  return deepseek && row.header.engine.starts_with("vllm-") && !is_older_draw(row.header.engine);
}

/// The kernel that the engine was configured to use. Benchmarks of older releases call the Triton kernels (fused_moe)
/// whatever the server chooses. vLLM's benchmark runs fp8 CUTLASS untuned, as before warm-up.
RequestedExperts asked_of(const MoeRow& row) {
  const std::string& name = row.header.kernel;
  const auto has = [&](std::string_view word) { return name.find(word) != std::string::npos; };
  if (has("min_latency")) return RequestedExperts::kLowLatency;
  if (has("expertsmodular") && row.shape.weights == Dtype::kFp8Block) return RequestedExperts::kModular;
  if (has("marlin") && row.shape.weights == Dtype::kMxfp4) return RequestedExperts::kMarlin;
  if (has("fused_moe") && !has("flashinfer")) return RequestedExperts::kTriton;
  if (!has("flashinfer_cutlass") || row.shape.weights == Dtype::kFp8Block) return RequestedExperts::kDefault;
  return row.shape.weights == Dtype::kFp8 ? RequestedExperts::kUntuned : RequestedExperts::kCutlass;
}

/// A model's experts with one tp x ep split. A fold leaves them out together.
std::uint64_t family_of_shape(const MoeRow& row) {
  const MoeShape& s = row.shape;
  return static_cast<std::uint64_t>(((s.hidden * 131.0 + s.inter) * 131.0 + s.top_k) * 131.0 + s.experts);
}

/// Throws if the GPU has no unit for the row's format.
void require_unit(const CsvTable& table, const MoeRow& row, const GpuSpec& gpu) {
  if (gpu.compute_dtype(row.shape.weights, row.shape.activations)) return;
  const KernelTable checked(table, kColumns);
  checked.fail(row.header.row, "dtype",
               fmt::format("{} has no unit that computes '{}'", gpu.name, checked.text(row.header.row, "dtype")));
}

std::vector<Prediction> predict(const CsvTable& table, const BenchmarkedGpu& gpu) {
  std::vector<Prediction> times;
  for (const MoeRow& row : read_moe_rows(table)) {
    require_unit(table, row, gpu.spec);
    const Machine machine = gpu.machine(row.header);
    const Evidence evidence = experts_evidence(row.shape, machine);
    times.push_back({experts_row_time(row, machine), evidence.discrepancy(row.header.timing == Timing::kBenchmark)});
  }
  return times;
}

/// Orders blocks by kernel and weight format.
struct InTableOrder {
  using Key = std::pair<const ExpertsKernel*, Dtype>;
  bool operator()(const Key& a, const Key& b) const {
    return std::pair(a.first->id(), a.second) < std::pair(b.first->id(), b.second);
  }
};
using Blocks = std::map<InTableOrder::Key, std::vector<MoeRow>, InTableOrder>;

Seconds predict_row(const MoeRow& row, const ExpertsKernel& kernel, const MoeParameters& p, const GpuSpec& gpu) {
  return experts_row_time(row, kernel, p, {}, gpu);
}

/// One run of the benchmark: a model's experts with one split and distribution, at all token counts.
auto cell_of(const MoeRow& row) {
  const MoeShape& s = row.shape;
  return std::tuple(family_of_shape(row), s.tp, s.ep, s.routing.exponent);
}

/// The benchmark stores the tactics that TensorRT-LLM's tuner finds in a file named after format, hidden size, inner
/// size per rank and local experts, and looks it up by a prefix of that name. If that finds the file of another split,
/// router or kernel, or of 16 experts instead of 1, whole cells run untuned and take 1.3-7 times as long. Source:
/// NVIDIA aiconfigurator (Apache-2.0), collector/trtllm/collect_moe.py. An engine tunes before it serves.
bool may_be_untuned(const ExpertsKernel& kernel, Dtype weights, const KernelRules& rules) {
  return collector_of(rules) == Maker::kTrtllm && kernel.name().starts_with("cutlass_") && weights != Dtype::kFp8Block;
}

/// Cells whose median exceeds 1.25 times the fit are not used for the constants of tuned kernels: in every such table
/// the medians split into two groups there. A row of the benchmark may belong to either, so its interval covers both.
std::vector<MoeRow> tuned_only(const std::vector<MoeRow>& rows, const ExpertsKernel& kernel, const MoeParameters& p,
                               const GpuSpec& gpu) {
  constexpr double kUntuned = 1.25;
  std::map<decltype(cell_of(rows[0])), std::vector<double>> ratios;
  for (const MoeRow& row : rows) ratios[cell_of(row)].push_back(row.header.latency / predict_row(row, kernel, p, gpu));
  std::vector<MoeRow> kept;
  for (const MoeRow& row : rows) {
    if (quantile(ratios[cell_of(row)], 0.5) <= kUntuned) kept.push_back(row);
  }
  return kept;
}

std::set<double> choices_of(const std::vector<MoeRow>& rows) {
  std::set<double> choices;
  for (const MoeRow& row : rows) choices.insert(row.shape.top_k);
  return choices;
}

/// Times that do not depend on the weight format.
struct FixedTimes {
  double launch_us, router_us_per_choice;
};

/// vLLM's Marlin experts are measured for one model per format, each with its own top k. Only the rows of both formats
/// together separate the launches from the router. Other properties are fitted per kernel.
bool is_marlin(const ExpertsKernel& kernel) { return kernel.name().starts_with("marlin_"); }
std::optional<FixedTimes> marlin_times(const Blocks& blocks, const GpuSpec& gpu, const KernelRules& rules,
                                       FitOptions options) {
  std::vector<MoeRow> rows;
  for (const auto& [key, of] : blocks) {
    if (is_marlin(*key.first)) rows.insert(rows.end(), of.begin(), of.end());
  }
  options.what = fmt::format("Marlin experts of {}", gpu.name);
  if (choices_of(rows).size() < 2 || !enough_rows(rows.size(), options)) return std::nullopt;
  options.folds = 0;
  const ExpertsKernel& any = marlin_experts();  // all Marlin kernels have the same constants
  const auto predict = [&](const MoeRow& row, const KernelConstants& p) {
    return predict_row(row, named_experts(row.shape, gpu, rules), any.parameters(p.block), gpu);
  };
  const KernelConstants start{&any, any.defaults()};
  const MoeParameters both = any.parameters(
      fit<KernelConstants>(std::span<const MoeRow>(rows), predict, options, family_of_shape, start).value.block);
  return FixedTimes{both.launch_us, both.router_us_per_choice};
}

/// Fits one kernel in one format. Returns null if there are too few rows.
std::optional<FittedConstants> fit_block(const ExpertsKernel& kernel, Dtype weights, std::vector<MoeRow> rows,
                                         const GpuSpec& gpu, const KernelRules& rules, FitOptions options,
                                         const std::optional<FixedTimes>& times = std::nullopt) {
  const std::string name = fmt::format("{}.{}", kernel.name(), name_of(weights));
  options.what = fmt::format("{} of {} under {}", name, gpu.name, rules.name());
  if (!enough_rows(rows.size(), options)) return std::nullopt;
  MoeParameters prior = kernel.parameters(kernel.assumed(gpu, weights));
  if (times) {
    prior.launch_us = times->launch_us, prior.router_us_per_choice = times->router_us_per_choice;
    options.fixed.insert(options.fixed.end(), {"launch_us", "router_us_per_choice"});
  }
  // A single k cannot separate the router's time from the launches'.
  if (choices_of(rows).size() < 2) options.fixed.emplace_back("router_us_per_choice");
  const auto predict = [&](const MoeRow& row, const ConstantsBlock& constants) {
    return predict_row(row, kernel, kernel.parameters(constants), gpu);
  };
  const ConstantsBlock start = kernel.with_parameters(prior);
  FitOptions quick = options;
  quick.folds = 0;
  quick.starts = 1;
  quick.max_rows = std::min(quick.max_rows, 500);
  const bool untuned_cells = may_be_untuned(kernel, weights, rules);
  const std::vector<MoeRow> all = untuned_cells ? rows : std::vector<MoeRow>{};
  for (int round = 0; untuned_cells && round < (options.kept ? 1 : 4); ++round) {
    const FittedConstants first =
        fit_kernel(kernel, weights, start, std::span<const MoeRow>(rows), predict, quick, family_of_shape);
    rows = tuned_only(all, kernel, kernel.parameters(constants_as(kernel, first)), gpu);
  }
  FittedConstants fitted =
      fit_kernel(kernel, weights, start, std::span<const MoeRow>(rows), predict, options, family_of_shape);
  const ConstantsBlock found = constants_as(kernel, fitted);
  score_others(
      all, [&](const MoeRow& row) { return predict(row, found); }, fitted);
  return fitted;
}

/// vLLM's FlashInfer CUTLASS kernels are TensorRT-LLM's. vLLM tunes them at warm-up, but its benchmark did not. Serving
/// is priced with TensorRT-LLM's tuned kernel if its table has it.
void add_tuned(const Blocks& mine, Blocks& others, const GpuSpec& gpu, const KernelRules& rules,
               const FitOptions& options, std::vector<FittedConstants>& out) {
  const std::pair served{&cutlass_experts(), Dtype::kFp8};
  const std::pair untuned{&cutlass_untuned_experts(), Dtype::kFp8};
  if (rules.name() != kernels_of(Maker::kVllm) || !mine.contains(untuned) || !others.contains(served)) return;
  std::optional<FittedConstants> tuned = fit_block(*served.first, served.second, std::move(others[served]), gpu,
                                                   *kernel_rules(kernels_of(Maker::kTrtllm)), options);
  if (!tuned) return;
  tuned->record.provenance = Provenance::kCarriedOver;
  if (!options.source.empty()) tuned->record.source += "; the same kernels as TensorRT-LLM tunes them";
  out.push_back(std::move(*tuned));
}

std::vector<FittedConstants> fit_blocks(const CsvTable& table, const GpuSpec& gpu, const KernelRules& rules,
                                        const FitOptions& options) {
  const std::shared_ptr<const KernelRules> trtllm = kernel_rules(kernels_of(Maker::kTrtllm));
  Blocks blocks, others;
  for (MoeRow& row : read_moe_rows(table)) {
    const bool own = row.header.belongs_to(rules);
    if (own) require_unit(table, row, gpu);
    const ExpertsKernel& kernel = named_experts(row.shape, gpu, own ? rules : *trtllm);
    (own ? blocks : others)[{&kernel, row.shape.weights}].push_back(std::move(row));
  }
  std::vector<FittedConstants> out;
  const std::optional<FixedTimes> marlin = marlin_times(blocks, gpu, rules, options);
  for (auto& [key, rows] : blocks) {
    std::optional<FittedConstants> fitted = fit_block(*key.first, key.second, std::move(rows), gpu, rules, options,
                                                      is_marlin(*key.first) ? marlin : std::nullopt);
    if (fitted) out.push_back(std::move(*fitted));
  }
  add_tuned(blocks, others, gpu, rules, options, out);
  return out;
}

}  // namespace

const KernelOf<ExpertsLoopParameters>* experts_loop_of(const ExpertsKernel& kernel) {
  return kernel.traits().rows == ExpertRows::kPadded ? &eager_experts_loop() : nullptr;
}

ExpertsLoopParameters experts_loop_prior() { return {.host_lead_us = 150.0, .host_floor_us = 350.0}; }

Seconds experts_row_time(const MoeRow& row, const ExpertsKernel& kernel, const MoeParameters& p,
                         const ExpertsLoopParameters& loop, const GpuSpec& gpu) {
  const bool repeated = row.header.timing == Timing::kBenchmark;
  const Seconds time = moe_experts_with(row.shape, kernel.traits(), p, gpu, repeated).time;
  if (!repeated) return time;
  return std::max(time + loop.host_lead_us * kMicrosecond, loop.host_floor_us * kMicrosecond);
}

Seconds experts_row_time(const MoeRow& row, const Machine& machine) {
  if (machine.fidelity == Fidelity::kIdeal) return moe_experts(row.shape, machine).time;
  const ExpertsChoice choice = choose_experts(row.shape, machine);
  const MoeParameters p = choice.kernel->parameters(
      choice.constants != nullptr ? *choice.constants : choice.kernel->assumed(*machine.gpu, row.shape.weights));
  ExpertsLoopParameters loop;
  if (const auto* times = experts_loop_of(*choice.kernel)) {
    const auto* measured = machine.efficiency->find(*times, row.shape.weights);
    loop = measured != nullptr ? measured->value : experts_loop_prior();
  }
  static const ConstantsBlock kNone;
  const Cost cost = with_sms_to_spare(
      choice.constants != nullptr ? *choice.constants : kNone, *machine.gpu,
      [&](const GpuSpec& used) { return Cost{.time = experts_row_time(row, *choice.kernel, p, loop, used)}; });
  return cost.time;
}

Routing power_law_named(const KernelTable& table, std::size_t row, std::string_view name) {
  constexpr std::string_view kPrefix = "power_law_";
  double exponent = 0.0;
  const char* end = name.data() + name.size();
  if (!name.starts_with(kPrefix) || roofcast::from_chars(name.data() + kPrefix.size(), end, exponent).ptr != end ||
      !(exponent > 0.0 && exponent < 10.0)) {
    table.fail(row, "distribution",
               fmt::format("unknown distribution '{}' (valid: balanced, uniform, power_law_1.2)", name));
  }
  return {.kind = Routing::Kind::kPowerLaw, .exponent = exponent};
}

std::vector<MoeRow> read_moe_rows(const CsvTable& table) {
  return read_rows(table, kColumns, [](const KernelTable& checked, std::size_t i) {
    MoeRow row;
    row.header = checked.header(i);
    const Formats formats = formats_of(checked, i);
    row.shape = {.tokens = checked.number(i, "tokens", 1),
                 .hidden = checked.number(i, "hidden_size", 1),
                 .inter = checked.number(i, "inter_size", 1),
                 .top_k = checked.number(i, "top_k", 1),
                 .experts = checked.number(i, "experts", 1),
                 .tp = checked.number(i, "tp", 1),
                 .ep = checked.number(i, "ep", 1),
                 .weights = formats.weights,
                 .activations = formats.activations,
                 .routing = routing_of(checked, i)};
    if (row.shape.top_k > row.shape.experts) checked.fail(i, "top_k", "'top_k' exceeds the number of experts");
    row.shape.gated = is_gated(row);
    row.shape.asked = asked_of(row);
    row.shape.routing.rest_to_first = is_older_draw(row.header.engine);
    row.shape.routing.grouped = is_group_limited(row);
    return row;
  });
}

KernelOperator moe_operator() {
  return {.name = "moe",
          .help =
              "routed experts of one layer: engine, kernel, dtype, tokens, hidden_size, inter_size, top_k, experts, "
              "tp, ep, distribution",
          .columns = kColumns,
          .groups = kGroups,
          .predict = predict,
          .fit = fit_blocks};
}

}  // namespace roofcast::calibrate
