#pragma once
#include "sim/plan/system_spread.h"

namespace roofcast {

/// system_spread() of a planned deployment: its launch command and release are known, its host is not.
SystemSpread planned_spread(const Deployment& deployment, LoadRegime regime, const HostSpreads& host);

}  // namespace roofcast
