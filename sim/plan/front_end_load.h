#pragma once
// Front-end utilization of a simulated deployment.

#include <algorithm>

#include "sim/serve/metrics.h"
#include "sim/serve/simulation.h"

namespace roofcast {

/// Utilization above which a front end is considered a bottleneck.
inline constexpr double kFrontEndBinds = 0.8;

struct FrontEndLoad {
  double sending = 0;  ///< fraction of the time spent sending tokens
  double intake = 0;   ///< fraction spent receiving prompts, including cancelled ones
  Seconds prompt{};    ///< time of one server per prompt of mean length
  Seconds idle{};      ///< delay of such a prompt before the engine sees it, at idle
  double busier() const { return std::max(sending, intake); }
};

/// `prompt_text`: front-end time per prompt token, relative to plain text (WorkloadSpec::prompt_text).
FrontEndLoad front_end_load(const ServingMetrics& metrics, const Deployment& deployment, const ServingOptions& options,
                            double prompt_text = 1.0);

}  // namespace roofcast
