#pragma once
// Independent replicas, simulated in parallel on several cores.

#include "sim/serve/simulation.h"

namespace roofcast {

/// Whether no replica can affect another: arrivals do not depend on the server, the router ignores the state of the
/// replicas, and nothing is shared (rate limits, adapters, cache tiers, autoscaling, failures). Workloads with shared
/// prefixes are excluded: of two requests that end together, their slots decide which one frees its blocks first, and
/// slots depend on the requests of other replicas.
bool replicas_are_independent(const Deployment& deployment, const WorkloadSpec& workload,
                              const ServingOptions& options);

/// Returns the same metrics, to the last digit, and calls the observer in the same order, as a simulation with one
/// event queue. Requests are distributed in batches of a few thousand. While the replicas simulate one batch, the
/// events of the previous batch are merged in time order.
ServingMetrics simulate_independent_replicas(std::shared_ptr<const Deployment> deployment, RequestSource& source,
                                             const WorkloadSpec& workload, const ServingOptions& options,
                                             Observer* observer);

}  // namespace roofcast
