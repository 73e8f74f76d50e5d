#pragma once
#include <span>
#include <string_view>

#include "hw/cost.h"
#include "hw/dtype.h"
#include "hw/kernels/requested_experts.h"
#include "hw/kernels/routing.h"

namespace roofcast {

struct Evidence;

/// The layout of a rank's tokens when its experts run.
enum class ExpertLayout {
  kWhole,       ///< the rank holds all tokens of the group
  kReceived,    ///< the tokens received by an all-to-all, each once
  kMasked,      ///< a fixed capacity per expert (DeepEP's low-latency mode)
  kContiguous,  ///< sorted by expert, each expert padded to a tile (DeepEP's normal mode)
};
/// "whole", "received", "masked", "contiguous". Throws ConfigError at `location`.
ExpertLayout parse_expert_layout(std::string_view name, const SourceLocation& location);

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
/// Weights of the experts that a rank reads.
double expert_values(const MoeShape& shape);
/// The fit and its error behind that time.
Evidence experts_evidence(const MoeShape& shape, const Machine& machine);

}  // namespace roofcast
