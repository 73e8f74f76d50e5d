#pragma once
#include <span>
#include <string_view>

#include "base/error.h"
#include "hw/cost.h"
#include "hw/dtype.h"

namespace roofcast {

struct Evidence;

/// How tokens choose experts.
///   kBalanced    evenly
///   kUniform     each token independently, all experts equally likely
///   kPowerLaw    as NVIDIA aiconfigurator draws its benchmarks
///   kPopularity  each token independently, some experts more popular than others
struct Routing {
  enum class Kind { kBalanced, kUniform, kPowerLaw, kPopularity };
  Kind kind = Kind::kPopularity;
  double exponent = 1.01;      ///< exponent of the power law
  double skew = 1.0;           ///< standard deviation of the logarithm of an expert's popularity
  bool rest_to_first = false;  ///< the power law as drawn by the benchmark of vLLM 0.14
  bool grouped = false;        ///< balanced or power law, then group-limited (hw/kernels/group_limit.h)
  double redundant = 0;        ///< redundant experts, beyond the first copy of each; copied and placed as by EPLB
  bool levelled = false;       ///< the power law with equal load on all ranks, as EPLB places experts
};

/// The layout of a rank's tokens when its experts run.
enum class ExpertLayout {
  kWhole,       ///< the rank holds all tokens of the group
  kReceived,    ///< the tokens received by an all-to-all, each once
  kMasked,      ///< a fixed capacity per expert (DeepEP's low-latency mode)
  kContiguous,  ///< sorted by expert, each expert padded to a tile (DeepEP's normal mode)
};
/// whole, received, masked, contiguous.
std::span<const std::string_view> expert_layout_names();

/// The expert kernel that an engine is configured to use where it has it.
enum class RequestedExperts { kDefault, kLowLatency, kModular, kCutlass, kMarlin, kUntuned, kTriton, kTrtllmGen };
/// default, low_latency, modular, cutlass, marlin, triton, trtllm_gen. "untuned" is measured by some benchmarks, but no
/// engine serves with it.
std::span<const std::string_view> requested_experts_names();
RequestedExperts parse_requested_experts(std::string_view name, const Mark& mark);

/// Routed experts of one layer on one GPU: grouped GEMMs gate+up and down.
struct MoeShape {
  double tokens = 0;  ///< tokens of the whole group of tp x ep GPUs
  double hidden = 0, inter = 0;
  double top_k = 0, experts = 0;
  double tp = 1, ep = 1;
  double slots = 0;  ///< experts held by all ranks together, including redundant copies; 0: no copies
  ExpertLayout layout = ExpertLayout::kWhole;
  double received = 0;  ///< tokens held by the rank, unless `layout` is kWhole; 0: the mean for the routing
  bool gated = true;    ///< three matrices; else two
  Dtype weights = Dtype::kBf16;
  Dtype activations = Dtype::kBf16;
  Scales weight_scales{};
  Routing routing;
  RequestedExperts asked = RequestedExperts::kDefault;
  bool expanded = false;  ///< DeepGEMM in block fp8 on Blackwell: each choice is copied twice more (equations-moe.md)
};
/// Whether `expanded` has an effect for this shape and GPU.
bool expands_choices(const MoeShape& shape, const GpuSpec& gpu);

/// Load of the most loaded of `ep` ranks, relative to the mean (1 = even).
double max_rank_load(double tokens, double top_k, double experts, double ep, const Routing& routing);

Cost moe_experts(const MoeShape& shape, const Machine& machine);
/// The fit and its error behind that time.
Evidence experts_evidence(const MoeShape& shape, const Machine& machine);

}  // namespace roofcast
