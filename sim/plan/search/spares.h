#pragma once
// Replicas beyond those that carry the load, for when some are down.

#include "sim/plan/search/plan_spec.h"

namespace roofcast {

/// Share of the time that a replica of `gpus` GPUs is up, if each GPU fails after `failures.mtbf` on average and a
/// failed replica is back after `failures.repair` and a cold start: mtbf/gpus / (mtbf/gpus + repair + cold start).
double replica_availability(const FleetSpec& fleet, int gpus);

/// Probability that at most `spare` of `needed` + `spare` replicas are down, each up for the share `up` of the time and
/// independent of the others (the binomial distribution).
double fleet_availability(int needed, int spare, double up);

/// The same of replicas that are spread evenly over zones, each up for the share `zone_up`: the sum over the zones that
/// are up of their probability and that of enough replicas in them.
double fleet_availability(int needed, int spare, double up, int zones, double zone_up);
/// Of a candidate, as the search's `availability` asks.
double fleet_availability(const PlanSpec& plan, const Candidate& candidate, int needed, int spare);

/// Spares behind `replicas`: as many as the search's `availability` needs, else its `spare_replicas`.
int spares_of(const PlanSpec& plan, const Candidate& candidate, int replicas);

/// The most replicas there are GPUs and dollars for, their spares included; 0 or less: none.
int most_replicas(const PlanSpec& plan, const Candidate& candidate);

/// Of a candidate's own failures, what the search takes over: with `availability` the simulated replicas are all up.
/// Throws ConfigError where the failures that `availability` is about are not given.
void take_failures(const PlanSpec& plan, Candidate& candidate);

}  // namespace roofcast
