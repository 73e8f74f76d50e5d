#pragma once
// The lectures compute with the datasheet alone: every deployment here is ideal.

#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "sim/plan/estimate.h"
#include "sim/plan/scenario.h"
#include "sim/step/deployment.h"

namespace lecture {

using namespace roofcast;

inline std::shared_ptr<const Deployment> deploy(const std::string& model, const std::string& gpu,
                                                const std::string& more = "") {
  ConfigReader in(parse_config_text("model: " + model + "\ngpu: " + gpu + "\n" + more, "lecture"), "a scenario");
  return read_deployment(in, Fidelity::kIdeal);
}

/// `batch` equal requests; without a context, the decode step is where half of the output is out.
inline EstimateRequest request(int batch, int prompt_tokens, int output_tokens, std::optional<int> context = {}) {
  return {.batch = batch, .prompt_tokens = prompt_tokens, .output_tokens = output_tokens, .context = context};
}

inline Estimate of(const std::string& model, const std::string& gpu, const EstimateRequest& request,
                   const std::string& more = "") {
  return estimate(deploy(model, gpu, more), request);
}

/// A decode step of `batch` sequences with `context` tokens each.
inline Estimate decode(const std::string& model, const std::string& gpu, int batch, int context,
                       const std::string& more = "") {
  return of(model, gpu, request(batch, context, 1, context), more);
}

/// Cache of one sequence.
inline double cache_bytes(const std::string& model, double tokens, const std::string& more = "") {
  return deploy(model, "h100-sxm", more)->memory.layout.sequence_bytes(tokens).base();
}

inline doctest::Approx within(double value, double share = 0.02) { return doctest::Approx(value).epsilon(share); }

}  // namespace lecture
