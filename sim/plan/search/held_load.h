#pragma once
// The highest load a fleet holds within its objectives, by bisection.

#include <vector>

#include "sim/plan/search/load_test.h"

namespace roofcast {

/// A load that was tried, and what came of it.
struct TriedLoad {
  double load = 0;
  Fleet fleet{};
  LoadResult result;
};

struct HeldLoad {
  double load = 0;    ///< 0: not even the lowest tried
  LoadResult result;  ///< at that load, or at the lowest tried
};

struct LoadRange {
  double low = 0, high = 0;            ///< 0 as `low`: search down from `high`
  double tolerance = 0.03;             ///< relative; users go to whole numbers
  const LoadResult* at_low = nullptr;  ///< where `low` is known to hold
  bool only_met = false;               ///< of the loads that do not hold nothing else is wanted
  bool on_grid = false;                ///< rates are those of on_grid(), whatever is tried first
};

/// The load of high * 2^(-k/32), k = 0, 1, ..., that is next to `load`.
double on_grid(double load, double high);

/// Assumes that less load never hurts; `tried` gets every simulation. Deterministic.
HeldLoad held_load(const Scenario& scenario, const LoadRange& range, const Fleet& fleet, PricerPool& pricers,
                   std::vector<TriedLoad>& tried);

}  // namespace roofcast
