#pragma once
#include <span>
#include <string_view>

#include "hw/cost.h"
#include "hw/kernel_fwd.h"

namespace roofcast {

enum class Collective { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kSend };
std::string_view name_of(Collective collective);

/// The ranks of a collective and their placement.
struct Group {
  int gpus = 1;
  int gpus_per_node = 8;  ///< ranks of this group in one NVLink domain; at most `gpus`
  bool captured = true;   ///< launched from a CUDA graph; else host launches bound the time from below
  bool summable = true;   ///< the switch can add this type (16- and 32-bit floats, not int8)
};

/// One-shot and two-shot all-reduce kernels of the engines, within one NVLink domain.
struct CustomAllReduceParameters {
  double launch_us = 3.5;
  double peer_us = 0.07;
  double one_shot_fraction = 0.6;
  double two_shot_us = 10.0;
  double two_shot_fraction = 0.62;
  double size_limit_mb = 16.0;
  double switch_us = 14.0;
  double switch_fraction = 0.0;  ///< 0: the engine does not reduce in the NVLink switch
  double eager_us = 19.0;
  double eager_us_per_doubling = 1.3;
  double copy_fraction = 0.7;
  static std::span<const Parameter<CustomAllReduceParameters>> fields();
};
/// One collective of NCCL. Its three protocols trade latency for bandwidth: LL, LL128 and Simple.
struct NcclParameters {
  double launch_us = 5.5;
  double step_us = 0.9;
  double ll_fraction = 0.35;
  double ll128_us = 3.0;
  double ll128_step_us = 0.2;
  double ll128_fraction = 0.5;
  double simple_us = 9.0;
  double simple_step_us = 2.0;
  double simple_fraction = 0.85;
  double own_copy = 0.5;
  double switch_us = 69.0;
  double switch_fraction = 0.0;  ///< 0: the switch does not reduce
  double network_us = 8.0;
  double network_fraction = 0.85;
  static std::span<const Parameter<NcclParameters>> fields();
};

const KernelOf<CustomAllReduceParameters>& custom_all_reduce_kernel();
/// The kernel that also normalizes the sum, for engines that take it from another library.
const KernelOf<CustomAllReduceParameters>& fused_all_reduce_kernel();
const KernelOf<NcclParameters>& nccl_kernel(Collective kind);

/// Assumed constants of NCCL's `kind` on an unmeasured generation of GPUs.
NcclParameters nccl_prior(Collective kind, const GpuSpec& gpu);

/// `bytes` is the message of one rank: the whole tensor for all-reduce and send, the rank's part of the result for
/// all-gather, its whole input for reduce-scatter and all-to-all. Costs nothing on one GPU.
Cost collective(Collective kind, Bytes bytes, const Group& group, const Machine& machine);
/// A send from each GPU of a pipeline stage to the next stage: the mean over the boundaries between `stages` stages of
/// `gpus` GPUs. Boundaries inside a fabric domain use the fabric, the others the network.
Cost pipeline_send(Bytes bytes, int gpus, int stages, const Machine& machine);
/// An all-reduce by the engine's own kernel that also adds the residual and normalizes the sum. Call only if
/// `fuses_all_reduce`.
Cost all_reduce_norm(Bytes bytes, const Group& group, const Machine& machine);
/// Whether that kernel can run: it reads peers' memory, so it needs one NVLink domain, and no more ranks than its
/// tables have.
bool fuses_all_reduce(const Group& group, const GpuSpec& gpu);
/// NCCL alone, without the engines' custom kernels.
Cost nccl(Collective kind, Bytes bytes, const Group& group, const Machine& machine);

/// The same for given constants, for fits.
Seconds nccl_time(Collective kind, Bytes bytes, const Group& group, const NcclParameters& p, const GpuSpec& gpu);
Seconds custom_all_reduce_time(Bytes bytes, const Group& group, const CustomAllReduceParameters& p,
                               const NcclParameters& fallback, const GpuSpec& gpu);

}  // namespace roofcast
