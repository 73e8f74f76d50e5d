#pragma once
// Converts constants measured on one GPU to another. Source: docs/equations.md#gpus-without-measurements.

#include "hw/dtype.h"
#include "hw/gpu_spec.h"
#include "hw/parameters.h"

namespace roofcast {

class Efficiency;
class Kernel;
struct ConstantsBlock;

/// How far a GPU stands from the one whose constants it takes.
struct CarryOver {
  bool another_generation = false;  ///< than the GPU that was measured
  bool same_kind = false;           ///< another machine with the same GPU: its fits hold as they are
  double matrix_limit = 1.0;        ///< share of the dense peaks that the board's power sustains
  bool memory_ecc = true;           ///< may cost bandwidth, where the memory is of another kind
};

/// New GPU over old.
struct Ratios {
  double time = 1.0;          ///< of a cycle
  double l2 = 1.0;            ///< L2 bandwidth, SMs x clock
  double memory = 1.0;        ///< DRAM bandwidth
  double operations = 1.0;    ///< of the matrix units, per cycle and SM, in the format of the block
  double intensity = 1.0;     ///< `operations` where the tile that feeds these units grows with them, else 1
  double instructions = 1.0;  ///< `operations` where both GPUs run the same kernels of attention, else 1
  double exponential = 1.0;   ///< time of one on an SM
  double host = 1.0;          ///< time of a launch from the host
  double power = 1.0;         ///< watts per operation per second, in the format of the block
  bool other_memory = false;  ///< possibly a different kind, whose own share is unknown
};

/// The conversion of one block from the GPU that was measured to another.
struct CarryOverCase {
  const GpuSpec& from;
  const GpuSpec& to;
  const CarryOver& how;
  Dtype dtype;
  Ratios ratios;
};

/// The share of the clock that is left where a board has `watts` times the power per operation a second. A chip at the
/// limit of its power gives up half of what it lacks in rate; the rest it saves as clock and voltage fall together.
double clock_under_power(double watts);
/// Partitions of L2: two on the chips of data centers (GA100, GH100, GB100), one on those for graphics, whose SMs have
/// less shared memory (compute capabilities 8.6, 8.9 and 12.0 have 100 KiB, 8.0 has 164).
int l2_partitions(const GpuSpec& gpu);
/// The conversion of a block in `dtype` from one GPU to another.
CarryOverCase carry_over_case(const GpuSpec& from, const GpuSpec& to, const CarryOver& how, Dtype dtype);
/// A constant by its own rule.
double transferred(double value, Transfer transfer, const Ratios& ratios);
/// Adds to what a fit leaves unexplained, as independent of it.
void widen(FitRecord& record, double added);
/// The products of attention lose a share of the peak to the SM's other work. That work takes the same cycles per
/// product whatever the matrix units do:  1 / share' = 1 + (1 / share - 1) x longer,  longer: operations per cycle and
/// SM, new over old. FlashAttention-2 shows it: 0.73 of an A100's peak (arXiv:2307.08691), nearly all of an RTX 4090's,
/// whose matrix units have a quarter of that rate (arXiv:2410.02367).
double share_beside_instructions(double share, double longer);

/// Between two kernels of a graph the GPU's front end takes its time, whatever the clock of the SMs: an A100 of 1.41
/// GHz launches a product in 2.5 us, an H100 of 1.98 in 2.4. A microsecond of a launch that was transferred by `time`
/// therefore stays. The rest fills and drains the SMs, and scales with their clock.
void keep_gap(double& launch_us, double time);

/// A block that was carried over, as it would have been for products in another format: a board's watts and the
/// operations of an SM are those of the format that runs. The block itself where it was measured on `gpu`.
ConstantsBlock carried_for(const Kernel& kernel, const ConstantsBlock& block, Dtype runs, const GpuSpec& gpu);

/// Fractions of a peak stay, and apply to the new peaks, up to `matrix_limit` for those of matrix units. What a kernel
/// pays in time on the GPU was measured in cycles: it goes with the ratio of the boost clocks where both are known.
/// An SM draws as many bytes a cycle from L2 as before: rates of L2 go with SMs x clock, whatever the memory does, and
/// the tile that just feeds the matrix units goes with operations a cycle and SM within an architecture and where this
/// one has mma.sync alone. What a kernel loses of the memory's bandwidth it loses on the SMs, matrix units under load
/// follow the watts of the board an operation, tiles of experts the architecture. Exponentials go with the special
/// function units, times of the host with its launches; the network stays. What the constants leave unexplained grows
/// by what blind transfers between measured GPUs show, as independent of it.
Efficiency carry_over(const Efficiency& measured, const GpuSpec& from, const GpuSpec& to, const CarryOver& how);

}  // namespace roofcast
