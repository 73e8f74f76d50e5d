#pragma once
#include <memory>

#include "sim/plan/estimate.h"

namespace roofcast {

/// Simulates this load on one replica, 20 requests per user, as `simulate` would. Skipped if outputs are so long that
/// it could take seconds, and if such requests cannot be simulated.
SteadyLoad steady_load(const std::shared_ptr<const Deployment>& deployment, const EstimateRequest& request);

}  // namespace roofcast
