#pragma once
// How sure a planned fleet is to meet its objectives, and what it takes to be surer.

#include "sim/plan/search/capacity_search.h"
#include "sim/plan/search/load_bounds.h"
#include "sim/plan/truth.h"

namespace roofcast {

/// Draws of the truth behind each probability.
inline constexpr std::size_t kDraws = 40;

/// Whether the fleet meets every objective in one truth, simulated under the arrivals that all candidates see.
bool holds_in(const TruthDraw& draw, const Truths& truths, const PlannedDeployment& planned, PricerPool& pricers);

/// The draws that every candidate of the plan is judged in; none where its confidence is 0.
std::vector<TruthDraw> draws_of(const PlanSpec& plan, const Scenario& scenario);

/// False where a request alone, on a deployment with these bounds, misses an objective in more draws than the plan's
/// confidence allows: then no number of replicas makes it sure. Kernels' own errors, which only widen the draws, are
/// left out: of a confidence of a half and more that errs to true; below, nothing is ruled out.
bool may_be_sure(const Scenario& scenario, const LoadBounds& bounds, double confidence,
                 const std::vector<TruthDraw>& draws);

/// A truth that is worse than `plan.confidence` of all draws are likely to be for the deployment: what holds in it
/// holds with that confidence. None where the plan is not judged.
class HardTruth {
 public:
  static std::optional<HardTruth> of(const PlannedDeployment& planned, const PlanSpec& plan);
  Scenario scenario() const { return truths_.scenario_in(draw_); }
  double load_factor() const { return truths_.load_factor(draw_); }
  PricerFactory pricers(PricerPool& pool) const { return truths_.pricers_in(draw_, pool.factory()); }

 private:
  HardTruth(Truths truths, TruthDraw draw) : truths_(std::move(truths)), draw_(std::move(draw)) {}
  Truths truths_;
  TruthDraw draw_;
};

/// Gives a deployment the replicas (or takes the load from it) with which it holds with plan.confidence, and sets its
/// probability and forecast; false where that cannot be had.
bool make_sure(PlannedDeployment& planned, const PlanSpec& plan, const std::vector<TruthDraw>& draws,
               PricerPool& pricers);

/// Gives the best deployments what they need to hold with plan.confidence, best first, and ranks anew: replicas, or
/// less load where as much as holds is sought. Draws are put in the order of the harm they do, which a simulation of
/// some of them turns into a probability: a fleet holds with the confidence of the worst draw that it holds in. Rows
/// are judged until the first ones are; one that cannot be made sure leaves the ranking. Sets probabilities. A ranking
/// that was judged and got new rows is judged on.
void judge_ranking(PlanResult& result, const PlanSpec& plan, PricerPool& pricers);

/// Simulates the fleet in every draw to its end: sets the ranges of its objectives, and its probability to the share of
/// these draws that meet all of them. Nothing where the plan is not judged.
void weigh_objectives(PlannedDeployment& planned, const PlanSpec& plan, PricerPool& pricers);
/// The same of a fleet that holds with plan.confidence. Of any other nothing is set: the draws end as soon as too many
/// of them are missed, the worst ones first. True where it holds, or is not judged.
bool weigh_if_sure(PlannedDeployment& planned, const PlanSpec& plan, PricerPool& pricers);
/// Range of an objective, by its place: of the draws where they were weighed; else by quick_spread, `missed` not a
/// number. Nothing of the ideal roofline is a number: it is no forecast, and has no errors that were measured.
ObjectiveRange range_of(const PlannedDeployment& planned, std::size_t objective);

/// Weighs the first row in all draws. It gives up replicas while enough draws still hold, and gets more (or less load)
/// while too few do; then the first row of the new order is weighed, up to 32 rows. A row that the search does not
/// allow to grow so far leaves the ranking, as long as another stays: else the surest is the answer. A note tells of
/// each GPU whose last row left. For throughput, the whole fleet of each first row is loaded, where one replica stood
/// for it.
void settle_winner(PlanResult& result, const PlanSpec& plan, PricerPool& pricers);

/// Gives a fleet one more replica (or less load) while too few of all draws hold, and weighs it once enough do. False
/// where the search allows no more: then it is the largest, and may not be weighed.
bool grow_until_sure(PlannedDeployment& planned, const PlanSpec& plan, PricerPool& pricers);

/// The same of a fleet that gets at least so many replicas first. False, and the fleet as it was, where the search does
/// not allow so many; false where it allows no more that would make it sure: then it is the largest, and weighed.
bool settle_row(PlannedDeployment& planned, int replicas, const PlanSpec& plan, PricerPool& pricers);

/// That no fleet of these GPUs is as sure as asked.
std::string unsure_gpu_note(const std::string& gpu, double confidence);

/// Sets what the row costs at 50, 80 and 95 %: of a weighed row by all draws, as its probability.
void price_confidence(PlanResult& result, std::size_t row, const PlanSpec& plan, PricerPool& pricers);

}  // namespace roofcast
