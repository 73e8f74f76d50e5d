#include "sim/plan/search/held_load.h"

#include <algorithm>
#include <cmath>

namespace roofcast {
namespace {

/// Tries loads and remembers them.
class Prober {
 public:
  Prober(const Scenario& s, const Fleet& fleet, bool only_met, PricerPool& pricers, std::vector<TriedLoad>& tried)
      : scenario_(s),
        fleet_(fleet),
        only_met_(only_met),
        pricers_(pricers),
        tried_(tried),
        whole_(load_kind(*s.workload) == LoadKind::kUsers),
        rate_(load_kind(*s.workload) == LoadKind::kRate) {}

  double rounded(double load) const { return whole_ ? std::max(1.0, std::floor(load + 1e-9)) : load; }
  bool holds(double load) {
    const LoadTest test{
        .load = load, .fleet = fleet_, .seed = scenario_.serving.seed, .more_requests = 1, .only_met = only_met_};
    tried_.push_back({load, fleet_, test_load(scenario_, test, pricers_)});
    return tried_.back().result.met;
  }
  bool apart(double low, double high, double tolerance) const {
    return whole_ ? high - low > std::max(1.0, tolerance * low) : high / low > 1.0 + tolerance;
  }
  const LoadResult& last() const { return tried_.back().result; }
  /// Whether as many requests as before would take longer than a month: such loads are not of interest.
  bool endless(double load) const {
    constexpr double kMonth = 30 * 86400.0;
    return rate_ && static_cast<double>(last().requests) > kMonth * load;
  }

 private:
  const Scenario& scenario_;
  Fleet fleet_;
  bool only_met_;
  PricerPool& pricers_;
  std::vector<TriedLoad>& tried_;
  bool whole_, rate_;
};

}  // namespace

double on_grid(double load, double high) {
  constexpr double kSteps = 32;  // of a factor of two: neighbors are 2.2 % apart
  return high * std::exp2(-std::max(0.0, std::round(kSteps * std::log2(high / load))) / kSteps);
}

HeldLoad held_load(const Scenario& scenario, const LoadRange& range, const Fleet& fleet, PricerPool& pricers,
                   std::vector<TriedLoad>& tried) {
  constexpr int kHalvings = 10;  // at a thousandth of a load that is too high, requests no longer overlap
  Prober probe(scenario, fleet, range.only_met, pricers, tried);
  HeldLoad held;
  double high = probe.rounded(range.high), low = 0;
  if (probe.holds(high)) return {high, probe.last()};
  if (range.at_low != nullptr) low = range.low, held = {low, *range.at_low};
  for (int i = 0; i < kHalvings && low == 0; ++i) {
    const double next = probe.rounded(range.low > 0 && i == 0 ? range.low : high / 2);
    if (next >= high || probe.endless(next)) break;
    if (probe.holds(next)) {
      low = next, held = {low, probe.last()};
    } else {
      high = next;
      if (range.low > 0) break;
    }
  }
  if (low == 0) return {0, probe.last()};
  while (probe.apart(low, high, range.tolerance)) {
    const double between = std::sqrt(low * high);
    const double middle = probe.rounded(range.on_grid ? on_grid(between, range.high) : between);
    if (middle <= low || middle >= high) break;
    if (probe.holds(middle)) {
      low = middle, held = {low, probe.last()};
    } else {
      high = middle;
    }
  }
  return held;
}

}  // namespace roofcast
