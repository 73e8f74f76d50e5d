#include "calibrate/rows/moe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "hw/kernels/moe_facts.h"

namespace roofcast {
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
  constexpr std::string_view kPrefix = "power_law_";
  double exponent = 0.0;
  const char* end = name.data() + name.size();
  if (!name.starts_with(kPrefix) || std::from_chars(name.data() + kPrefix.size(), end, exponent).ptr != end ||
      !(exponent > 0.0 && exponent < 10.0)) {
    table.fail(row, "distribution",
               fmt::format("unknown distribution '{}' (valid: balanced, uniform, power_law_1.2)", name));
  }
  return {.kind = Routing::Kind::kPowerLaw, .exponent = exponent};
}

/// Experts without a gate by the kernel's name, or because the shape is one of Nemotron 3's, whose experts square a
/// ReLU (NVIDIA Nemotron 3 model cards): 22 of 512, or 6 of 128 of 2688 x 1856. vLLM 0.14 still ran them gated.
bool is_gated(const MoeRow& row) {
  if (row.header.kernel.find("nongated") != std::string::npos) return false;
  const MoeShape& s = row.shape;
  const bool nemotron =
      s.top_k == 22.0 || (s.hidden == 2688.0 && s.inter == 1856.0 && s.top_k == 6.0 && s.experts == 128.0);
  return !nemotron || row.header.engine.starts_with("vllm-0.14");
}

/// The benchmark's older draws of a power law (Routing::rest_to_first).
bool is_older_draw(std::string_view engine) { return engine.starts_with("vllm-0.14"); }

/// The benchmark lays its draws over the routing of the model, which for DeepSeek-V3 is limited to groups: vLLM's rows
/// of its shape, and all rows of TensorRT-LLM's low-latency kernels, timed with its router whatever the model. Source:
/// NVIDIA aiconfigurator (Apache-2.0), collector/vllm/collect_moe.py and collector/trtllm/collect_moe.py.
bool is_group_limited(const MoeRow& row) {
  if (row.block == MoeVariant::kLowLatency) return true;
  const MoeShape& s = row.shape;
  const bool deepseek = s.hidden == 7168.0 && s.inter == 2048.0 && s.top_k == 8.0 && s.experts == 256.0;
  return deepseek && row.header.engine.starts_with("vllm-") && !is_older_draw(row.header.engine);
}

/// Kernels that an engine has beside the default one of the format.
MoeVariant variant_of(const MoeRow& row) {
  const std::string& name = row.header.kernel;
  const auto has = [&](std::string_view word) { return name.find(word) != std::string::npos; };
  if (has("nongated")) return MoeVariant::kTwoMatrices;
  if (has("min_latency")) return MoeVariant::kLowLatency;
  if (has("expertsmodular") && row.shape.weights == Dtype::kFp8Block) return MoeVariant::kModular;
  if (has("marlin") && row.shape.weights == Dtype::kMxfp4) return MoeVariant::kMarlin;
  if (row.shape.weights == Dtype::kMxfp4 && row.shape.activations == Dtype::kFp8)
    return MoeVariant::kEightBitActivations;
  if (!has("flashinfer_cutlass")) return MoeVariant::kDefault;
  if (row.shape.weights == Dtype::kFp8) return MoeVariant::kUntuned;
  return row.shape.weights == Dtype::kFp8Block ? MoeVariant::kExpertParallel : MoeVariant::kCutlass;
}

/// A model's experts under one split: left out of a fit together.
std::uint64_t family_of_shape(const MoeRow& row) {
  const MoeShape& s = row.shape;
  return static_cast<std::uint64_t>(((s.hidden * 131.0 + s.inter) * 131.0 + s.top_k) * 131.0 + s.experts);
}

