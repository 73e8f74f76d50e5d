#pragma once
// What llama-bench measured: the speed of one user's prompts and answers, test by test.

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/measured/comparison.h"

namespace roofcast {

/// `prompt` tokens at once, then `output` one after another, behind `depth` tokens that are in the cache already.
struct LlamaTest {
  int prompt = 0, output = 0, depth = 0;
  double tokens_per_s = 0;   ///< of prompt and output together
  std::string name() const;  ///< "pp512", "tg128", "pp512+tg128", "tg128_at_d4096"
};

struct LlamaBench {
  std::string path, model;
  std::vector<LlamaTest> tests;
};

/// The tests of `llama-bench -o json`, jsonl or csv (tools/llama-bench/README.md of llama.cpp); nothing for a file of
/// another kind. Throws ConfigError for a test that is incomplete or out of range.
std::optional<LlamaBench> read_llama_bench(const std::string& path);

/// The speeds beside their predictions: no load is simulated, and no assumption changed. Throws ConfigError where the
/// scenario's engine is not llama.cpp or its like, Unavailable when the deployment does not fit.
Comparison compare_with_llama_bench(const Scenario& scenario, const LlamaBench& bench);

}  // namespace roofcast
