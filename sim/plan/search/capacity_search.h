#pragma once
// The deployment that meets the objectives for the least.

#include "sim/plan/fleet_cost.h"
#include "sim/plan/search/held_load.h"
#include "sim/plan/search/plan_spec.h"

namespace roofcast {

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
  bool confirmed = false;  ///< another seed and four times the requests held too

  Fleet fleet() const { return {replicas, prefill_replicas}; }
  Fleet paid() const { return {replicas + spare, candidate.disaggregated() ? prefill_replicas + spare : 0}; }
  double tested_load() const { return load * tested.replicas / std::max(replicas, 1); }
  int gpus() const { return candidate.gpus(paid()); }
  double usd_per_hour() const { return candidate.usd_per_hour(paid()); }
  Watts power() const;                   ///< mean of all GPUs; spares idle
  FleetCost cost() const;                ///< of what was tested, without spares
  double output_tokens_per_s() const;    ///< of the fleet
  double tokens_per_s_per_gpu() const;   ///< output, over all GPUs paid for
  double tokens_per_s_per_user() const;  ///< 1 / median TPOT
};

/// Dollars of a million tokens. The fleet's time is split between input and output tokens as the steps are: the prompt
/// tokens not found cached at the price of full prefill chunks, the output tokens at that of decode steps with the mean
/// number of sequences in flight. Where workers are apart, the prefill workers' bill is the input's.
struct TokenPrice {
  double usd_per_million_input = 0, usd_per_million_output = 0, usd_per_million_total = 0;
  double input_share = 0;  ///< of the time
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
  bool met = false;
};

struct PlanResult {
  LoadKind kind = LoadKind::kRate;
  std::vector<PlannedDeployment> ranked;     ///< best first; all meet the objectives
  std::optional<PlannedDeployment> nearest;  ///< when none does: the one that misses by the least
  std::vector<ParetoPoint> frontier;         ///< no simulated load beats them in both tokens/s
  std::vector<ParetoPoint> cost_frontier;    ///< nor in both USD a token and p99 TTFT
  std::vector<Candidate> candidates;         ///< by what Pareto points refer to
  std::uint64_t considered = 0, unsplittable = 0, too_large = 0, pairs = 0, bounded = 0, simulated = 0;
  std::uint64_t simulations = 0;
  std::string reason;  ///< why nothing was simulated
};

struct SearchOptions {
  Fidelity fidelity = Fidelity::kCalibrated;
  bool prune = true;  ///< false: simulate every candidate, to check the bounds
  bool confirm = true;
};

/// Candidates go in the order of their bounds, in waves of a fixed size, so that the answer does not depend on the
/// number of cores; a wave leaves out what cannot come within 1.25 x of the best so far.
PlanResult search_capacity(const PlanSpec& plan, const SearchOptions& options = {});

/// Smaller is better, by goal; equal scores are told apart by GPUs, then by cost, then by margin.
double score_of(const PlannedDeployment& planned, PlanGoal goal);

}  // namespace roofcast
