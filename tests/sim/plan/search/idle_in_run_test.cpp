#include "sim/plan/search/idle_in_run.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace roofcast;

namespace {

std::vector<std::string> idle(const std::string& engine, const std::string& rest = "", int requests = 1) {
  const ConfigTree tree =
      parse_config_text(fmt::format("gpu: h100-sxm\nengine: {{name: vllm{}}}\n{}\nworkload: {{arrivals: {{process: "
                                    "all_at_once}}, requests: {}, prompt_tokens: 2000, output_tokens: 8}}\n",
                                    engine, rest.empty() ? "model: llama-3.1-8b" : rest, requests),
                        "s.yaml");
  const Scenario read = read_scenario(tree, Fidelity::kCalibrated);
  return idle_in_run(tree, read, Fidelity::kCalibrated, simulate(read.deployment, *read.workload, read.serving));
}

const std::vector<std::string> kNothing;

std::vector<std::string> line(const std::string& key) { return {key + " changes nothing in this run"}; }

}  // namespace

TEST_CASE("idle in a run: launches that the GPU's work hides, and those that it does not") {
  // One prompt of 2,000 tokens takes the GPU 45 ms and its decode steps replay graphs.
  CHECK(idle(", launch_speed: 2") == line("engine.launch_speed"));
  CHECK(idle(", host: {launch_time: 2 us}") == line("engine.host.launch_time"));
  CHECK(idle(", host: {launch_time: 80 us}, cuda_graphs: {enabled: false}", "model: llama-3.2-1b") == kNothing);
  CHECK(idle(", launch_speed: 0.5, cuda_graphs: {enabled: false}", "model: llama-3.2-1b") == kNothing);
}

TEST_CASE("idle in a run: limits that are not reached, but not what repeats the engine") {
  CHECK(idle(", watermark: 0.05") == line("engine.watermark"));
  CHECK(idle(", chunked_prefill: false") == line("engine.chunked_prefill"));
  CHECK(idle(", scheduler: decode_first") == kNothing);  // as the engine has it
  CHECK(idle("", "model: llama-3.1-8b\nmax_queue: 3", 2) == line("max_queue"));
}

TEST_CASE("idle in a run: a setting of which something else is said is not named twice, and long runs say nothing") {
  CHECK(idle(", fused_all_reduce: true") == kNothing);  // idle_settings(): tp 1
  CHECK(idle(", watermark: 0.05", "", 100) == line("engine.watermark"));
  CHECK(idle(", watermark: 0.05", "", 100'001) == kNothing);
}

TEST_CASE("idle in a run: a setting with its default is idle only if another value is") {
  CHECK(idle("", "model: qwen3-30b-a3b\nrouting: {skew: 1}") == kNothing);
}

TEST_CASE("idle in a run: words of the prefill workers' engine") {
  const auto apart = [](const std::string& setting) {
    return idle("", "model: llama-3.1-8b\ndisaggregation: {bandwidth: 1 GB/s, prefill: {engine: {" + setting + "}}}");
  };
  CHECK(apart("victim: fewest_outputs") == line("disaggregation.prefill.engine.victim"));
  CHECK(apart("cache_transfer: by_layer") == kNothing);
  CHECK(apart("scheduler: decode_first") == kNothing);  // as the engine has it
}

TEST_CASE("idle in a run: keys of a model that its architecture does not use") {
  CHECK(idle("", "model: {name: mamba-2.8b, num_key_value_heads: 1}") == line("model.num_key_value_heads"));
  CHECK(idle("", "model: {name: qwen3-8b, num_key_value_heads: 4}") == kNothing);
  CHECK(idle("", "model: {name: qwen3-8b, sliding_window: 1024}") == kNothing);
  CHECK(idle("", "model: {name: qwen3-8b, num_key_value_heads: 8}") == kNothing);  // the model's own number
}
