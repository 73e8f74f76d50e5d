#pragma once
// Finds the highest load at which a fleet meets its objectives, by bisection.

#include <vector>

#include "sim/plan/search/load_test.h"

namespace roofcast {

/// A load that was tried, and its result.
struct TriedLoad {
  double load = 0;
  Fleet fleet{};
  LoadResult result;
};

struct HeldLoad {
  double load = 0;    ///< 0: not even the lowest load tried
  LoadResult result;  ///< at that load, or at the lowest load tried
};

struct LoadRange {
  double low = 0, high = 0;            ///< low 0: search downwards from `high`
  double tolerance = 0.03;             ///< relative; users are whole numbers
  const LoadResult* at_low = nullptr;  ///< result at `low`, if it is known to hold
  bool only_met = false;               ///< loads that do not hold may stop early
  bool on_grid = false;                ///< rates are rounded by on_grid()
};

/// The value high * 2^(-k/32), k = 0, 1, ..., nearest to `load`.
double on_grid(double load, double high);

/// Assumes that a lower load never hurts. Appends every simulation to `tried`. Deterministic.
HeldLoad held_load(const Scenario& scenario, const LoadRange& range, const Fleet& fleet, PricerPool& pricers,
                   std::vector<TriedLoad>& tried);

}  // namespace roofcast
