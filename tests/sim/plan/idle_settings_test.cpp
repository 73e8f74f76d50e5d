#include "sim/plan/idle_settings.h"

#include <doctest/doctest.h>

using namespace roofcast;

namespace {

std::vector<std::string> idle(const std::string& engine, const std::string& rest = "model: llama-3.1-8b") {
  const ConfigTree tree = parse_config_text(
      rest + "\ngpu: h100-sxm\nengine: {name: vllm" + engine +
          "}\nworkload: {arrivals: {process: all_at_once}, requests: 1, prompt_tokens: 8, output_tokens: 8}\n",
      "s.yaml");
  return idle_settings(tree, read_scenario(tree, Fidelity::kCalibrated));
}

}  // namespace

TEST_CASE("idle settings: what changes nothing in a deployment is told with the reason") {
  CHECK(idle("").empty());  // a release's own settings are not judged
  CHECK(idle(", max_num_seqs: 8").empty());
  CHECK(
      idle(", fused_all_reduce: true") ==
      std::vector<std::string>{"engine.fused_all_reduce changes nothing here: nothing is reduced across GPUs (tp 1)"});
  CHECK(idle(", fused_all_reduce: false").empty());
  CHECK(idle(", fused_all_reduce: true", "model: llama-3.1-8b\nparallelism: {tp: 2}").empty());
  CHECK(idle(", moe_kernel: marlin").size() == 1);
  CHECK(idle(", moe_kernel: marlin", "model: mixtral-8x7b\nparallelism: {tp: 4}").empty());
  CHECK(idle(", kv_offload: 10 GB").size() == 1);  // no prompt shares a prefix
}
