#pragma once
// Errors of whole deployments, from classes of measured runs that were left out of the fit. They already contain the
// errors of measured kernels; adding kernel errors widens intervals a little more than coverage requires.

#include <string_view>

#include "base/units.h"

namespace roofcast {

struct Deployment;
struct StepBreakdown;

enum class LoadRegime {
  kLight,      ///< at most 4 requests in flight per GPU
  kLoaded,     ///< more
  kSaturated,  ///< requests wait for a slot or memory if the forecast is slightly off
  kQueued,     ///< requests wait in the forecast too: queueing dominates TTFT
};
std::string_view name_of(LoadRegime regime);

/// `in_flight`: requests on all replicas; `tokens`: tokens of one request at its end.
LoadRegime load_regime(const Deployment& deployment, int replicas, double in_flight, double tokens);

/// 5 and 95 % quantiles of ln(measured / predicted); low is at most 0, high at least 0.
struct LogSpread {
  double low = 0, high = 0;
};

/// How far a forecast is off if all host costs are off by one lognormal factor: 5 and 95 % quantiles of
/// ln(time / predicted). Host work that the GPU hides counts as far as it would then exceed the GPU's.
struct HostSpreads {
  LogSpread step;   ///< of a decode step
  LogSpread first;  ///< of the time to the first token, with the front end
};
/// `front_end`: the time of a request before its prompt runs. The rest of `ttft` is a wait for steps like `other`.
HostSpreads host_spreads(const StepBreakdown& decode, const StepBreakdown& prefill, const StepBreakdown& other,
                         Seconds front_end, Seconds ttft);

/// From configs/uncertainty/serving.yaml, by regime, and from the host's costs. Wider if no run of the recipe on this
/// GPU and release validated it (`validated` of configs/recipes), more so with kernels of another release; with kernels
/// of another engine; for an engine newer than all known ones, or without a stated release; and with kernels measured
/// on a GPU of another vendor. Zero for the ideal roofline.
struct SystemSpread {
  LogSpread ttft, tpot;
};
SystemSpread system_spread(const Deployment& deployment, LoadRegime regime, const HostSpreads& host);
/// The part of it that is the same for all deployments in a regime.
SystemSpread regime_spread(LoadRegime regime);
/// The spread of GPU power; zero for the ideal roofline.
LogSpread power_spread(const Deployment& deployment);
/// Whether the constants come from a GPU of another vendor.
bool of_another_vendor(const Deployment& deployment);

/// Combines independent causes: root of the sum of squares, separately for each side.
LogSpread together(const LogSpread& one, const LogSpread& other);

}  // namespace roofcast
