#pragma once
// How far a whole deployment may be off: what left-out classes of measured runs showed. It holds the errors of measured
// kernels, too; what is added for kernels beside it widens intervals a little more than their coverage needs.

#include <string_view>

#include "sim/step/deployment.h"
#include "sim/step/step_model.h"

namespace roofcast {

enum class LoadRegime {
  kLight,      ///< at most 4 requests in flight on a GPU
  kLoaded,     ///< more
  kSaturated,  ///< requests wait for a place in the batch or for memory, if the forecast errs a little
  kQueued,     ///< they wait in the forecast, too: most of TTFT is a queue, as long as the throughput makes it
};
std::string_view name_of(LoadRegime regime);

/// `in_flight`: requests on all replicas; `tokens`: of one, at its end.
LoadRegime load_regime(const Deployment& deployment, int replicas, double in_flight, double tokens);

/// 5 and 95 % quantiles of ln(measured / predicted); low is at most 0, high at least 0.
struct LogSpread {
  double low = 0, high = 0;
};

/// From configs/uncertainty/serving.yaml, by the regime. Wider where no run of the recipe on this GPU and release
/// checked it (`validated` of configs/recipes), and there again for kernels of another release; where decode is
/// launched kernel by kernel; for an engine newer than what is known, or whose release is not said; and for kernels
/// measured on a GPU of another vendor. Nothing for the ideal roofline.
struct SystemSpread {
  LogSpread ttft, tpot;
};
/// `launching`: of a decode step (launched_share).
SystemSpread system_spread(const Deployment& deployment, LoadRegime regime, double launching);
/// The share of a step that launching its kernels takes, 0 to 1; 0 under CUDA graphs.
double launched_share(const StepBreakdown& step);
/// The spread of the power that GPUs draw; nothing for the ideal roofline.
LogSpread power_spread(const Deployment& deployment);
/// Whether its constants are those of a GPU of another vendor.
bool of_another_vendor(const Deployment& deployment);

/// Independent causes together: each side by its own root of the sum of squares.
LogSpread together(const LogSpread& one, const LogSpread& other);

}  // namespace roofcast
