#pragma once
// Spare replicas for when some are down.

#include "sim/plan/search/plan_spec.h"

namespace roofcast {

/// Fraction of the time in which a replica of `gpus` GPUs is up, if each GPU fails every `failures.mtbf` on average and
/// a failed replica is back after `failures.repair` and a cold start: mtbf/gpus / (mtbf/gpus + repair + cold start).
double replica_availability(const FleetSpec& fleet, int gpus);

/// Probability that at most `spare` of `needed` + `spare` replicas are down, each up independently for the fraction
/// `up` of the time (binomial distribution).
double fleet_availability(int needed, int spare, double up);

/// The same for replicas spread evenly over zones, each up for the fraction `zone_up`: the sum over the zones that are
/// up of their probability times that of enough replicas in them.
double fleet_availability(int needed, int spare, double up, int zones, double zone_up);
/// The same for a candidate with the plan's zones.
double fleet_availability(const PlanSpec& plan, const Candidate& candidate, int needed, int spare);

/// Spares for `replicas`: as many as `availability` requires, else `spare_replicas`.
int spares_of(const PlanSpec& plan, const Candidate& candidate, int replicas);

/// The maximum number of replicas within the limits on GPUs and cost, including spares; 0 or less: none.
int most_replicas(const PlanSpec& plan, const Candidate& candidate);

/// Moves the candidate's failures to the search: with `availability` the simulated replicas are always up. Throws
/// ConfigError if `availability` is set without failures.
void take_failures(const PlanSpec& plan, Candidate& candidate);

}  // namespace roofcast
