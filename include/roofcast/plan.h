#pragma once
#include "roofcast/result.h"
#include "roofcast/scenario.h"

namespace roofcast {
inline namespace v0 {

struct PlanOptions {
  Fidelity fidelity = Fidelity::calibrated;
};

/// Searches the scenario's `search` for the cheapest deployments that meet its `objectives` under its workload.
/// "deployments" are in order, the best first. Throws Error.
Result plan(const Scenario& scenario, const PlanOptions& options = {});

}  // namespace v0
}  // namespace roofcast
