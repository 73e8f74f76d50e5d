// Shared by all GEMM kernels: the priors of the tile loop, and the transfer of its constants to another GPU.

#include "hw/kernels/gemm/gemm_kernel.h"

#include <algorithm>
#include <cmath>

#include "hw/carried_power.h"
#include "hw/kernels/l2.h"

namespace roofcast {
namespace {

constexpr double kLeastClock = 0.7;  ///< bound of GemmParameters::sustained_clock

/// Matrix units at `factor` (at most 1) of their former rate. They also need operands at that lower rate only, while L2
/// delivers as before.
void slow_matrix_units(GemmParameters& p, double factor) {
  p.compute_efficiency *= factor;
  p.tile_intensity *= factor;
}

/// A chip at its power limit loses half of the shortfall in watts per operation as rate; the rest it saves, because
/// voltage falls with the clock. With more watts than before, the clock rises at most to the unthrottled one.
void follow_power(GemmParameters& p, double watts) {
  const double root = std::sqrt(watts);
  if (root > 1.0) {
    p.sustained_clock = std::min(1.0, p.sustained_clock * root);
    return;
  }
  const double sustained = std::max(kLeastClock, p.sustained_clock * root);
  slow_matrix_units(p, p.sustained_clock * root / sustained);
  p.sustained_clock = sustained;
}

/// Limits the matrix units to what the board's power allows, throttled or not, whatever a kernel reached on another
/// GPU.
void limit(GemmParameters& p, double most) {
  const double under_load = std::min(most, p.compute_efficiency * p.sustained_clock);
  slow_matrix_units(p, std::min(1.0, most / p.compute_efficiency));
  p.sustained_clock = under_load / p.compute_efficiency;
}

/// If matrix units have a higher peak on the same board, only they lack power: under load they reach what the board
/// sustains, while the rest of the GEMM keeps its clock.
void follow_peak(GemmParameters& p, double under_load) {
  slow_matrix_units(p, std::min(1.0, under_load / (p.compute_efficiency * p.sustained_clock)));
}

/// With two L2 partitions, each keeps what the SMs beside it read, so data read by all SMs are stored twice (NVIDIA
/// A100 Tensor Core GPU Architecture white paper, "L2 cache"). Graphics chips have one partition.
void follow_partitions(GemmParameters& p, const GpuSpec& from, const GpuSpec& to) {
  const double usable = p.l2_usable * l2_partitions(from) / l2_partitions(to);
  p.l2_usable = std::min(std::max(kL2Usable, p.l2_usable), usable);
}

/// Source: 16-bit GEMMs of an A100 and an H100, and fp8 GEMMs of a B200.
GemmParameters prior_of_16_bit(const GpuSpec& gpu) {
  GemmParameters prior;
  if (has_mma_sync_only(gpu)) {
    prior.compute_efficiency = 0.93;
    prior.launch_us = 1.9;
    prior.wave_us = 2.0;
    prior.epilogue_us = 1.2;
    prior.k_step_us = 0.21;
    prior.ramp_k_steps = 1.7;
    prior.lone_block_rate = 0.67;
    prior.gemv_us = 0.6;
  }
  if (gpu.architecture == Architecture::kBlackwell) prior.compute_efficiency = 0.75;
  return prior;
}

}  // namespace

GemmParameters MatmulKernel::prior_beside(const GpuSpec& gpu, const GemmParameters* wide) const {
  GemmParameters prior = wide != nullptr ? *wide : prior_of_16_bit(gpu);
  adjust(prior, gpu);
  return prior;
}

void follow_chip(GemmParameters& p, const CarryOverCase& to) {
  keep_gap(p.launch_us, to.ratios.time);
  const CarriedPower power = carried_power(to);
  follow_power(p, power.board);
  const double under_load = p.compute_efficiency * p.sustained_clock * std::sqrt(power.peak);
  follow_partitions(p, to.from, to.to);
  limit(p, to.how.matrix_limit);
  follow_peak(p, under_load);
}

}  // namespace roofcast
