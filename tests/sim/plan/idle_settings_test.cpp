#include "sim/plan/idle_settings.h"

#include <cstdlib>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/config_library.h"
#include "sim/plan/search/sweep.h"
#include "tests/base/messages.h"

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
  CHECK(idle(", fused_all_reduce: false").size() == 1);  // there was nothing to turn off
  CHECK(idle(", fused_all_reduce: true", "model: llama-3.1-8b\nparallelism: {tp: 2}").empty());
  CHECK(idle(", moe_kernel: marlin").size() == 1);
  CHECK(idle(", moe_kernel: marlin", "model: mixtral-8x7b\nparallelism: {tp: 4}").empty());
  CHECK(idle(", kv_offload: 10 GB").size() == 1);  // no prompt shares a prefix
  CHECK(idle("", "model: llama-3.1-8b\nrouter: least_loaded").size() == 1);
  CHECK(idle("", "model: llama-3.1-8b\nrouter: least_loaded\nparallelism: {replicas: 2}").empty());
  CHECK(idle("", "model: llama-3.1-8b\nrouting: {distribution: uniform}").size() == 1);
  CHECK(idle("", "model: {name: deepseek-v2-lite, num_key_value_heads: 1}").size() == 1);
  CHECK(idle("", "model: {name: llama-3.1-8b, num_key_value_heads: 1}").empty());
  CHECK(idle(", kv_cache: false, block_size: 32").size() == 1);
  CHECK(idle(", cuda_graphs: {enabled: false}").empty());
  CHECK(idle(", cuda_graphs: {enabled: false}", "model: llama-3.1-8b\nprecision: llm_int8").size() == 1);
  CHECK(idle(", scheduler: prefill_first", "model: llama-3.1-8b\ndisaggregation: {prefill: {parallelism: {tp: 1}}}")
            .size() == 1);
}

namespace {

/// Twice a number, in its unit; the other of true and false; nothing for other words.
std::string other_value(const ConfigNode& node) {
  if (node.kind != ConfigNode::Kind::kScalar || node.quoted) return "";
  if (node.scalar == "true") return "false";
  if (node.scalar == "false") return "true";
  const char* const begin = node.scalar.c_str();
  char* end = nullptr;
  const double value = std::strtod(begin, &end);
  if (end == begin) return "";
  return fmt::format("{}{}", value == 0 ? 3 : 2 * value, end);
}

void flips_of(const ConfigNode& map, const std::string& prefix, std::vector<std::pair<std::string, std::string>>& out) {
  for (const ConfigNode::Entry& entry : map.entries) {
    const std::string key = prefix + entry.key;
    if (entry.value->kind == ConfigNode::Kind::kMap) {
      flips_of(*entry.value, key + ".", out);
    } else if (const std::string other = other_value(*entry.value); !other.empty()) {
      out.emplace_back(key, other);
    }
  }
}

std::string numbers_of(const ConfigTree& tree, SpecCache& specs) {
  return to_text(run_point(tree, true, Fidelity::kCalibrated, specs));
}

}  // namespace

TEST_CASE("silent settings: each setting of each engine acts, is refused, or is said to change nothing") {
  // Limits and floors, which act where they bind: under more requests, longer prompts, a slower host.
  const std::set<std::string> binds{"engine.max_num_seqs",
                                    "engine.max_num_batched_tokens",
                                    "engine.prompt_must_fit",
                                    "engine.chunked_prefill",
                                    "engine.scheduler_launches",
                                    "engine.cuda_graphs.max_batch",
                                    "engine.cuda_graphs.prefill_tokens",
                                    "engine.cuda_graphs.plain_prefill",
                                    "engine.cuda_graphs.dependent_launch",
                                    "engine.host.scheduler_time",
                                    "engine.host.scheduler_sequence_time",
                                    "engine.host.launch_time"};
  const std::string workload =
      "workload:\n  arrivals: {process: poisson, rate: 8 /s}\n  requests: 60\n"
      "  prompt_tokens: {distribution: lognormal, mean: 900, p50: 500, max: 8000}\n  output_tokens: 100\n";
  SpecCache specs;
  int acting = 0;
  for (const char* setup :
       {"model: llama-3.1-8b\ngpu: h100-sxm\n", "model: deepseek-v3\ngpu: h200-sxm\nparallelism: {tp: 8, ep: 8}\n"}) {
    for (const std::string& engine : names_of("engines")) {
      const ConfigTree plain = parse_config_text(setup + workload + "engine: {name: " + engine + "}\n", "s.yaml");
      std::string before;
      if (!message_of([&] { before = numbers_of(plain, specs); }).empty()) continue;  // it does not run this model
      std::vector<std::pair<std::string, std::string>> flips;
      flips_of(*load_named("engines", engine, {}), "engine.", flips);
      for (const auto& [key, value] : flips) {
        const bool named = key == "engine.help" || key == "engine.version" || key == "engine.released";
        if (named || binds.count(key) > 0) continue;
        INFO(std::string(setup) << engine << ": " << key << " = " << value);
        std::string after;
        const ConfigTree tree = with_value(plain, key, make_scalar(value), "flip");
        const bool refused = !message_of([&] { after = numbers_of(tree, specs); }).empty();
        const bool acts = !refused && after != before;
        acting += acts ? 1 : 0;
        CHECK((refused || acts || !idle_settings(tree, read_scenario(tree, Fidelity::kCalibrated, specs)).empty()));
      }
    }
  }
  CHECK(acting > 50);
}
