#pragma once
// Replicas that do not meet, simulated side by side on several cores.

#include "sim/serve/simulation.h"

namespace roofcast {

/// Whether what one replica does cannot change what another does: requests arrive by a clock, a router that does not
/// look at the replicas deals them out, and nothing is shared (limits, adapters, pools of caches, a fleet that
/// changes). Requests that share prefixes are not among them: which of two that end together leaves its blocks first is
/// told by their slots, which those of other replicas change.
bool replicas_are_apart(const Deployment& deployment, const WorkloadSpec& workload, const ServingOptions& options);

/// The same metrics, to the last digit, and the same calls of the observer in the same order, as by one event queue.
/// Requests are dealt out some thousands at a time; while the replicas play them, what they did with those before is
/// put in order.
ServingMetrics simulate_apart(std::shared_ptr<const Deployment> deployment, RequestSource& source,
                              const WorkloadSpec& workload, const ServingOptions& options, Observer* observer);

}  // namespace roofcast
