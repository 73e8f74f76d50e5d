#pragma once
// Why requests of a simulated run failed.

#include <string>

#include "sim/serve/metrics.h"

namespace roofcast {

struct Deployment;

/// "3 cancelled by their clients (timeout); 2 longer than the context of 4096 tokens (engine.max_model_len)"; empty
/// where none failed. `prefill`: of a disaggregated deployment, else null.
std::string failure_words(const ServingMetrics& metrics, const Deployment& deployment, const Deployment* prefill);

}  // namespace roofcast
