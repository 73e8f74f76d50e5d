#pragma once
// Transfers constants measured on one GPU to another. Source: docs/equations.md#gpus-without-measurements.

#include "hw/dtype.h"
#include "hw/gpu_spec.h"
#include "hw/parameters.h"

namespace roofcast {

class Efficiency;
class Kernel;
struct ConstantsBlock;

/// How the GPU differs from the one that its constants come from.
struct CarryOver {
  bool another_generation = false;  ///< the measured GPU is of another generation
  bool same_kind = false;           ///< another machine with the same GPU: its fits apply unchanged
  double matrix_limit = 1.0;        ///< share of the dense peaks that the board's power sustains
  bool memory_ecc = true;           ///< may cost bandwidth if the memory is of another kind
};

/// Ratios of the new GPU over the old one.
struct Ratios {
  double time = 1.0;          ///< of a cycle
  double l2 = 1.0;            ///< L2 bandwidth, SMs x clock
  double memory = 1.0;        ///< DRAM bandwidth
  double operations = 1.0;    ///< of the matrix units, per cycle and SM, in the format of the block
  double intensity = 1.0;     ///< `operations` if the tile size that feeds the matrix units grows with them, else 1
  double instructions = 1.0;  ///< `operations` if both GPUs run the same attention kernels, else 1
  double exponential = 1.0;   ///< time of one exponential on an SM
  double host = 1.0;          ///< time of a launch from the host
  double power = 1.0;         ///< watts per operation per second, in the format of the block
  bool other_memory = false;  ///< the memory may be of another kind, whose reached share is unknown
};

/// The transfer of one block from the measured GPU to another.
struct CarryOverCase {
  const GpuSpec& from;
  const GpuSpec& to;
  const CarryOver& how;
  Dtype dtype;
  Ratios ratios;
};

/// The share of the clock that remains if the board has `watts` times the power per operation per second. A chip at its
/// power limit loses half of the shortfall in rate; it saves the rest because voltage falls with the clock.
double clock_under_power(double watts);
/// L2 partitions: two on data-center chips (GA100, GH100, GB100), one on graphics chips, which have less shared memory
/// per SM (compute capabilities 8.6, 8.9 and 12.0 have 100 KiB, 8.0 has 164).
int l2_partitions(const GpuSpec& gpu);
/// Prepares the transfer of a block in `dtype` from one GPU to another.
CarryOverCase carry_over_case(const GpuSpec& from, const GpuSpec& to, const CarryOver& how, Dtype dtype);
/// A constant transferred by its own rule.
double transferred(double value, Transfer transfer, const Ratios& ratios);
/// Adds an independent relative error to the residual of a fit.
void widen(FitRecord& record, double added);
/// The share of the peak that attention GEMMs reach after a transfer. The other work of the SM takes the same cycles
/// per product on both GPUs:  1 / share' = 1 + (1 / share - 1) x longer.  `longer`: operations per cycle and SM, new
/// over old. FlashAttention-2 shows it: 0.73 of an A100's peak (arXiv:2307.08691), nearly all of an RTX 4090's, whose
/// matrix units have a quarter of that rate (arXiv:2410.02367).
double share_beside_instructions(double share, double longer);

/// Keeps one microsecond of a launch that was transferred by `time`. The GPU's front end takes it between two kernels
/// of a graph whatever the SM clock: an A100 at 1.41 GHz launches a GEMM in 2.5 us, an H100 at 1.98 GHz in 2.4. The
/// rest fills and drains the SMs and scales with their clock.
void keep_gap(double& launch_us, double time);

/// A transferred block, as it would have been transferred for work in format `runs`: the board's power and the
/// operations per SM are those of that format. Returns the block itself if it was measured on `gpu`.
ConstantsBlock carried_for(const Kernel& kernel, const ConstantsBlock& block, Dtype runs, const GpuSpec& gpu);

/// Transfers all constants. The rules, by the quantity that a constant stands for:
///   share of a peak            unchanged; at most `matrix_limit` for matrix units
///   time on the SMs            measured in cycles: scales with the boost clock where both are known
///   L2 bandwidth               an SM reads the same bytes per cycle: scales with SMs x clock
///   tile that saturates the matrix units   scales with operations per cycle and SM, within an architecture and for
///                              GPUs with mma.sync only
///   memory bandwidth           the part that is lost, is lost on the SMs
///   matrix units under load    follow the board's watts per operation
///   expert tiles               follow the architecture
///   exponentials               follow the special function units
///   host time                  scales with the time of a launch
///   network                    unchanged
/// The residual grows by an independent error, found by blind transfers between measured GPUs.
Efficiency carry_over(const Efficiency& measured, const GpuSpec& from, const GpuSpec& to, const CarryOver& how);

}  // namespace roofcast
