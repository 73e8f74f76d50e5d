#pragma once
#include "sim/plan/system_spread.h"

namespace roofcast {

/// system_spread() of a planned deployment: its launch command and release are known, its host is not.
SystemSpread planned_spread(const Deployment& deployment, LoadRegime regime, const HostSpreads& host);

/// The widest that host_spreads() can be: of a time that the host takes whole.
HostSpreads widest_host_spreads();

}  // namespace roofcast
