#pragma once
#include <span>
#include <string_view>

#include "hw/cost.h"
#include "hw/dtype.h"
#include "hw/kernels/asked_experts.h"
#include "hw/kernels/routing.h"

namespace roofcast {

struct Evidence;

/// How the tokens of a rank lie when its experts run.
enum class ExpertLayout {
  kWhole,       ///< the rank holds all tokens of the group
  kReceived,    ///< the tokens that an all-to-all sent, each once
  kMasked,      ///< room for as many as may come, expert by expert (DeepEP's low-latency mode)
  kContiguous,  ///< expert behind expert, each padded to a tile (DeepEP's normal mode)
};
/// whole, received, masked, contiguous.
std::span<const std::string_view> expert_layout_names();

/// Routed experts of one layer on one GPU: gate+up and down, grouped.
struct MoeShape {
  double tokens = 0;  ///< tokens of the whole group of tp x ep GPUs
  double hidden = 0, inter = 0;
  double top_k = 0, experts = 0;
  double tp = 1, ep = 1;
  double slots = 0;  ///< experts that all ranks hold together, copies included; 0: no copies
  ExpertLayout layout = ExpertLayout::kWhole;
  double received = 0;  ///< tokens that the rank holds, unless `layout` is kWhole; 0: the mean under the routing
  bool gated = true;    ///< three matrices; else two
  Dtype weights = Dtype::kBf16;
  Dtype activations = Dtype::kBf16;
  Scales weight_scales{};
  Routing routing;
  AskedExperts asked = AskedExperts::kDefault;
  bool expanded = false;  ///< DeepGEMM in block fp8 on Blackwell: copies every choice twice more (equations-moe.md)
};
/// Whether `expanded` means anything for this shape and GPU.
bool expands_choices(const MoeShape& shape, const GpuSpec& gpu);

/// Load of the fullest rank of `ep`, relative to the mean (1 = even).
double fullest_rank_load(double tokens, double top_k, double experts, double ep, const Routing& routing);

Cost moe_experts(const MoeShape& shape, const Machine& machine);
/// What is known of the error of that time.
Evidence experts_evidence(const MoeShape& shape, const Machine& machine);

}  // namespace roofcast
