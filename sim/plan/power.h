#pragma once
// Board power from how busy the units of a GPU are.

#include "sim/step/deployment.h"

namespace roofcast {

/// Shares of the datasheet peaks over some time: MFU and MBU.
struct Utilization {
  double compute = 0, memory = 0;
};

/// Work of one GPU over `time`, of the peak of the fastest format that one of its products runs in: of weights, 16 bit
/// (attention, whatever the weights), or 8 bit (attention to a cache of 8 bit where the engine's kernels take it, an
/// indexer).
Utilization utilization_of(const Deployment& deployment, Seconds time, Flops flops, Bytes bytes);

/// idle + (board - idle) * min(1, 0.25 + 0.55 compute + 0.45 memory) while it works: an active GPU draws a
/// quarter of its range for clocks and leakage, the rest follows its tensor cores and its memory. The weights are
/// of the size that POLCA (Patel et al., 2024, arXiv:2308.12908) shows for prefill near and decode at 0.5-0.7 of board
/// power; an assumption, not a fit.
Watts power_of(const GpuSpec& gpu, const Utilization& utilization);

}  // namespace roofcast