std::vector<Prediction> predict(const CsvTable& table, const BenchedGpu& gpu) {
  std::vector<Prediction> times;
  const KernelTable checked(table, kColumns);
  for (const MoeRow& row : read_moe_rows(table)) {
    if (!gpu.spec.compute_dtype(row.shape.weights, row.shape.activations)) {
      checked.fail(
          row.header.row, "dtype",
          fmt::format("{} has no unit that computes '{}'", gpu.spec.name, checked.text(row.header.row, "dtype")));
    }
    const Machine machine = gpu.machine(row.header);
    const Evidence evidence = evidence_of(moe_constants(row.shape, machine));
    times.push_back(
        {moe_experts(row.shape, machine).time, evidence.discrepancy(row.header.timing == Timing::kBenchmark)});
  }
  return times;
}

/// What an SM of an H100 or H200 is left with in products that Triton reads element by element: 7.5 TFLOP/s over the
/// slowdown of 4.9-5.0 fitted there. It is bound by instructions, not by matrix units, and so is the same elsewhere.
constexpr double kUnalignedFlopsPerSm = 1.5e12;

MoeParameters prior_of(MoeVariant variant, Dtype weights, const GpuSpec& gpu, KernelFamily family) {
  MoeParameters prior;
  put_moe_facts(prior, variant, weights, gpu, family);
  if (prior.gathers > 0.5) {
    const double per_sm = gpu.peak(Dtype::kBf16).base() / gpu.sm_count;
    prior.unaligned_slowdown = std::max(1.0, per_sm / kUnalignedFlopsPerSm);
  }
  if (prior.tile_rule == static_cast<double>(TileRule::kShipped)) {
    prior.short_row_bandwidth = 0.7;
    prior.memory_step_us = 0.5;
  }
  if (variant == MoeVariant::kUntuned) {
    prior.bandwidth_fraction = prior.compute_fraction = 0.18;
    prior.tile_us = 7.0;
  }
  return prior;
}

using Blocks = std::map<std::pair<MoeVariant, Dtype>, std::vector<MoeRow>>;

Seconds predict_row(const MoeRow& row, const MoeParameters& p, const GpuSpec& gpu) {
  return moe_experts(row.shape, p, gpu, row.header.timing).time;
}

/// One measured cell, a run of the benchmark: a model's experts under one split and distribution, over all token
/// counts.
auto cell_of(const MoeRow& row) {
  const MoeShape& s = row.shape;
  return std::tuple(family_of_shape(row), s.tp, s.ep, s.routing.exponent);
}

/// The benchmark keeps the tactics that TensorRT-LLM's tuner finds in a file named by format, hidden size, inner size a
/// rank and local experts, and finds it again by the beginning of that name: who finds a file of another split, router
/// or kernel, or of 16 experts for 1, runs untuned, whole cells at a time and 1.3-7 times as long. Source: NVIDIA
/// aiconfigurator (Apache-2.0), collector/trtllm/collect_moe.py. An engine tunes before it serves.
bool may_be_untuned(MoeVariant variant, Dtype weights, KernelFamily family) {
  const bool cutlass = variant == MoeVariant::kDefault || variant == MoeVariant::kTwoMatrices;
  const bool format = weights == Dtype::kBf16 || weights == Dtype::kFp8 || weights == Dtype::kNvfp4;
  return family == KernelFamily::kTrtllm && cutlass && format;
}

/// Cells whose median is over 1.25 times the fit are no evidence for the constants of tuned kernels: the medians part
/// there, in every such table. A benchmark's row may be of either kind: its interval is that of all.
std::vector<MoeRow> tuned_only(const std::vector<MoeRow>& rows, const MoeParameters& p, const GpuSpec& gpu) {
  constexpr double kUntuned = 1.25;
  std::map<decltype(cell_of(rows[0])), std::vector<double>> ratios;
  for (const MoeRow& row : rows) ratios[cell_of(row)].push_back(row.header.latency / predict_row(row, p, gpu));
  std::vector<MoeRow> kept;
  for (const MoeRow& row : rows) {
    if (quantile(ratios[cell_of(row)], 0.5) <= kUntuned) kept.push_back(row);
  }
  return kept;
}

