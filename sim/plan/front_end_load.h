#pragma once
// How busy the front ends of a simulated deployment were.

#include <algorithm>

#include "sim/serve/metrics.h"
#include "sim/serve/simulation.h"

namespace roofcast {

/// Share of its time from which on a front end binds: what it has to do queues up.
inline constexpr double kFrontEndBinds = 0.8;

struct FrontEndLoad {
  double sending = 0;  ///< share of the time for which front ends sent tokens
  double intake = 0;   ///< share for which they took in the prompts that were answered or given up
  Seconds prompt{};    ///< what one of their servers takes for a prompt of the mean length
  Seconds idle{};      ///< from its sending until the engine sees it, where nothing else is taken in
  double busier() const { return std::max(sending, intake); }
};

/// `prompt_text`: front-end time per prompt token, relative to plain text (WorkloadSpec::prompt_text).
FrontEndLoad front_end_load(const ServingMetrics& metrics, const Deployment& deployment, const ServingOptions& options,
                            double prompt_text = 1.0);

}  // namespace roofcast
