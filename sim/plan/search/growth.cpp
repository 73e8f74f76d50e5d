#include "sim/plan/search/growth.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/plan/parallel.h"
#include "sim/plan/search/fleet_size.h"
#include "sim/plan/search/risk.h"
#include "sim/plan/search/spares.h"

namespace roofcast {
namespace {

constexpr std::size_t kConsidered = 3;  // rows: a slightly more expensive one may be cheaper later
constexpr double kHoursPerMonth = 8766.0 / 12;

GrowthStage stage_of(const PlannedDeployment& p, int month) {
  return {.month = month,
          .load = p.load,
          .fleet = p.fleet(),
          .spare = p.spare,
          .gpus = p.gpus(),
          .usd_per_hour = p.usd_per_hour(),
          .probability = p.probability};
}

/// By the forecast alone: another seed, four times the requests, and more workers until they hold.
bool grow_by_forecast(PlannedDeployment& p, const PlanSpec& plan, PricerPool& pricers) {
  while (true) {
    const Fleet before = p.fleet();
    if (confirm(p, plan, pricers)) return true;
    if (p.replicas == before.replicas && p.prefill_replicas == before.prefill_replicas) return false;
  }
}

class Grower {
 public:
  Grower(const PlanSpec& plan, const GrowthSpec& growth, const std::vector<TruthDraw>& draws, double elsewhere,
         PricerPool& pricers)
      : plan_(plan), growth_(growth), draws_(draws), elsewhere_(elsewhere), pricers_(pricers) {}

  GrowthPath path_of(const PlannedDeployment& row, std::size_t index) const {
    GrowthPath out{.row = index, .stages = {stage_of(row, 0)}, .outgrown = std::nullopt, .usd = 0};
    PlannedDeployment p = row;
    for (int month = 0; month < growth_.months; ++month) {
      const double all = (row.load + elsewhere_) * std::pow(1 + growth_.per_month, month);
      if (month > 0 && !carries(p, all - elsewhere_)) {
        out.outgrown = month;
        break;
      }
      if (p.gpus() != out.stages.back().gpus) out.stages.push_back(stage_of(p, month));
      out.usd += out.stages.back().usd_per_hour * kHoursPerMonth;
    }
    return out;
  }

 private:
  bool carries(PlannedDeployment& p, double load) const {
    p.load = load_kind(*p.candidate.scenario.workload) == LoadKind::kUsers ? std::ceil(load) : load;
    return draws_.empty() ? grow_by_forecast(p, plan_, pricers_) : make_sure(p, plan_, draws_, pricers_);
  }

  const PlanSpec& plan_;
  const GrowthSpec& growth_;
  const std::vector<TruthDraw>& draws_;
  double elsewhere_;
  PricerPool& pricers_;
};

bool cheaper(const GrowthPath& a, const GrowthPath& b) {
  constexpr int kNever = std::numeric_limits<int>::max();
  const int until_a = a.outgrown.value_or(kNever), until_b = b.outgrown.value_or(kNever);
  return until_a != until_b ? until_a > until_b : a.usd < b.usd;
}

}  // namespace

std::vector<GrowthPath> growth_paths(const PlanSpec& plan, const PlanResult& result, double elsewhere) {
  if (!plan.growth || result.ranked.empty()) return {};
  if (result.kind == LoadKind::kWhole)
    throw ConfigError(plan.space.scenario->location, "'growth' needs a rate or users; a batch job has neither");
  const std::vector<TruthDraw> draws = draws_of(plan, result.ranked.front().candidate.scenario);
  const Grower grower(plan, *plan.growth, draws, elsewhere, *result.pricers);
  std::vector<GrowthPath> paths(std::min(kConsidered, result.ranked.size()));
  parallel_for_each_index(paths.size(), [&](std::size_t i) { paths[i] = grower.path_of(result.ranked[i], i); });
  std::stable_sort(paths.begin(), paths.end(), cheaper);
  return paths;
}

}  // namespace roofcast
