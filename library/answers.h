#pragma once
// Questions and answers as plain values. The public headers and the internal ones use the same names (Scenario,
// Seconds, estimate), so no source file includes both: this header stands between them.

#include <string>

#include "base/config_node.h"

namespace roofcast::library {

/// `json` as the program prints it; `reason` where no answer exists.
struct Answer {
  std::string json{}, reason{};
};

struct EstimateQuestion {
  int batch = 1, prompt_tokens = 1, output_tokens = 1;
  int context = 0;  ///< 0: its default
};

Answer answer_estimate(const ConfigTree& scenario, bool ideal, const EstimateQuestion& question);
Answer answer_simulation(const ConfigTree& scenario, bool ideal);
Answer answer_plan(const ConfigTree& scenario, bool ideal);

}  // namespace roofcast::library
