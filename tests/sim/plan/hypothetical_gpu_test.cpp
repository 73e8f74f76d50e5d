// A GPU of which any one figure is raised serves no model slower.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "sim/plan/estimate.h"
#include "sim/plan/scenario.h"
#include "sim/step/deployment.h"

using namespace roofcast;

namespace {

/// At the same watts: where the board had more of them than the one measured, less of a faster clock is left.
constexpr double kMorePeak = 1.05;

constexpr const char* kGpus[] = {"h100-sxm", "h200-sxm", "b200-sxm", "b300-sxm", "gb300",        "gh200",
                                 "a100-sxm", "l40s",     "rtx-4090", "mi300x",   "rtx-pro-6000", "h20"};
constexpr const char* kModels[] = {"llama-3.1-8b",       "qwen3-30b-a3b", "deepseek-v3",     "gpt-oss-120b",
                                   "qwen3-next-80b-a3b", "gemma-3-27b",   "falcon-mamba-7b", "llama-4-scout"};
constexpr const char* kWeights[] = {"", "", "fp8", "fp8_block", "int4", "int8", "nvfp4", "bitnet", "smoothquant"};

template <class T, std::size_t n>
T any_of(Random& random, const T (&values)[n]) {
  return values[static_cast<std::size_t>(random.uniform_integer(0, static_cast<std::int64_t>(n) - 1))];
}

struct Drawn {
  ConfigTree tree;
  EstimateRequest request;
};

Drawn draw(Random& random) {
  constexpr int kBatches[] = {1, 4, 32, 128}, kPrompts[] = {128, 1024, 8192}, kTp[] = {1, 1, 2, 8};
  const std::string weights = any_of(random, kWeights);
  std::string text = fmt::format("model: {}\ngpu: {}\nengine: {}\nparallelism: {{tp: {}}}\nforce_unsupported: true\n",
                                 any_of(random, kModels), any_of(random, kGpus),
                                 random.uniform() < 0.3 ? "trtllm" : "vllm", any_of(random, kTp));
  if (!weights.empty()) text += fmt::format("precision: {}\n", weights);
  Drawn drawn{.tree = parse_config_text(text, "drawn.yaml"), .request = {}};
  drawn.request.batch = any_of(random, kBatches);
  drawn.request.prompt_tokens = any_of(random, kPrompts);
  drawn.request.output_tokens = 64;
  return drawn;
}

/// Assignments that raise one figure each. Not among them: the memory's size, with which vLLM takes longer steps.
std::vector<std::pair<std::string, double>> raised(const GpuSpec& gpu, double more) {
  std::vector<std::pair<std::string, double>> out;
  const auto add = [&](const std::string& key, double value, const char* unit, double within = 1.0) {
    if (value > 0) out.emplace_back(fmt::format("gpu.{}={:.12g}{}", key, value * more, unit), within);
  };
  out.emplace_back(fmt::format("gpu.sm_count={}", static_cast<int>(gpu.sm_count * more)), 1.0);
  add("memory_bandwidth", gpu.memory_bandwidth.base() / 1e9, " GB/s");
  add("l2_cache", gpu.l2_cache.base() / 1048576, " MiB", 1.003);  // a tile that was not chosen before
  add("boost_clock", gpu.boost_clock.base() / 1e6, " MHz");
  add("board_power", gpu.board_power.value, " W");
  add("exponentials_per_clock", gpu.exponentials_per_clock, "");
  for (std::size_t i = 0; i < kDtypeCount; ++i)
    add(fmt::format("dense.{}", name_of(static_cast<Dtype>(i))), gpu.dense[i].base() / 1e12, " TFLOP/s", kMorePeak);
  if (is_nvlink(gpu.node.fabric)) add("node.nvlink_bandwidth", gpu.node.fabric_bandwidth.base() / 1e9, " GB/s");
  add("node.pcie_bandwidth", gpu.node.pcie_bandwidth.base() / 1e9, " GB/s");
  add("node.nic_bandwidth", gpu.node.nic_bandwidth.base() / 1e9, " GB/s");
  add("node.host_speed", gpu.node.host_speed, "");
  add("node.launch_speed", gpu.node.launch_speed, "");
  return out;
}

}  // namespace

TEST_CASE("hypothetical GPUs: raising any one figure makes neither the first token nor the next ones later") {
  Random random(1);
  int checked = 0;
  for (int i = 0; i < 120; ++i) {
    const Drawn drawn = draw(random);
    const double more = 1.3 + 2.7 * random.uniform();
    std::shared_ptr<const Deployment> before;
    try {
      before = read_scenario(drawn.tree, Fidelity::kCalibrated).deployment;
    } catch (const ConfigError&) {
      continue;  // the GPU has no unit for the format, or the model no such recipe
    }
    if (before->memory.infeasible) continue;
    const Estimate old = estimate(before, drawn.request);
    CAPTURE(to_yaml(*drawn.tree));
    CAPTURE(drawn.request.batch);
    CAPTURE(drawn.request.prompt_tokens);
    for (const auto& [change, within] : raised(before->gpu, more)) {
      CAPTURE(change);
      const ConfigTree tree = with_assignment(drawn.tree, change, "test");
      const Estimate now = estimate(read_scenario(tree, Fidelity::kCalibrated).deployment, drawn.request);
      CHECK(now.ttft.base() <= old.ttft.base() * within * (1 + 1e-9));
      CHECK(now.tpot.base() <= old.tpot.base() * within * (1 + 1e-9));
      ++checked;
    }
  }
  CHECK(checked >= 500);
}
