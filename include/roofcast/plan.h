#pragma once
#include "roofcast/result.h"
#include "roofcast/scenario.h"

namespace roofcast {
inline namespace v0 {

struct PlanOptions {
  Fidelity fidelity = Fidelity::calibrated;
};

/// The cheapest deployments that meet the scenario's `objectives` under its workload, out of its `search`:
/// "deployments" in order, the winner first. Throws Error.
Result plan(const Scenario& scenario, const PlanOptions& options = {});

}  // namespace v0
}  // namespace roofcast