void keep_facts(FitOptions& options) {
  for (const char* fact : {"tile_rule", "tile_rows_low", "tile_rows_high", "tile_fill", "all_rows", "gathers"}) {
    options.fixed.emplace_back(fact);
  }
}

std::set<double> choices_of(const std::vector<MoeRow>& rows) {
  std::set<double> choices;
  for (const MoeRow& row : rows) choices.insert(row.shape.top_k);
  return choices;
}

/// Times that do not depend on the format of the weights.
struct FixedTimes {
  double launch_us, router_us_per_choice;
};

/// vLLM's Marlin experts are measured for one model a format, each with its own number of choices a token: only the
/// rows of both formats together tell the launches from the router. Each keeps the facts of its own kernel.
bool is_marlin(const std::pair<MoeVariant, Dtype>& block, KernelFamily family) {
  const bool is =
      block == std::pair(MoeVariant::kMarlin, Dtype::kMxfp4) || block == std::pair(MoeVariant::kDefault, Dtype::kInt4);
  return is && family == KernelFamily::kVllm;
}
std::optional<FixedTimes> marlin_times(const Blocks& blocks, const GpuSpec& gpu, KernelFamily family,
                                       FitOptions options) {
  std::vector<MoeRow> rows;
  for (const auto& [key, of] : blocks) {
    if (is_marlin(key, family)) rows.insert(rows.end(), of.begin(), of.end());
  }
  options.what = fmt::format("Marlin experts of {}", gpu.name);
  if (choices_of(rows).size() < 2 || !enough_rows(rows.size(), options)) return std::nullopt;
  keep_facts(options);
  options.fixed.insert(options.fixed.end(), {"gather_loss", "empty_row_loss", "unaligned_slowdown",
                                             "short_row_bandwidth", "memory_step_us"});
  options.folds = 0;
  const auto predict = [&](const MoeRow& row, MoeParameters p) {
    put_moe_facts(p, row.block, row.shape.weights, gpu, family);
    return predict_row(row, p, gpu);
  };
  const MoeParameters both =
      fit<MoeParameters>(std::span<const MoeRow>(rows), predict, options, family_of_shape, MoeParameters{}).value;
  return FixedTimes{both.launch_us, both.router_us_per_choice};
}

FittedConstants fit_block(const std::string& name, std::vector<MoeRow> rows, const MoeParameters& prior,
                          bool untuned_cells, const GpuSpec& gpu, FitOptions options) {
  keep_facts(options);
  const auto predict = [&](const MoeRow& row, const MoeParameters& p) { return predict_row(row, p, gpu); };
  if (prior.gathers < 0.5) options.fixed.insert(options.fixed.end(), {"unaligned_slowdown", "gather_loss"});
  if (prior.gathers >= 0.5 || prior.tile_rows_high < 256.0) options.fixed.emplace_back("empty_row_loss");
  if (prior.memory_step_us == 0.0) options.fixed.insert(options.fixed.end(), {"short_row_bandwidth", "memory_step_us"});
  // A single k cannot tell the router's time from the launches'.
  if (choices_of(rows).size() < 2) options.fixed.emplace_back("router_us_per_choice");
  FitOptions quick = options;
  quick.folds = 0;
  quick.starts = 1;
  quick.max_rows = std::min(quick.max_rows, 500);
  const std::vector<MoeRow> all = untuned_cells ? rows : std::vector<MoeRow>{};
  for (int round = 0; untuned_cells && round < (options.kept ? 1 : 4); ++round) {
    const MoeParameters first =
        options.kept ? kept_constants<MoeParameters>(options, name).value
                     : fit<MoeParameters>(std::span<const MoeRow>(rows), predict, quick, family_of_shape, prior).value;
    rows = tuned_only(all, first, gpu);
  }
  FittedConstants fitted = fit_block_of(name, std::span<const MoeRow>(rows), predict, options, family_of_shape, prior);
  score_elsewhere<MoeParameters>(all, predict, fitted);
  return fitted;
}

