#pragma once
// The `disaggregation:` key of a scenario: separate workers for prefill.

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
/// The scenario's GPU, engine and parallelism then apply to the decode workers. A map under `gpu`, `engine` or
/// `precision` without a name overrides single keys; `parallelism` is not inherited. Both sides must use the same cache
/// format. If prefill workers do not fit their memory, prefill->memory.infeasible is set. Throws ConfigError.
Disaggregation parse_disaggregation(ConfigReader in, const ConfigTree& scenario, const Deployment& decode,
                                    SpecCache& specs, const DeploymentUse& use);

/// The deployment part of a scenario with the `changes` of its prefill workers (`disaggregation.prefill`).
ConfigTree prefill_scenario(const ConfigTree& scenario, const ConfigTree& changes);

}  // namespace roofcast
