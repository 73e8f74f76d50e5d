#pragma once
#include "sim/plan/system_spread.h"

namespace roofcast {

/// system_spread() of a deployment that a plan launches by its own command: how is known then,
/// and which release; on which host is not.
SystemSpread planned_spread(const Deployment& deployment, LoadRegime regime, double launching);

}  // namespace roofcast