std::optional<FittedConstants> fit_variant(MoeVariant variant, Dtype weights, std::vector<MoeRow> rows,
                                           const GpuSpec& gpu, KernelFamily family, const FitOptions& options,
                                           const std::optional<FixedTimes>& times = std::nullopt) {
  const std::string place = variant == MoeVariant::kDefault ? "moe" : fmt::format("moe_variants.{}", name_of(variant));
  const bool untuned_cells = may_be_untuned(variant, weights, family);
  FitOptions mine = options;
  mine.what = fmt::format("{}.{} of {} under {}", place, name_of(weights), gpu.name, name_of(family));
  if (!enough_rows(rows.size(), mine)) return std::nullopt;
  MoeParameters prior = prior_of(variant, weights, gpu, family);
  if (times) {
    prior.launch_us = times->launch_us, prior.router_us_per_choice = times->router_us_per_choice;
    mine.fixed.insert(mine.fixed.end(), {"launch_us", "router_us_per_choice"});
  }
  return fit_block(fmt::format("{}.{}", place, name_of(weights)), std::move(rows), prior, untuned_cells, gpu, mine);
}

/// vLLM's FlashInfer CUTLASS kernels are TensorRT-LLM's, and vLLM tunes them at warm-up, which the benchmark did not.
/// What serves is TensorRT-LLM's tuned kernel, where the table has it.
void add_tuned(const Blocks& mine, Blocks& others, const GpuSpec& gpu, KernelFamily family, const FitOptions& options,
               std::vector<FittedConstants>& out) {
  const std::pair<MoeVariant, Dtype> served{MoeVariant::kDefault, Dtype::kFp8};
  const bool untuned_only = mine.contains({MoeVariant::kUntuned, Dtype::kFp8}) && !mine.contains(served);
  if (family != KernelFamily::kVllm || !untuned_only || !others.contains(served)) return;
  std::optional<FittedConstants> tuned =
      fit_variant(served.first, served.second, std::move(others[served]), gpu, KernelFamily::kTrtllm, options);
  if (!tuned) return;
  tuned->record.standing = Standing::kCarriedOver;
  if (!options.source.empty()) tuned->record.source += "; the same kernels as TensorRT-LLM tunes them";
  out.push_back(std::move(*tuned));
}

std::vector<FittedConstants> fit_blocks(const CsvTable& table, const GpuSpec& gpu, KernelFamily family,
                                        const FitOptions& options) {
  Blocks blocks, others;
  for (MoeRow& row : read_moe_rows(table)) {
    (row.header.belongs_to(family) ? blocks : others)[{row.block, row.shape.weights}].push_back(std::move(row));
  }
  std::vector<FittedConstants> out;
  const std::optional<FixedTimes> marlin = marlin_times(blocks, gpu, family, options);
  for (auto& [key, rows] : blocks) {
    std::optional<FittedConstants> fitted = fit_variant(key.first, key.second, std::move(rows), gpu, family, options,
                                                        is_marlin(key, family) ? marlin : std::nullopt);
    if (fitted) out.push_back(std::move(*fitted));
  }
  add_tuned(blocks, others, gpu, family, options, out);
  return out;
}

}  // namespace

std::vector<MoeRow> read_moe_rows(const CsvTable& table) {
  const KernelTable checked(table, kColumns);
  std::vector<MoeRow> rows;
  rows.reserve(checked.rows());
  for (std::size_t i = 0; i < checked.rows(); ++i) {
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
    if (row.shape.top_k > row.shape.experts) checked.fail(i, "top_k", "'top_k' is more than there are experts");
    row.shape.gated = is_gated(row);
    row.block = variant_of(row);
    row.shape.variant = row.block;
    row.shape.routing.rest_to_first = is_older_draw(row.header.engine);
    row.shape.routing.grouped = is_group_limited(row);
    rows.push_back(std::move(row));
  }
  return rows;
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

}  // namespace roofcast
