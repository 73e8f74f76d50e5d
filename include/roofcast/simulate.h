#pragma once
#include "roofcast/result.h"
#include "roofcast/scenario.h"

namespace roofcast {
inline namespace v0 {

struct SimulateOptions {
  Fidelity fidelity = Fidelity::calibrated;
};

/// Simulates the scenario's workload request by request. The same seed gives the same result. Throws Error.
Result simulate(const Scenario& scenario, const SimulateOptions& options = {});

}  // namespace v0
}  // namespace roofcast
