#pragma once
// The deployment that meets the objectives for the least.

#include "sim/plan/fleet_cost.h"
#include "sim/plan/search/held_load.h"
#include "sim/plan/search/plan_spec.h"
#include "sim/plan/token_bill.h"

namespace roofcast {

/// What it takes to be surer.
struct SaferFleet {
  double confidence = 0;  ///< asked for
  Fleet fleet{};          ///< replicas, spares left out
  double load = 0;        ///< that it carries
  int gpus = 0;
  double usd_per_hour = 0;
};

/// What an objective's statistic is over the draws of the truth: nine of ten lie between, and some miss the limit.
struct ObjectiveRange {
  Seconds low{}, high{};
  double missed = 0;  ///< share of the draws
};

/// A deployment that was simulated at the load it is to carry.
struct PlannedDeployment {
  Candidate candidate;
  int replicas = 0;          ///< or decode workers
  int prefill_replicas = 0;  ///< workers of their own for prefill
  int spare = 0;             ///< of each role, on top
  Fleet tested;              ///< in the simulation: all, or one that stands for all
  double load = 0;           ///< of the fleet: requests/s, users
  double held = 0;           ///< of what was tested, the highest that held; 0: not sought
  LoadResult result;
  bool confirmed = false;                            ///< another seed and four times the requests held too
  std::optional<double> probability = std::nullopt;  ///< that all objectives are met, over draws of what is not known
  std::vector<SaferFleet> safer = {};                ///< at 50, 80 and 95 %, of the winner
  std::vector<ObjectiveRange> ranges = {};           ///< of its objectives, of the winner
  double unsteady = 0;                               ///< share of the same draws in which its queue grows

  Fleet fleet() const { return {replicas, prefill_replicas}; }
  Fleet paid() const { return {replicas + spare, candidate.disaggregated() ? prefill_replicas + spare : 0}; }
  double tested_load() const { return load * tested.replicas / std::max(replicas, 1); }
  int gpus() const { return candidate.gpus(paid()); }
  Bill bill() const { return candidate.bill(paid()); }
  double usd_per_hour() const { return bill().usd_per_hour(); }
  Watts power() const;        ///< mean of all GPUs; spares idle; not a number where it is not known
  Watts power_bound() const;  ///< upper end of its 90 % interval, at most what the boards may draw
  Watts spare_power() const;
  FleetCost cost() const;                ///< of what was tested, without spares
  double output_tokens_per_s() const;    ///< of the fleet
  double tokens_per_s_per_gpu() const;   ///< output, over all GPUs paid for
  double tokens_per_s_per_user() const;  ///< 1 / median TPOT
};

/// Of the whole fleet, spares included.
struct TokenPrice : TokenBill {
  double joules_per_output_token = 0, grams_co2_per_million_output = 0;
};
TokenPrice token_price(const PlannedDeployment& planned, const PlanSpec& plan);

struct ParetoPoint {
  std::uint64_t candidate = 0;  ///< index in the space
  Fleet fleet;                  ///< that was simulated
  int gpus = 0;                 ///< of one replica, or of the disaggregated fleet
  double load = 0;              ///< of the same
  double tokens_per_s_per_user = 0, tokens_per_s_per_gpu = 0, usd_per_million_output = 0;
  Seconds ttft_p99{};
  Seconds limited{};  ///< the statistic that frontier_objective() limits
  bool met = false;
};

/// What would help where nothing meets the objectives.
struct Advice {
  double carries = 0;               ///< load that the given GPUs carry within the objectives, at best
  std::string carries_on;           ///< by which deployment
  std::string binds;                ///< the objective that is missed by the most, or the queue
  int gpus = 0;                     ///< of the smallest fleet that would do; 0: none was found
  double usd_per_hour = 0;          ///< of it
  std::string fleet;                ///< it, in words
  std::vector<std::string> beyond;  ///< limits of the search that it does not keep
  std::vector<std::string> relax;   ///< limits that the given GPUs would meet
};

struct PlanResult {
  LoadKind kind = LoadKind::kRate;
  std::vector<PlannedDeployment> ranked;     ///< best first; all meet the objectives
  std::vector<PlannedDeployment> forecasts;  ///< of rows that were judged, what the forecast alone asked for
  std::optional<PlannedDeployment> nearest;  ///< when none does: the one that misses by the least
  std::vector<ParetoPoint> frontier;         ///< no simulated load beats them in both tokens/s
  std::vector<ParetoPoint> cost_frontier;    ///< nor in both tokens/s of one user and USD a token
  std::vector<Candidate> candidates;         ///< by what Pareto points refer to
  std::uint64_t considered = 0, unsplittable = 0, too_dear = 0, too_large = 0, pairs = 0, bounded = 0, simulated = 0;
  std::uint64_t simulations = 0, unsupported = 0, unpriced = 0, unpowered = 0, below_availability = 0;
  std::string reason;              ///< why nothing was simulated
  std::vector<std::string> notes;  ///< what was left out since it cannot run or has no price
  int draws = 0;                   ///< of the truth, behind each probability
  Advice advice;                   ///< when there is no answer
};

struct SearchOptions {
  Fidelity fidelity = Fidelity::kCalibrated;
  bool prune = true;  ///< false: simulate every candidate, to check the bounds
  bool confirm = true;
  bool advise = true;  ///< where nothing is found
};

/// Candidates go in the order of their bounds, in waves of a fixed size, so that the answer does not depend on the
/// number of cores; a wave leaves out what cannot come within 1.25 x of the best so far,
/// or 1.9 x where fleets are made sure of after the search. Where the best sure fleet is worse than the bound of a
/// candidate that was left out, that one is simulated and judged, too.
PlanResult search_capacity(const PlanSpec& plan, const SearchOptions& options = {});

/// The objective that a frontier shows beside tokens/s of one user: the first that is not of TPOT, else the first.
const Objective* frontier_objective(const Scenario& scenario);

/// Whether `a` ranks before `b`.
bool better(const PlannedDeployment& a, const PlannedDeployment& b, PlanGoal goal);

/// Smaller is better, by goal; equal scores are told apart by GPUs, then by cost, then by margin.
double score_of(const PlannedDeployment& planned, PlanGoal goal);

}  // namespace roofcast
