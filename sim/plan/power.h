#pragma once
// Board power from how busy the units of a GPU are.

#include <algorithm>
#include <cmath>

#include "hw/gpu_spec.h"

namespace roofcast {

struct Deployment;

/// Shares of the datasheet peaks over some time: MFU and MBU.
struct Utilization {
  double compute = 0, memory = 0;
};

/// Work of one GPU over `time`, of the peak of the fastest format that one of its products runs in: of weights, 16 bit
/// (attention, whatever the weights), or 8 bit (attention to a cache of 8 bit where the engine's kernels take it, an
/// indexer).
Utilization utilization_of(const Deployment& deployment, Seconds time, Flops flops, Bytes bytes);
/// What power depends on: the same with FLOPs over the peak of the weights' products, at most 1. Attention in a faster
/// format does not make the other products' tensor cores idle.
Utilization drawn_by(const Deployment& deployment, Seconds time, Flops flops, Bytes bytes);

/// Share of the range from idle to board power that a GPU draws while it works:
///   static + compute * sqrt(MFU) + memory * MBU, at most 1.
/// `static` is what clocks and busy SMs take whatever they compute. Tensor cores come on before they do much useful
/// work (tiles are padded, operands waited for), hence the root.
struct PowerCurve {
  double static_share, compute_share, memory_share;

  double share(const Utilization& u) const {
    return std::min(1.0, static_share + compute_share * std::sqrt(u.compute) + memory_share * u.memory);
  }
};
/// Fitted to 303 runs of vLLM 0.11.1 on H100 and B200 (ML.ENERGY leaderboard v3). Reproduce:
///   roofcast calibrate power --data ml_energy_v3.csv
inline constexpr PowerCurve kPowerCurve{.static_share = 0.584, .compute_share = 0.663, .memory_share = 0.018};

/// Whether the GPU's file says what its board may draw.
inline bool power_known(const GpuSpec& gpu) { return gpu.board_power.value > 0; }

/// idle + (board - idle) * share while it works; not a number where it is not known.
Watts power_of(const GpuSpec& gpu, const Utilization& utilization);

}  // namespace roofcast
