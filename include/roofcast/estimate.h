#pragma once
#include <optional>

#include "roofcast/result.h"
#include "roofcast/scenario.h"

namespace roofcast {
inline namespace v0 {

struct EstimateOptions {
  int batch = 1;  ///< concurrent sequences on one replica
  int prompt_tokens = 1024;
  int output_tokens = 128;
  std::optional<int> context{};  ///< tokens in the cache at the decode step; default: prompt + half of the output
  Fidelity fidelity = Fidelity::calibrated;
};

/// Computes TTFT, TPOT, memory and cost of a batch of equal requests in closed form, operator by operator. Throws
/// Error.
Result estimate(const Scenario& scenario, const EstimateOptions& options = {});

}  // namespace v0
}  // namespace roofcast
