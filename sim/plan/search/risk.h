#pragma once
// The probability that a planned fleet meets its objectives, and what it takes to raise it.

#include "sim/plan/search/capacity_search.h"
#include "sim/plan/search/load_bounds.h"
#include "sim/plan/truth.h"

namespace roofcast {

/// Number of draws behind each probability.
inline constexpr std::size_t kDraws = 40;

/// Whether the fleet meets every objective in one draw, simulated with the arrivals that all candidates see.
bool holds_in(const TruthDraw& draw, const Truths& truths, const PlannedDeployment& planned, PricerPool& pricers);

/// The draws in which every candidate of the plan is judged; none if its confidence is 0.
std::vector<TruthDraw> draws_of(const PlanSpec& plan, const Scenario& scenario);

/// False if a single request on an idle deployment with these bounds misses an objective in more draws than the plan's
/// confidence allows: then no number of replicas is enough. Kernel errors, which only widen the draws, are ignored:
/// this errs towards true for a confidence of at least one half; below, nothing is ruled out.
bool may_be_sure(const Scenario& scenario, const LoadBounds& bounds, double confidence,
                 const std::vector<TruthDraw>& draws);

/// A draw that is worse than `plan.confidence` of all draws are likely to be for the deployment: what holds in it holds
/// with that confidence. A fleet that holds in as many draws as asked holds in this one, too. Empty if the plan is not
/// judged.
class HardTruth {
 public:
  static std::optional<HardTruth> of(const PlannedDeployment& planned, const PlanSpec& plan, PricerPool& pricers);
  Scenario scenario() const { return truths_.scenario_in(draw_); }
  double load_factor() const { return truths_.load_factor(draw_); }
  PricerFactory pricers(PricerPool& pool) const { return truths_.pricers_in(draw_, pool.factory()); }

 private:
  HardTruth(Truths truths, TruthDraw draw) : truths_(std::move(truths)), draw_(std::move(draw)) {}
  Truths truths_;
  TruthDraw draw_;
};

/// Adds replicas to a deployment (or lowers its load) until it holds with plan.confidence, and sets its probability and
/// forecast. False if that is impossible.
bool make_sure(PlannedDeployment& planned, const PlanSpec& plan, const std::vector<TruthDraw>& draws,
               PricerPool& pricers);

/// Makes the best deployments hold with plan.confidence, best first, and ranks them again: with more replicas, or with
/// less load if the load is maximized. Draws are ordered by harm, and a simulation of some of them gives a probability:
/// a fleet holds with the confidence of the worst draw in which it holds. Rows that are refused or enlarged by that
/// order are simulated in the other draws, too. Rows are judged until the top rows are; a row that cannot be made sure
/// is removed. Sets probabilities. May be called again after rows were added.
void judge_ranking(PlanResult& result, const PlanSpec& plan, PricerPool& pricers);

/// Simulates the fleet in every draw to the end: sets the ranges of its objectives, and its probability to the fraction
/// of draws that meet all of them. Does nothing if the plan is not judged.
void simulate_all_draws(PlannedDeployment& planned, const PlanSpec& plan, PricerPool& pricers);
/// The same, but stops once too many draws (worst first) are missed to hold with plan.confidence; then nothing is set.
/// True if it holds, or is not judged.
bool simulate_draws_if_sure(PlannedDeployment& planned, const PlanSpec& plan, PricerPool& pricers);
/// The range of the objective with this index: from the draws if they were simulated; else from quick_spread, with
/// `missed` NaN. All NaN for the ideal roofline, which is no forecast and has no measured errors.
ObjectiveRange range_of(const PlannedDeployment& planned, std::size_t objective);

/// Simulates the first row in all draws. It loses replicas while enough draws still hold, and gains replicas (or loses
/// load) while too few do; then the first row of the new order is simulated, up to 32 rows. A row that would exceed the
/// limits of the search is removed unless it is the last; in that case the surest row is the answer. A note names each
/// GPU whose last row was removed. For throughput, the whole fleet of each first row is loaded instead of the one
/// replica that represented it.
void size_winner_by_draws(PlanResult& result, const PlanSpec& plan, PricerPool& pricers);

/// Adds one replica to a fleet (or lowers its load) while too few draws hold, and simulates all draws once enough do.
/// False if the search allows no more: then it is the largest fleet, and may not have been simulated in all draws.
bool grow_until_sure(PlannedDeployment& planned, const PlanSpec& plan, PricerPool& pricers);

/// The same after setting the fleet to at least `replicas`. False, with the fleet unchanged, if the search does not
/// allow as many; false if no allowed fleet is sure: then it is the largest one, simulated in all draws.
bool size_row_by_draws(PlannedDeployment& planned, int replicas, const PlanSpec& plan, PricerPool& pricers);

/// A note that no fleet of these GPUs reaches the required confidence.
std::string unsure_gpu_note(const std::string& gpu, double confidence);

/// Sets the cost of the row at 50, 80 and 95 %; with the probability from all draws if it has one.
void price_confidence(PlanResult& result, std::size_t row, const PlanSpec& plan, PricerPool& pricers);

}  // namespace roofcast
