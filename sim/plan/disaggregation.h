#pragma once
// The `disaggregation:` key of a scenario: workers of their own for prefill.

#include "base/config_reader.h"
#include "sim/plan/scenario.h"
#include "sim/plan/spec_cache.h"
#include "sim/serve/simulation.h"

namespace roofcast {

/// A scenario and
///   disaggregation:
///     prefill: {gpu, engine, parallelism: {tp, ..., replicas}, precision}   what differs from the scenario's own keys
///              {autoscaling}                                               of the prefill workers; else they stay
///     bandwidth: 50 GB/s    of one GPU's link; default its NIC, or PCIe without one
///     latency: 1 ms         of a transfer; default the decode engine's handover_time
/// The scenario's GPU, engine and parallelism are then those of the decode workers. A map under `gpu`, `engine` or
/// `precision` without a name changes single keys; `parallelism` stands for itself. Both sides must keep their caches
/// in one format. Prefill workers that do not fit their memory are prefill->memory.infeasible.
Disaggregation parse_disaggregation(ConfigReader in, const ConfigTree& scenario, const Deployment& decode,
                                    SpecCache& specs, const DeploymentUse& use);

}  // namespace roofcast
