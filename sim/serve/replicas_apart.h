#pragma once
// Independent replicas, simulated in parallel on several cores.

#include "sim/serve/simulation.h"

namespace roofcast {

/// Whether no replica can affect another: requests arrive by a clock, a router that ignores the state of the replicas
/// distributes them, and nothing is shared (limits, adapters, pools of caches, a fleet that changes). Requests that
/// share prefixes are excluded: which of two that end together frees its blocks first depends on their slots, and so on
/// the requests of other replicas.
bool replicas_are_apart(const Deployment& deployment, const WorkloadSpec& workload, const ServingOptions& options);

/// The same metrics, to the last digit, and the same calls of the observer in the same order, as from one event queue.
/// Requests are distributed in batches of some thousands; while the replicas run one batch, the events of the batch
/// before it are merged in order.
ServingMetrics simulate_apart(std::shared_ptr<const Deployment> deployment, RequestSource& source,
                              const WorkloadSpec& workload, const ServingOptions& options, Observer* observer);

}  // namespace roofcast
