// Every step against what no machine can beat: its bytes over the datasheet's bandwidth, its FLOPs over the peak.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/step/step_model.h"
#include "tests/sim/step/shipped.h"

using namespace roofcast;

namespace {

/// One of each family of layers, small enough for one of the GPUs or eight.
const std::vector<std::string> kModels = {"qwen2.5-0.5b", "llama-3.1-8b",    "qwen3-32b",   "llama-3.1-70b",
                                          "gemma-3-27b",  "falcon-mamba-7b", "mamba2-2.7b", "mixtral-8x7b",
                                          "gpt-oss-120b", "deepseek-v3",     "glm-5",       "qwen3-next-80b-a3b",
                                          "phi-2",        "minimax-m2.5",    "kimi-k2.5",   "nemotron-h-8b"};

double fastest_unit(const GpuSpec& gpu) {
  double peak = 0;
  for (const FlopsPerSecond unit : gpu.dense) peak = std::max(peak, unit.base());
  return peak;
}

}  // namespace

TEST_CASE("no step is faster than its bytes over the bandwidth or its FLOPs over the fastest unit") {
  int checked = 0;
  for (const std::string& model : kModels)
    for (const char* gpu : {"a100-sxm", "h100-sxm", "b200-sxm", "l40s", "mi300x"})
      for (const char* engine : {"vllm", "trtllm"})
        for (const int tp : {1, 8}) {
          const auto d = shipped::deploy(model, gpu, engine, tp);
          if (d->memory.infeasible || !d->gpu.compute_dtype(d->precision.weights, d->precision.activations)) continue;
          StepModel steps(d);
          const auto check = [&](const StepBatch& batch) {
            const StepCost cost = steps.cost(batch);
            CAPTURE(fmt::format("{} on {} under {}, tp {}: {} decodes", model, gpu, engine, tp, batch.decodes));
            CHECK(cost.time.base() >= cost.bytes.base() / d->gpu.memory_bandwidth.base());
            CHECK(cost.time.base() >= cost.flops.base() / fastest_unit(d->gpu));
            ++checked;
          };
          for (const int decodes : {1, 16, 256})
            for (const double context : {500.0, 16'000.0})
              check({.decodes = decodes, .decode_context = decodes * context, .query_len = 1, .prefills = {}});
          for (const int tokens : {512, 16'384}) {
            const std::array<PrefillChunk, 1> chunk{{{.tokens = tokens}}};
            check({.decodes = 0, .decode_context = 0, .query_len = 1, .prefills = chunk});
          }
        }
  CHECK(checked > 1000);
}

TEST_CASE("a decode step counts every weight it reads, of experts those that are hit, and every cache") {
  for (const std::string& model : kModels) {
    CAPTURE(model);
    const auto d = shipped::deploy(model, "b200-sxm");
    StepModel steps(d);
    // A step reads all but the rows of the embedding that no token names.
    const double table = d->model.tied_embedding ? 0.0 : d->model.vocabulary * d->model.embedding_dim * 2;
    const double weights = weight_bytes(d->model, d->precision, {}).base() - table;
    const ParameterCount parameters = count_parameters(d->model);
    const double cache = cache_layout(d->model, d->precision, d->sharding).sequence_bytes(4000).base();
    const auto bytes = [&](int decodes) {
      return steps.cost({.decodes = decodes, .decode_context = decodes * 4000.0, .query_len = 1, .prefills = {}})
          .bytes.base();
    };
    // One token meets its own experts; ten thousand meet all.
    CHECK(bytes(1) > 0.7 * weights * parameters.active / parameters.total);
    CHECK(bytes(10'000) > weights);
    // Sparse attention reads a part of the cache, everything else all of it.
    if (model != "glm-5") CHECK(bytes(64) > 64 * cache);
  }
}
