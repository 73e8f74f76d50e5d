#pragma once
// Searches for the cheapest deployment that meets the objectives.

#include <functional>

#include "sim/plan/fleet_cost.h"
#include "sim/plan/search/held_load.h"
#include "sim/plan/search/plan_spec.h"
#include "sim/plan/token_bill.h"

namespace roofcast {

/// A fleet for a higher probability.
struct SaferFleet {
  double confidence = 0;  ///< probability asked for
  Fleet fleet{};          ///< replicas without spares
  double load = 0;        ///< load that the fleet carries
  int gpus = 0;
  double usd_per_hour = 0;
};

/// The 90 % range of an objective's statistic over the draws, and how often it misses its limit.
struct ObjectiveRange {
  Seconds low{}, high{};
  double missed = 0;  ///< fraction of the draws
};

/// A deployment simulated at the load that it must carry.
struct PlannedDeployment {
  Candidate candidate;
  int replicas = 0;          ///< all replicas, or decode workers if disaggregated
  int prefill_replicas = 0;  ///< prefill workers of a disaggregated deployment
  int spare = 0;             ///< additional spares per role
  Fleet tested;              ///< what was simulated: the whole fleet, or a representative part
  double load = 0;           ///< load of the fleet: requests/s or users
  double held = 0;           ///< highest load that the tested part held; 0: not searched
  LoadResult result;
  bool confirmed = false;  ///< another seed and four times the requests held too
  std::optional<double> probability =
      std::nullopt;                         ///< that all objectives are met, over draws of the uncertain quantities
  std::vector<SaferFleet> safer = {};       ///< for the winner: fleets for 50, 80 and 95 %
  std::vector<ObjectiveRange> ranges = {};  ///< for the winner: ranges of its objectives
  double unsteady = 0;                      ///< fraction of these draws in which its queue grows
  bool in_all_draws = false;                ///< the previous four come from a simulation of every draw

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
  double tokens_per_s_per_gpu() const;   ///< output tokens, per GPU paid for
  double tokens_per_s_per_user() const;  ///< 1 / median TPOT
};

/// Of the whole fleet, including spares.
struct TokenPrice : TokenBill {
  double joules_per_output_token = 0, grams_co2_per_million_output = 0;
};
TokenPrice token_price(const PlannedDeployment& planned, const PlanSpec& plan);

struct ParetoPoint {
  std::uint64_t candidate = 0;  ///< index in the search space
  Fleet fleet;                  ///< the simulated fleet
  int gpus = 0;                 ///< per replica, or of the disaggregated fleet
  double load = 0;              ///< load of the same replica or fleet
  double tokens_per_s_per_user = 0, tokens_per_s_per_gpu = 0;
  double usd_per_million_output = 0;  ///< output part of the bill, see token_price(); 0: unknown price
  Seconds ttft_p99{};
  Seconds limited{};  ///< 95 % upper bound of the statistic of frontier_objective(), which `met` judges
  bool met = false;
};

/// Suggestions if nothing meets the objectives.
struct Advice {
  double carries = 0;               ///< load that the given GPUs can carry, within a tenth of the maximum
  std::string carries_on;           ///< the deployment that carries it
  std::string binds;                ///< the objective that is missed by the most, or the queue
  int gpus = 0;                     ///< GPUs of the smallest sufficient fleet; 0: none was found
  double usd_per_hour = 0;          ///< its cost
  std::string fleet;                ///< the same fleet in words
  std::vector<std::string> beyond;  ///< limits of the search that it exceeds
  std::vector<std::string> relax;   ///< limits that the given GPUs could meet, within a tenth of the lowest
};

struct PlanResult {
  LoadKind kind = LoadKind::kRate;
  std::vector<PlannedDeployment> ranked;     ///< best first; all meet the objectives
  std::vector<PlannedDeployment> forecasts;  ///< fleets that the forecast alone requires, for judged rows
  std::optional<PlannedDeployment> nearest;  ///< if none meets them: the one that misses by the least
  std::vector<ParetoPoint> frontier;         ///< Pareto-optimal loads in tokens/s per user and per GPU
  std::vector<ParetoPoint> cost_frontier;    ///< the same for tokens/s per user and USD per output token
  std::vector<ParetoPoint> gpu_frontiers, gpu_cost_frontiers;  ///< the same per type of GPU
  std::vector<Candidate> candidates;                           ///< candidates of the Pareto points
  std::uint64_t considered = 0, pairs = 0, bounded = 0, simulated = 0;
  std::uint64_t unsplittable = 0, mistaken = 0, beyond_gpus = 0, too_dear = 0, too_large = 0;  ///< see Candidates
  std::uint64_t simulations = 0, unsupported = 0, unpriced = 0, unpowered = 0, below_availability = 0;
  std::string reason;              ///< why nothing was simulated
  std::vector<std::string> notes;  ///< what was left out because it cannot run or has no price
  int draws = 0;                   ///< draws behind each probability
  std::shared_ptr<PricerPool> pricers = std::make_shared<PricerPool>();  ///< with step prices cached by the search
  bool at_limit = false;  ///< the winner is below the required confidence, but the search allows no larger fleet
  Advice advice;          ///< if there is no answer
};

struct SearchMemory;

struct SearchOptions {
  Fidelity fidelity = Fidelity::kCalibrated;
  bool prune = true;  ///< false: simulate every candidate, to check the bounds
  bool confirm = true;
  bool advise = true;                                 ///< whether to seek advice when nothing is found
  std::string only_gpu = {};                          ///< if set, candidates with other GPUs are left out
  std::shared_ptr<SearchMemory> memory = {};          ///< shared with earlier and later searches of this plan
  std::function<void(const std::string&)> tell = {};  ///< what to know before a long search
};

/// Candidates are simulated in order of their bounds, in batches of a fixed size, so that the answer does not depend on
/// the number of cores. A batch skips candidates whose bound is worse than 1.25 x the best score so far (1.9 x if
/// fleets are judged after the search). If the best confident fleet is worse than the bound of a skipped candidate,
/// that candidate is simulated and judged too.
PlanResult search_capacity(const PlanSpec& plan, const SearchOptions& options = {});

/// The objective that a frontier shows next to tokens/s per user: the first that is not about TPOT, else the first.
const Objective* frontier_objective(const Scenario& scenario);

/// Whether `a` ranks before `b`.
bool better(const PlannedDeployment& a, const PlannedDeployment& b, PlanGoal goal);

/// Score for the goal; smaller is better. Ties are broken by GPUs, then cost, then probability, then margin.
double score_of(const PlannedDeployment& planned, PlanGoal goal);

}  // namespace roofcast
