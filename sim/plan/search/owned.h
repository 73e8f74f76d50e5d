#pragma once
// GPUs that are there already: the share of the load they carry, so that only the rest is planned anew.

#include <optional>
#include <string>

#include "sim/plan/search/capacity_search.h"

namespace roofcast {

/// What the GPUs at hand do, behind one router with those that are planned.
struct OwnedShare {
  PlannedDeployment planned;  ///< on all of them, at the highest load that they hold
  double offered = 0;         ///< load of the whole fleet
};

/// A plan and its `search.owned: {gpus: [{name, available, price}], tp: [...], precision: [...]}`. The GPUs at hand
/// take the highest load that they hold within the objectives and with the plan's confidence, at most what is offered.
/// A router that gives every replica a share by what it holds splits a random load into random loads, so each part is
/// simulated by itself. Where they carry all, the plan is of them alone. They cost what `price` says, of a GPU or of
/// all (`owned: {price: {tier: owned, ...}}`), else their electricity; they stay idle where that makes the whole
/// dearer, or where what remains has no answer by itself. Nothing where no GPUs are at hand. Throws ConfigError where
/// they hold nothing, and for loads that are not a steady rate or users.
struct OwnedPlan {
  std::optional<OwnedShare> share;  ///< none: they carry all
  ConfigTree rest;                  ///< the plan without `owned`, for the load that remains
  std::string note = {};            ///< about GPUs at hand that carry all, or stay idle
};
std::optional<OwnedPlan> plan_owned(const ConfigTree& plan, const SearchOptions& options);

}  // namespace roofcast
