#pragma once
// Searches for the cheapest deployment that meets the objectives.

#include "sim/plan/fleet_cost.h"
#include "sim/plan/search/held_load.h"
#include "sim/plan/search/plan_spec.h"
#include "sim/plan/token_bill.h"

namespace roofcast {

/// A fleet for a higher probability.
struct SaferFleet {
  double confidence = 0;  ///< probability asked for
  Fleet fleet{};          ///< replicas without spares
  double load = 0;        ///< that the fleet carries
  int gpus = 0;
  double usd_per_hour = 0;
};

/// The 90 % range of an objective's statistic over the draws, and how often it misses the limit.
struct ObjectiveRange {
  Seconds low{}, high{};
  double missed = 0;  ///< share of the draws
};

/// A deployment that was simulated at the load it must carry.
struct PlannedDeployment {
  Candidate candidate;
  int replicas = 0;          ///< of one role, or decode workers
  int prefill_replicas = 0;  ///< prefill workers of a disaggregated deployment
  int spare = 0;             ///< spares of each role, in addition
  Fleet tested;              ///< what was simulated: the whole fleet, or a part that represents it
  double load = 0;           ///< of the fleet: requests/s, users
  double held = 0;           ///< highest load that the tested part held; 0: not sought
  LoadResult result;
  bool confirmed = false;                            ///< another seed and four times the requests held too
  std::optional<double> probability = std::nullopt;  ///< that all objectives are met, over draws of what is not known
  std::vector<SaferFleet> safer = {};                ///< at 50, 80 and 95 %, of the winner
  std::vector<ObjectiveRange> ranges = {};           ///< of its objectives, of the winner
  double unsteady = 0;                               ///< share of the same draws in which its queue grows
  bool weighed = false;                              ///< the four above are of a simulation of every draw

  Fleet fleet() const { return {replicas, prefill_replicas}; }
  Fleet paid() const { return {replicas + spare, candidate.disaggregated() ? prefill_replicas + spare : 0}; }
  double tested_load() const { return load * tested.replicas / std::max(replicas, 1); }
  int gpus() const { return candidate.gpus(paid()); }
  Bill bill() const { return candidate.bill(paid()); }
  double usd_per_hour() const { return bill().usd_per_hour(); }
  Watts power() const;        ///< mean of all GPUs; spares idle; NaN where unknown
  Watts power_bound() const;  ///< upper end of its 90 % interval, at most the boards' limit
  Watts spare_power() const;
  FleetCost cost() const;                ///< of the tested part, without spares
  double output_tokens_per_s() const;    ///< of the fleet
  double tokens_per_s_per_gpu() const;   ///< output, over all GPUs paid for
  double tokens_per_s_per_user() const;  ///< 1 / median TPOT
};

/// Of the whole fleet, including spares.
struct TokenPrice : TokenBill {
  double joules_per_output_token = 0, grams_co2_per_million_output = 0;
};
TokenPrice token_price(const PlannedDeployment& planned, const PlanSpec& plan);

struct ParetoPoint {
  std::uint64_t candidate = 0;  ///< index in the space
  Fleet fleet;                  ///< the simulated fleet
  int gpus = 0;                 ///< of one replica, or of the disaggregated fleet
  double load = 0;              ///< of the same replica or fleet
  double tokens_per_s_per_user = 0, tokens_per_s_per_gpu = 0;
  double usd_per_million_output = 0;  ///< output's part of the bill, as token_price() splits it; 0: price not known
  Seconds ttft_p99{};
  Seconds limited{};  ///< upper end (95 %) of the statistic that frontier_objective() limits: what `met` judges
  bool met = false;
};

/// Suggestions for when nothing meets the objectives.
struct Advice {
  double carries = 0;               ///< load for which the given GPUs have an answer, within a tenth of the most
  std::string carries_on;           ///< by which deployment
  std::string binds;                ///< the objective that is missed by the most, or the queue
  int gpus = 0;                     ///< of the smallest fleet that would do; 0: none was found
  double usd_per_hour = 0;          ///< of it
  std::string fleet;                ///< it, in words
  std::vector<std::string> beyond;  ///< limits of the search that it does not keep
  std::vector<std::string> relax;   ///< limits that the given GPUs would meet, within a tenth of the lowest
};

struct PlanResult {
  LoadKind kind = LoadKind::kRate;
  std::vector<PlannedDeployment> ranked;     ///< best first; all meet the objectives
  std::vector<PlannedDeployment> forecasts;  ///< what the forecast alone asked for, for rows that were judged
  std::optional<PlannedDeployment> nearest;  ///< when none does: the one that misses by the least
  std::vector<ParetoPoint> frontier;         ///< simulated loads that no other beats in both tokens/s
  std::vector<ParetoPoint> cost_frontier;    ///< the same for tokens/s of one user and USD per output token
  std::vector<ParetoPoint> gpu_frontiers, gpu_cost_frontiers;  ///< of each kind of GPU by itself
  std::vector<Candidate> candidates;         ///< candidates that Pareto points refer to
  std::uint64_t considered = 0, pairs = 0, bounded = 0, simulated = 0;
  std::uint64_t unsplittable = 0, mistaken = 0, beyond_gpus = 0, too_dear = 0, too_large = 0;  ///< as of Candidates
  std::uint64_t simulations = 0, unsupported = 0, unpriced = 0, unpowered = 0, below_availability = 0;
  std::string reason;              ///< why nothing was simulated
  std::vector<std::string> notes;  ///< what was left out since it cannot run or has no price
  int draws = 0;                   ///< of the truth, behind each probability
  std::shared_ptr<PricerPool> pricers = std::make_shared<PricerPool>();  ///< with what the search has priced
  bool at_limit = false;  ///< the winner is less sure than asked, and the search allows no larger fleet
  Advice advice;          ///< when there is no answer
};

struct SearchMemory;

struct SearchOptions {
  Fidelity fidelity = Fidelity::kCalibrated;
  bool prune = true;  ///< false: simulate every candidate, to check the bounds
  bool confirm = true;
  bool advise = true;                         ///< whether to seek advice when nothing is found
  std::string only_gpu = {};                  ///< candidates with any other kind are left out
  std::shared_ptr<SearchMemory> memory = {};  ///< of earlier searches of this plan, and for later ones
};

/// Candidates are tried in the order of their bounds, in waves of a fixed size, so that the answer does not depend on
/// the number of cores. A wave leaves out candidates that cannot come within 1.25 x of the best score so far, or 1.9 x
/// where fleets are judged after the search. If the best confident fleet is worse than the bound of a candidate that
/// was left out, that candidate is simulated and judged too.
PlanResult search_capacity(const PlanSpec& plan, const SearchOptions& options = {});

/// The objective that a frontier shows beside tokens/s of one user: the first that is not about TPOT, else the first.
const Objective* frontier_objective(const Scenario& scenario);

/// Whether `a` ranks before `b`.
bool better(const PlannedDeployment& a, const PlannedDeployment& b, PlanGoal goal);

/// Smaller is better, by goal. Ties go by GPUs, then cost, then probability, then margin.
double score_of(const PlannedDeployment& planned, PlanGoal goal);

}  // namespace roofcast
