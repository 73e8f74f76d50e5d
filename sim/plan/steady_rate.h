#pragma once
// Throughput while a closed loop is full.

#include "sim/serve/metrics.h"
#include "sim/serve/workload.h"

namespace roofcast {

/// Output tokens per second while every user of a closed loop waits for an answer or thinks: by Little's law, users x
/// tokens / (latencies + pauses), summed over the requests. Unlike the throughput of the whole run it excludes ramp-up
/// and ramp-down. 0 for other loads.
double steady_output_rate(const WorkloadSpec& workload, const ServingMetrics& metrics);

}  // namespace roofcast
