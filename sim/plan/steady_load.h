#pragma once
#include <memory>

#include "sim/plan/estimate.h"

namespace roofcast {

/// Simulates that load on one replica, 20 requests of each user, as `simulate` would. Left out where answers are so
/// long that it could take seconds, and where there is no load of such requests.
SteadyLoad steady_load(const std::shared_ptr<const Deployment>& deployment, const EstimateRequest& request);

}  // namespace roofcast
