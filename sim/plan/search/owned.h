#pragma once
// GPUs that are already owned: the share of the load that they carry, so that only the rest is planned.

#include <optional>
#include <string>

#include "sim/plan/search/capacity_search.h"

namespace roofcast {

/// The owned GPUs, behind one router with the planned ones.
struct OwnedShare {
  PlannedDeployment planned;  ///< on all owned GPUs, at the highest load that they hold
  double offered = 0;         ///< load of the whole fleet
};

/// Plans with `search.owned: {gpus: [{name, available, price}], tp: [...], precision: [...]}`. The owned GPUs take the
/// highest load that they hold within the objectives and with the plan's confidence, at most the offered load. A router
/// that weights replicas by capacity splits random arrivals into random arrivals, so each part is simulated separately.
/// If they carry everything, the plan consists of them alone. They cost `price` (per GPU, or for all with `owned:
/// {price: {tier: owned, ...}}`), else their electricity. They stay idle if that makes the total more expensive, or if
/// the rest has no answer. Empty without owned GPUs. Throws ConfigError if they hold no load, and for loads other than
/// a steady rate or users.
struct OwnedPlan {
  std::optional<OwnedShare> share;  ///< empty: they carry everything
  ConfigTree rest;                  ///< the plan without `owned`, for the remaining load
  std::string note = {};            ///< why owned GPUs carry everything, or stay idle
};
std::optional<OwnedPlan> plan_owned(const ConfigTree& plan, const SearchOptions& options);

}  // namespace roofcast
