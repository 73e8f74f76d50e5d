#pragma once
// Board power from the utilization of a GPU.

#include <algorithm>
#include <cmath>

#include "hw/gpu_spec.h"

namespace roofcast {

struct Deployment;

/// Fractions of the datasheet peaks: MFU and MBU.
struct Utilization {
  double compute = 0, memory = 0;
};

/// Utilization of one GPU over `time`. The peak is that of the fastest format in use: of the weights, 16 bit
/// (attention), or 8 bit (attention to an 8-bit cache if the engine's kernels support it, or an indexer).
Utilization utilization_of(const Deployment& deployment, Seconds time, Flops flops, Bytes bytes);
/// Utilization for the power model: FLOPs relative to the peak of the weights' products, at most 1, because attention
/// in a faster format does not leave the tensor cores idle in the other products.
Utilization drawn_by(const Deployment& deployment, Seconds time, Flops flops, Bytes bytes);

/// Fraction of the range from idle to board power that a busy GPU draws:
///   static + compute * sqrt(MFU) + memory * MBU, at most 1.
/// `static` is what clocks and busy SMs draw in any case. The root reflects that tensor cores draw power before they do
/// much useful work (padded tiles, waiting for operands).
struct PowerCurve {
  double static_share, compute_share, memory_share;

  double share(const Utilization& u) const {
    return std::min(1.0, static_share + compute_share * std::sqrt(u.compute) + memory_share * u.memory);
  }
};
/// Fitted to 303 runs of vLLM 0.11.1 on H100 and B200 (ML.ENERGY leaderboard v3). Reproduce:
///   roofcast calibrate power --data ml_energy_v3.csv
inline constexpr PowerCurve kPowerCurve{.static_share = 0.584, .compute_share = 0.663, .memory_share = 0.018};

/// Whether the GPU's file states its board power.
inline bool power_known(const GpuSpec& gpu) { return gpu.board_power.value > 0; }

/// While busy: idle + (board - idle) * fraction; NaN if unknown.
Watts power_of(const GpuSpec& gpu, const Utilization& utilization);

}  // namespace roofcast
