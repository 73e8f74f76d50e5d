#include "sim/plan/intervals.h"

#include <algorithm>
#include <cmath>

#include "base/error_summary.h"
#include "sim/step/deployment.h"

namespace roofcast {

FamilySpreads family_spreads(const StepBreakdown& step, const Deployment& d, Seconds total) {
  FamilySpreads spreads{};
  if (d.fidelity == Fidelity::kIdeal || total <= Seconds(0)) return spreads;
  double operators = 0;
  for (const OperatorTime& op : step.operators) {
    spreads[static_cast<std::size_t>(op.family)] += op.cost.time.base() * op.discrepancy;
    operators += op.cost.time.base();
  }
  spreads.back() = 0.25 * std::max(0.0, total.base() - operators);
  for (double& spread : spreads) spread /= total.base();
  return spreads;
}

double relative_spread(const StepBreakdown& step, const Deployment& d, Seconds total) {
  double variance = 0;
  for (const double spread : family_spreads(step, d, total)) variance += spread * spread;
  return std::sqrt(variance);
}

LogSpread kernel_spread(double relative_spread) {
  return {-kNinetyPercent * relative_spread, kNinetyPercent * relative_spread};
}

Interval interval_of(Seconds time, const LogSpread& spread) {
  return {.low = time * std::exp(spread.low), .high = time * std::exp(spread.high)};
}

namespace {

void merge(HostBound& sum, const HostBound& more, double times) {
  sum.gpu += more.gpu * times;
  sum.meanwhile += more.meanwhile * times;
  sum.time += more.time * times;
}

}  // namespace

void merge(StepBreakdown& sum, const StepBreakdown& more, double times) {
  for (const OperatorTime& line : more.operators) {
    auto at = std::find_if(sum.operators.begin(), sum.operators.end(),
                           [&](const OperatorTime& l) { return l.name == line.name; });
    if (at == sum.operators.end()) {
      at = sum.operators.insert(sum.operators.end(), line);
      at->count = 0;
      at->cost = {.bound = line.cost.bound};
    }
    if (line.cost.time > at->cost.time) at->cost.bound = line.cost.bound;
    at->count += line.count * times;
    at->cost.time += line.cost.time * times;
    at->cost.flops += line.cost.flops * times;
    at->cost.bytes += line.cost.bytes * times;
  }
  if (sum.time <= Seconds(0)) sum.bound = more.bound;
  sum.gpu_time += more.gpu_time * times;
  sum.host_time += more.host_time * times;
  sum.time += more.time * times;
  merge(sum.host, more.host, times);
  merge(sum.drafting, more.drafting, times);
  sum.flops += more.flops * times;
  sum.bytes += more.bytes * times;
}

}  // namespace roofcast
