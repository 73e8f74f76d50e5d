#pragma once
// Results of llama-bench: prompt and generation speed of a single user, test by test.

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/measured/comparison.h"

namespace roofcast {

/// A test: `prompt` tokens in one pass, then `output` tokens one by one, after `depth` cached tokens.
struct LlamaTest {
  int prompt = 0, output = 0, depth = 0;
  double tokens_per_s = 0;   ///< of prompt and output together
  std::string name() const;  ///< "pp512", "tg128", "pp512+tg128", "tg128_at_d4096"
};

struct LlamaBench {
  std::string path, model;
  std::vector<LlamaTest> tests;
};

/// The tests in a file of `llama-bench -o json`, jsonl or csv (tools/llama-bench/README.md of llama.cpp); empty for
/// other files. Throws ConfigError for incomplete tests or values out of range.
std::optional<LlamaBench> read_llama_bench(const std::string& path);

/// Compares measured and predicted speeds; simulates no load and changes no assumption. Throws ConfigError if the
/// engine of the scenario is not llama.cpp or similar, Unavailable if the deployment does not fit.
Comparison compare_with_llama_bench(const Scenario& scenario, const LlamaBench& bench);

}  // namespace roofcast
