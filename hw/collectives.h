#pragma once
#include <span>
#include <string_view>

#include "hw/cost.h"
#include "hw/kernel_of.h"

namespace roofcast {

enum class Collective { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kSend };
std::string_view name_of(Collective collective);

/// Ranks of a collective and where they sit.
struct Group {
  int gpus = 1;
  int gpus_per_node = 8;  ///< ranks of this group in one NVLink domain; at most `gpus`
  bool captured = true;   ///< launched from a CUDA graph; else the host's launch is a lower bound
  bool summable = true;   ///< the switch can add this type (16- and 32-bit floats; not int8)
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
  double switch_fraction = 0.0;  ///< 0: the engine does not add in the NVLink switch
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
/// The kernel that also norms the sum, for engines that borrow it from another one.
const KernelOf<CustomAllReduceParameters>& fused_all_reduce_kernel();
const KernelOf<NcclParameters>& nccl_kernel(Collective kind);

/// Assumed constants of NCCL's `kind` on a generation of GPUs that was not measured.
NcclParameters nccl_prior(Collective kind, const GpuSpec& gpu);

/// `bytes` is the message one rank holds: the whole tensor for all-reduce and send, its own part of the result for
/// all-gather, its whole input for reduce-scatter and all-to-all. Costs nothing on one GPU.
Cost collective(Collective kind, Bytes bytes, const Group& group, const Machine& machine);
/// From each GPU of a pipeline stage to the next stage's: the mean over the borders between `stages` of `gpus` each.
/// Borders inside a domain pass the fabric, others the network.
Cost pipeline_send(Bytes bytes, int gpus, int stages, const Machine& machine);
/// An all-reduce by the engine's own kernel that also adds the residual and norms the sum. Only if `fuses_all_reduce`.
Cost all_reduce_norm(Bytes bytes, const Group& group, const Machine& machine);
/// The engines' kernels read peers' memory: one NVLink domain, with no more ranks than their tables have.
bool fuses_all_reduce(const Group& group, const GpuSpec& gpu);
/// NCCL alone, without the engines' custom kernels.
Cost nccl(Collective kind, Bytes bytes, const Group& group, const Machine& machine);

/// The same under given constants, for fits.
Seconds nccl_time(Collective kind, Bytes bytes, const Group& group, const NcclParameters& p, const GpuSpec& gpu);
Seconds custom_all_reduce_time(Bytes bytes, const Group& group, const CustomAllReduceParameters& p,
                               const NcclParameters& fallback, const GpuSpec& gpu);

}  // namespace roofcast
