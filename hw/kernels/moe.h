#pragma once
#include <cstddef>
#include <span>
#include <string_view>

#include "hw/cost.h"
#include "hw/dtype.h"
#include "hw/parameters.h"

namespace roofcast {

/// How tokens choose experts: evenly; each for itself, all experts alike; as NVIDIA aiconfigurator draws its benchmarks
/// (few tokens spread as far as they go, many by a power law); each for itself, some experts more popular than others.
struct Routing {
  enum class Kind { kBalanced, kUniform, kPowerLaw, kPopularity };
  Kind kind = Kind::kPopularity;
  double exponent = 1.01;      ///< of the power law
  double skew = 1.0;           ///< standard deviation of the logarithm of an expert's popularity
  bool rest_to_first = false;  ///< of the power law: as the benchmark of vLLM 0.14 drew it
  bool grouped = false;        ///< of balanced and power law: then limited to groups (hw/kernels/group_limit.h)
};

/// Which of an engine's kernels runs. An engine has one by default for a format, and others that it takes by itself
/// where the shape asks for them (the first four); the rest are chosen by whoever knows better.
enum class MoeVariant {
  kDefault,
  kTwoMatrices,          ///< experts without a gate
  kExpertParallel,       ///< where the engine takes another kernel under expert parallelism
  kEightBitActivations,  ///< four-bit weights times eight-bit activations
  kUntuned,              ///< no tactics chosen at warm-up, as some benchmarks time it; never when serving
  kLowLatency,
  kModular,
  kCutlass,
  kMarlin,
};
inline constexpr std::size_t kMoeVariantCount = 9;
std::string_view name_of(MoeVariant variant);

/// Routed experts of one layer on one GPU: gate+up and down, grouped.
struct MoeShape {
  double tokens = 0;  ///< of the whole group of tp x ep GPUs
  double hidden = 0, inter = 0;
  double top_k = 0, experts = 0;
  double tp = 1, ep = 1;
  bool gated = true;  ///< three matrices; else two
  Dtype weights = Dtype::kBf16;
  Dtype activations = Dtype::kBf16;
  Scales weight_scales{};
  Routing routing;
  MoeVariant variant = MoeVariant::kDefault;
  bool expanded = false;  ///< DeepGEMM in block fp8 on Blackwell: copies every choice twice more (equations-moe.md)
};
/// Whether `expanded` means anything for this shape and GPU.
bool expands_choices(const MoeShape& shape, const GpuSpec& gpu);

/// Distinct experts that `tokens` tokens hit, of all experts: min(E, kT) balanced, E(1-(1-k/E)^T)
/// drawn uniformly, fewer under a power law.
double experts_hit(double tokens, double top_k, double experts, const Routing& routing);
/// Load of the fullest rank of `ep`, relative to the mean (1 = even).
double fullest_rank_load(double tokens, double top_k, double experts, double ep, const Routing& routing);

/// How a grouped GEMM picks the rows of its tiles; the values of MoeParameters::tile_rule.
enum class TileRule {
  kTuned,       ///< the fastest of those allowed
  kLocalMean,   ///< tokens of the whole group over the experts of one rank: too tall under expert parallelism
  kGlobalMean,  ///< tokens of an expert on average
  kTwoSizes,    ///< the smaller up to as many tokens as local experts, then the larger
  kShipped,     ///< tuned where vLLM ships a table of tiles for an A100, else its default: the two sizes, 64 columns
};

struct MoeParameters {
  double launch_us = 20.0;
  double launch_us_per_expert = 0.02;
  double ns_per_assignment = 0.5;
  double bandwidth_fraction = 0.88;
  double compute_fraction = 0.9;
  double activation_passes = 1.0;
  double tile_overhead_rows = 15.0;
  double tile_us = 1.2;
  double expert_map_us = 0.0;
  double router_us_per_choice = 0.0;
  double gather_loss = 0.0;
  double empty_row_loss = 0.0;
  double unaligned_slowdown = 1.0;
  double short_row_bandwidth = 1.0;
  double memory_step_us = 0.0;
  double tile_rule = 0.0;  ///< a TileRule; this and what follows are facts of a kernel, not fitted
  double tile_rows_low = 16.0, tile_rows_high = 128.0;
  double tile_fill = 1.0;
  double all_rows = 0.0;
  double gathers = 0.0;
  static std::span<const Parameter<MoeParameters>> fields();
};

/// The constants that price a layer: of the variant asked for, the one the engine takes by itself, its default, the
/// nearest format's default. Null: priors.
struct MoeConstants {
  const Fitted<MoeParameters>* fitted = nullptr;
  bool lent = false;  ///< of another kernel or format than asked for
};
MoeConstants moe_constants(const MoeShape& shape, const Machine& machine);

Cost moe_experts(const MoeShape& shape, const Machine& machine);
/// With constants of the caller's choice: what the fit calls.
Cost moe_experts(const MoeShape& shape, const MoeParameters& parameters, const GpuSpec& gpu, Timing timing);

}  // namespace roofcast
