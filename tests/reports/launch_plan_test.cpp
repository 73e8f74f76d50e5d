#include "reports/launch_plan.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/config_library.h"
#include "base/config_release.h"
#include "reports/launch_command.h"
#include "reports/launch_settings.h"
#include "sim/step/deployment.h"
#include "tests/base/messages.h"

using namespace roofcast;
using namespace roofcast::reports;

namespace {

const std::string kWorkload =
    "workload: {arrivals: {process: poisson, rate: 1 /s}, prompt_tokens: {distribution: fixed, value: 1000}, "
    "output_tokens: {distribution: fixed, value: 100}, requests: 10}\n";

PlannedDeployment planned(const std::string& text) {
  PlannedDeployment p;
  p.candidate.scenario = read_scenario(parse_config_text(text + kWorkload, "p.yaml"), Fidelity::kCalibrated);
  p.replicas = 2;
  return p;
}

/// Arguments of an engine, as its own parser knows them.
struct Schema {
  ConfigTree document;

  explicit Schema(const std::string& engine)
      : document(parse_config_file(std::string(ROOFCAST_SOURCE_DIR) + "/tests/reports/launch-arguments/" + engine +
                                   ".yaml")) {}

  /// What is wrong with a command line; empty: it parses.
  std::string refusal(std::vector<std::string> words, const std::string& version) const {
    for (const ConfigTree& item : (*document->find("command"))->items) {
      if (words.empty() || words.front() != item->scalar) return "does not begin with " + item->scalar;
      words.erase(words.begin());
    }
    const ConfigTree arguments = *document->find("arguments");
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (!words[i].starts_with("--")) {
        if (i > 0) return "a second positional argument " + words[i];
        continue;  // the model
      }
      const ConfigTree* argument = arguments->find(words[i]);
      if (argument == nullptr) return "no argument " + words[i];
      ConfigReader in(*argument, words[i]);
      const std::string type = in.text("type"), since = in.text("since", "");
      if (!since.empty() && compare_versions(version, since) < 0) return words[i] + " came with " + since;
      if (type == "flag") continue;
      if (++i >= words.size() || words[i].starts_with("--")) return words[i - 1] + " without a value";
      const std::string& value = words[i];
      const bool variable = value.starts_with("$");
      while (in.boolean("many", false) && i + 1 < words.size() && !words[i + 1].starts_with("--")) ++i;
      const std::vector<std::string> words_too = in.texts("words");
      if (std::find(words_too.begin(), words_too.end(), value) != words_too.end()) continue;
      if (type == "integer" && !variable && value.find_first_not_of("0123456789") != std::string::npos)
        return value + " is no integer";
      if (type == "number" && (std::stod(value) <= 0 || (in.has("range") && std::stod(value) > 1)))
        return value + " is out of range";
      const std::vector<std::string> choices = in.texts("choices");
      if (!choices.empty() && std::find(choices.begin(), choices.end(), value) == choices.end())
        return value + " is none of the choices";
    }
    return "";
  }

  /// Options of a file that no field takes.
  std::string refusal_of_options(const std::string& text) const {
    const ConfigTree given = parse_config_text(text, "options"), fields = *document->find("options");
    for (const ConfigNode::Entry& entry : given->entries) {
      const ConfigTree* field = fields->find(entry.key);
      if (field == nullptr) return "no option " + entry.key;
      if (entry.value->kind != ConfigNode::Kind::kMap) continue;
      for (const ConfigNode::Entry& sub : entry.value->entries) {
        const auto same = [&](const ConfigTree& name) { return name->scalar == sub.key; };
        if (std::none_of((*field)->items.begin(), (*field)->items.end(), same)) return "no option " + sub.key;
      }
    }
    return "";
  }
};

std::string deployment(const std::string& engine, const std::string& model, const std::string& gpu,
                       const std::string& rest) {
  return fmt::format("model: {}\ngpu: {}\nengine: {}\n{}\n", model, gpu, engine, rest);
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// A working directory of its own, with a folder of weights in it.
struct WorkingDirectory {
  std::filesystem::path before = std::filesystem::current_path(),
                        here = std::filesystem::temp_directory_path() / "roofcast-launch-plan-test";
  WorkingDirectory() {
    std::filesystem::create_directories(here / "my-model");
    std::filesystem::current_path(here);
  }
  ~WorkingDirectory() {
    std::filesystem::current_path(before);
    std::filesystem::remove_all(here);
  }
};

const LaunchProcess& first(const LaunchPlan& plan) { return plan.processes.front(); }

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

TEST_CASE("launch plan: every command parses by the engine's own arguments") {
  const std::vector<std::string> layouts{"", "parallelism: {tp: 4}", "parallelism: {tp: 8, pp: 2}"},
      formats{"", "precision: {weights: fp8, activations: fp8, kv_cache: fp8}"};
  for (const char* release :
       {"vllm@0.11.0", "vllm@0.19", "vllm", "sglang@0.5.5", "sglang", "trtllm@1.0", "trtllm@1.3"}) {
    for (const std::string& layout : layouts) {
      for (const std::string& format : formats) {
        const PlannedDeployment p = planned(deployment(release, "llama-3.1-70b", "h200-sxm", layout + "\n" + format));
        const EngineSpec& e = p.candidate.scenario.deployment->engine;
        const Schema schema(e.name);
        const LaunchPlan plan = launch_plan(p, e.name, {"meta-llama/Llama-3.1-70B"});
        INFO(release << " " << layout << " " << format << ": " << command_line(first(plan).words));
        std::vector<std::string> leading = first(plan).words;
        leading.insert(leading.end(), first(plan).first_words.begin(), first(plan).first_words.end());
        CHECK(schema.refusal(leading, e.version) == "");
        std::vector<std::string> further = first(plan).words;
        further.insert(further.end(), first(plan).further_words.begin(), first(plan).further_words.end());
        CHECK(schema.refusal(further, e.version) == "");
        for (const LaunchFile& file : first(plan).files) CHECK(schema.refusal_of_options(file.text) == "");
      }
    }
  }
}

TEST_CASE("launch plan: the engine's own argument parser takes adapters and redundant experts") {
  const std::string adapters = "adapters: {count: 4, rank: 24, slots: 2, targets: [qkv_proj]}\nforce_unsupported: true",
                    copies = "parallelism: {tp: 8, ep: 8}\nrouting: {redundant_experts: 8}\nforce_unsupported: true";
  for (const char* engine : {"vllm", "sglang", "trtllm"}) {
    for (const auto& [model, rest] : {std::pair{"llama-3.1-8b", adapters}, std::pair{"qwen3-30b-a3b", copies}}) {
      const PlannedDeployment p = planned(deployment(engine, model, "h200-sxm", rest));
      const LaunchPlan plan = launch_plan(p, engine, {"m"});
      INFO(command_line(first(plan).words));
      CHECK(Schema(engine).refusal(first(plan).words, p.candidate.scenario.deployment->engine.version) == "");
      for (const LaunchFile& file : first(plan).files) CHECK(Schema(engine).refusal_of_options(file.text) == "");
    }
  }
}

TEST_CASE("launch plan: settings that a scenario changes reach the command") {
  const auto words = [](const std::string& settings) {
    const PlannedDeployment p = planned(deployment(settings, "llama-3.1-8b", "h100-sxm", ""));
    const std::string engine = p.candidate.scenario.deployment->engine.name;
    const LaunchPlan plan = launch_plan(p, engine, {"m"});
    CHECK(Schema(engine).refusal(first(plan).words, p.candidate.scenario.deployment->engine.version) == "");
    return command_line(first(plan).words) + (first(plan).files.empty() ? "" : first(plan).files[0].text);
  };
  const auto contains = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  CHECK_FALSE(contains(words("vllm"), "prefix-caching"));
  CHECK(contains(words("{name: vllm, prefix_caching: false}"), "--no-enable-prefix-caching"));
  CHECK(contains(words("{name: vllm, async_scheduling: false}"), "--no-async-scheduling"));
  CHECK(contains(words("{name: vllm, cuda_graphs: {enabled: false}}"), "--enforce-eager"));
  CHECK(contains(words("{name: sglang, prefix_caching: false}"), "--disable-radix-cache"));
  CHECK(contains(words("{name: sglang, async_scheduling: false}"), "--disable-overlap-schedule"));
  CHECK(contains(words("{name: sglang, cuda_graphs: {max_batch: 64}}"), "--cuda-graph-max-bs 64"));
  // TensorRT-LLM leaves chunking and padding off unless it is told
  CHECK(contains(words("trtllm"), "enable_chunked_prefill: true"));
  CHECK(contains(words("trtllm"), "enable_padding: true"));
  CHECK_FALSE(contains(words("{name: trtllm, chunked_prefill: false}"), "enable_chunked_prefill"));
  CHECK(contains(words("{name: trtllm, async_scheduling: false}"), "disable_overlap_scheduler: true"));
}

namespace {

/// Each key of an engine with two values, one of which is not that of the release.
struct TwoValues {
  const char *key, *one, *other;
};
constexpr std::array kTwoValues{TwoValues{"kernels", "vllm", "sglang"},
                                TwoValues{"scheduler", "prefill_no_evict", "mixed_chunk"},
                                TwoValues{"max_num_seqs", "77", "78"},
                                TwoValues{"max_num_batched_tokens", "7777", "7778"},
                                TwoValues{"launch_speed", "0.7", "0.8"},
                                TwoValues{"chunked_prefill", "true", "false"},
                                TwoValues{"batch_wait", "7 ms", "8 ms"},
                                TwoValues{"stream_interval", "7", "8"},
                                TwoValues{"async_scheduling", "true", "false"},
                                TwoValues{"async_drafts", "none", "layers"},
                                TwoValues{"async_pipelines", "true", "false"},
                                TwoValues{"scheduler_launches", "true", "false"},
                                TwoValues{"prefill_wait_ratio", "0.7", "0.8"},
                                TwoValues{"prefill_wait_steps", "7", "8"},
                                TwoValues{"attention_dp_balance", "true", "false"},
                                TwoValues{"prefill_batch_steps", "7", "8"},
                                TwoValues{"rank_choice", "fewest", "in_turn"},
                                TwoValues{"receive_interval", "7", "8"},
                                TwoValues{"postprocess_workers", "7", "8"},
                                TwoValues{"api_servers", "7", "8"},
                                TwoValues{"block_size", "128", "256"},
                                TwoValues{"max_model_len", "7777", "7778"},
                                TwoValues{"memory_rule", "share_of_total", "share_of_free"},
                                TwoValues{"gpu_memory_utilization", "0.7", "0.8"},
                                TwoValues{"state_memory_ratio", "0.7", "0.8"},
                                TwoValues{"reserved_memory", "7 GB", "8 GB"},
                                TwoValues{"compiled", "true", "false"},
                                TwoValues{"keeps_expert_buffers", "true", "false"},
                                TwoValues{"collective_memory", "7 GB", "8 GB"},
                                TwoValues{"watermark", "0.07", "0.08"},
                                TwoValues{"prompt_must_fit", "true", "false"},
                                TwoValues{"reserve_output_ratio", "0.7", "0.8"},
                                TwoValues{"preemption", "swap", "recompute"},
                                TwoValues{"victim", "newest", "fewest_outputs"},
                                TwoValues{"mtp_drafts", "2", "5"},
                                TwoValues{"state_checkpoints", "blocks", "ends"},
                                TwoValues{"kv_cache", "true", "false"},
                                TwoValues{"scaled_latents", "true", "false"},
                                TwoValues{"fp8_latent_prompts", "true", "false"},
                                TwoValues{"prefix_caching", "true", "false"},
                                TwoValues{"kv_offload", "200 GB", "300 GB"},
                                TwoValues{"kv_tiers", "[{name: nvme, capacity: 4 TB, bandwidth: 6 GB/s}]",
                                          "[{name: disk, capacity: 4 TB, bandwidth: 6 GB/s}]"},
                                TwoValues{"sampling", "greedy", "top_p"},
                                TwoValues{"top_p_by", "select", "sort"},
                                TwoValues{"moe_kernel", "marlin", "triton"},
                                TwoValues{"expanded_experts", "true", "false"},
                                TwoValues{"block_products", "deep_gemm", "flashinfer"},
                                TwoValues{"rows_quantized_at_once", "7", "8"},
                                TwoValues{"attention_kernel", "flash_unsplit", "flash2"},
                                TwoValues{"sparse_attention", "flashmla", "trtllm"},
                                TwoValues{"shared_query_heads", "7", "8"},
                                TwoValues{"aiter", "true", "false"},
                                TwoValues{"own_all_reduce", "true", "false"},
                                TwoValues{"fused_all_reduce", "true", "false"},
                                TwoValues{"compiled_quantization", "true", "false"},
                                TwoValues{"fused_elementwise", "true", "false"},
                                TwoValues{"merged_projections", "true", "false"},
                                TwoValues{"copied_cache", "true", "false"},
                                TwoValues{"expert_exchange", "all_gather", "all_to_all"},
                                TwoValues{"expert_overlap", "two_batch", "dual_batch"},
                                TwoValues{"cuda_graphs.enabled", "true", "false"},
                                TwoValues{"cuda_graphs.max_batch", "77", "78"},
                                TwoValues{"cuda_graphs.prefill_tokens", "777", "778"},
                                TwoValues{"cuda_graphs.plain_prefill", "true", "false"},
                                TwoValues{"cuda_graphs.dependent_launch", "true", "false"},
                                TwoValues{"cuda_graphs.padded_sizes", "[7, 77]", "[8, 88]"},
                                TwoValues{"host", "{step_time: 7 ms}", "{step_time: 8 ms}"},
                                TwoValues{"front_end", "dynamo", "none"},
                                TwoValues{"start_time", "7 s", "8 s"},
                                TwoValues{"cache_transfer", "after_prefill", "by_layer"},
                                TwoValues{"handover_time", "7 ms", "8 ms"}};

/// `engine: {name: vllm, key: value}`, of a key that may lie in a group.
std::string engine_with(const std::string& engine, std::string key, const std::string& value) {
  const std::size_t dot = key.find('.');
  const std::string inner = dot == std::string::npos
                                ? key + ": " + value
                                : fmt::format("{}: {{{}: {}}}", key.substr(0, dot), key.substr(dot + 1), value);
  return fmt::format("{{name: {}, {}}}", engine, inner);
}

}  // namespace

TEST_CASE("launch plan: every setting of an engine is a flag, a comment, or refused") {
  for (const std::string engine : {"vllm", "sglang", "trtllm", "vllm@0.7", "sglang@0.5.3", "trtllm@1.0"}) {
    const std::string name = engine.substr(0, engine.find('@'));
    // Copies of the attention and experts over two GPUs, on a vendor with AITER where the engine runs there: every
    // setting has something to act on.
    const std::string gpu = name == "trtllm" || engine == "vllm@0.7" ? "h200-sxm" : "mi355x";
    const std::string rest = "parallelism: {attention_dp: 2, ep: 2}\nforce_unsupported: true\n";
    const auto command = [&](const std::string& spec) {
      const PlannedDeployment p = planned(deployment(spec, "qwen3-30b-a3b", gpu, rest));
      return as_shell(launch_plan(p, name, {"m"}));
    };
    const std::string plain = command(engine);
    CHECK(plain.find("not set") == std::string::npos);
    int said = 0, commented = 0;
    for (const TwoValues& setting : kTwoValues) {
      bool seen = false, refused = false;
      for (const std::string value : {setting.one, setting.other}) {
        std::string text;
        if (!message_of([&] { text = command(engine_with(engine, setting.key, value)); }).empty()) {
          refused = true;
          continue;
        }
        const PlannedDeployment p =
            planned(deployment(engine_with(engine, setting.key, value), "qwen3-30b-a3b", gpu, rest));
        const PlannedDeployment as_it_comes = planned(deployment(engine, "qwen3-30b-a3b", gpu, rest));
        const bool changes = !changed_settings(p.candidate.scenario.deployment->engine,
                                               as_it_comes.candidate.scenario.deployment->engine)
                                  .empty();
        INFO(engine << ": " << std::string(setting.key) << " = " << value);
        CHECK((!changes || text != plain));
        seen = seen || changes;
        const bool comment = text.find(fmt::format("# not set: engine.{}", setting.key)) != std::string::npos;
        commented += comment ? 1 : 0, said += changes && !comment ? 1 : 0;
      }
      INFO(engine << ": " << std::string(setting.key));
      CHECK((seen || refused));
    }
    CHECK(said > 12);
    CHECK(commented > 20);
  }
}

TEST_CASE("launch plan: every key that an engine's file may have is among the settings of the test above") {
  const std::string message = message_of([] {
    (void)parse_engine_spec(ConfigReader(parse_config_text("name: x\nkernels: vllm\nzzz: 1\n", "e.yaml"), "an engine"));
  });
  const std::size_t more = message.find(" more)"), before = message.rfind(' ', more - 1);
  REQUIRE(more != std::string::npos);
  const int keys = 12 + std::stoi(message.substr(before + 1, more - before - 1));  // twelve are listed
  std::set<std::string> known{"beyond_known",   "by_gpu",  // names, and what the release says by GPU
                              "front_end_name", "help",   "name", "released", "source", "version", "version_assumed"};
  for (const TwoValues& setting : kTwoValues)
    known.insert(std::string(setting.key).substr(0, std::string(setting.key).find('.')));
  CHECK(static_cast<int>(known.size()) == keys);
}

TEST_CASE("launch plan: each engine's settings of cache, queue and router") {
  const auto text = [](const std::string& engine, const std::string& more = "") {
    const PlannedDeployment p = planned(deployment(engine, "llama-3.1-8b", "h100-sxm", more));
    const Deployment& d = *p.candidate.scenario.deployment;
    const LaunchPlan plan = launch_plan(p, d.engine.name, {"m"});
    CHECK(Schema(d.engine.name).refusal(first(plan).words, d.engine.version) == "");
    for (const LaunchFile& file : first(plan).files) CHECK(Schema(d.engine.name).refusal_of_options(file.text) == "");
    return as_shell(plan);
  };
  const auto contains = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  CHECK(contains(text("{name: sglang, kv_offload: 200 GB}"), "--enable-hierarchical-cache --hicache-size 200 "));
  CHECK(contains(text("{name: sglang, kv_offload: 1 GB}"), "# SGLang refuses to start where the host's cache is not"));
  CHECK(contains(text("{name: trtllm, kv_offload: 200 GB}"), ", host_cache_size: 200000000000}"));
  CHECK(contains(text("{name: trtllm, block_size: 64}"), ", tokens_per_block: 64}"));
  CHECK(contains(text("{name: trtllm, postprocess_workers: 4}"), "num_postprocess_workers: 4\n"));
  CHECK(
      contains(text("{name: sglang, chunked_prefill: false}"), "--chunked-prefill-size -1 --max-prefill-tokens 8192"));
  // 1000 tokens are 15 whole pages of 64: SGLang asserts that a chunk is a multiple of a page.
  const std::string paged = text("{name: sglang, block_size: 64, max_num_batched_tokens: 1000}");
  CHECK(contains(paged, "--chunked-prefill-size 960 "));
  CHECK(contains(paged, "--page-size 64"));
  CHECK(contains(paged,
                 "# chunks of 960 tokens, not the forecast's 1000: they must be a multiple of SGLang's pages of 64"));
  const std::string whole = text("{name: sglang, block_size: 64, max_num_batched_tokens: 1024}");
  CHECK(contains(whole, "--chunked-prefill-size 1024 "));
  CHECK_FALSE(contains(whole, "# chunks of"));
  CHECK(contains(text("{name: sglang, block_size: 64, max_num_batched_tokens: 40}"), "--chunked-prefill-size 64 "));
  CHECK(contains(text("{name: sglang, max_num_batched_tokens: 1000}"), "--chunked-prefill-size 1000 "));  // pages of 1
  CHECK(contains(text("vllm", "policy: priority"), "--scheduling-policy priority"));
  CHECK(contains(text("sglang", "max_queue: 9"), "--max-queued-requests 9 "));
  CHECK(contains(text("vllm", "max_queue: 9"), "# not set: max_queue: 9 (the forecast assumes it; no flag of vllm "));
  CHECK(contains(text("vllm", "policy: shortest_first"), "# not set: policy: shortest_first (the forecast"));
  CHECK(contains(text("vllm", "router: prefix_aware"),
                 "behind a load balancer that picks as 'prefix_aware' does: the "
                 "replica that caches most of the prompt's prefix"));
  CHECK(contains(text("vllm"), ", behind a load balancer\n"));
}

TEST_CASE("launch plan: options of TensorRT-LLM before 1.0 are not made up") {
  const PlannedDeployment p = planned(deployment("trtllm@0.20", "llama-3.1-8b", "h100-sxm", ""));
  CHECK_THROWS_WITH(launch_plan(p, "trtllm", {"m"}),
                    "--emit: options of TensorRT-LLM are known from 1.0 on, not of 0.20.0");
}

TEST_CASE("launch plan: a replica on two nodes has ranks and an address") {
  const std::string layout = "parallelism: {tp: 8, pp: 2}\nprecision: {weights: fp8, activations: fp8}";
  const LaunchPlan vllm = launch_plan(planned(deployment("vllm", "llama-3.1-405b", "h100-sxm", layout)), "vllm", {"m"}),
                   older = launch_plan(planned(deployment("vllm@0.11.0", "llama-3.1-405b", "h100-sxm", layout)), "vllm",
                                       {"m"}),
                   sglang = launch_plan(planned(deployment("sglang", "llama-3.1-405b", "h100-sxm", layout)), "sglang",
                                        {"m"}),
                   trtllm = launch_plan(planned(deployment("trtllm", "llama-3.1-405b", "h100-sxm", layout)), "trtllm",
                                        {"m"});
  for (const LaunchPlan* plan : {&vllm, &older, &sglang, &trtllm}) {
    CHECK(first(*plan).nodes == 2);
    CHECK(first(*plan).gpus_per_node == 8);
  }
  CHECK(has(first(vllm).words, "$HEAD_ADDRESS"));
  CHECK(has(first(vllm).further_words, "--headless"));
  CHECK(has(first(older).words, "ray"));
  // Ray's cluster first: the other nodes join it, and the first alone serves
  CHECK(as_shell(older).find("ray start --head --port=6379 && vllm serve m") != std::string::npos);
  CHECK(as_shell(older).find("else\n  ray start --block \"--address=$HEAD_ADDRESS:6379\"\nfi") != std::string::npos);
  CHECK(has(first(sglang).words, "$HEAD_ADDRESS:5000"));
  CHECK(first(trtllm).prefix.starts_with("mpirun -n 16 --npernode 8"));
  CHECK(as_kubernetes(sglang).find("kind: LeaderWorkerSet") != std::string::npos);
  CHECK(as_kubernetes(sglang).find("size: 2") != std::string::npos);
  CHECK(as_compose(sglang).find("NODE_RANK: ${NODE_RANK}") != std::string::npos);
  CHECK_THROWS_AS(as_kubernetes(trtllm), ConfigError);  // mpirun reaches other nodes over ssh
  CHECK_THROWS_AS(as_compose(trtllm), ConfigError);
  // workers without a server of their own get no requests, and are not asked whether they are ready
  const std::string pods = as_kubernetes(vllm);
  CHECK(pods.find("selector: {app: server, role: leader}") != std::string::npos);
  CHECK(pods.find("labels: {app: server, role: worker}") != std::string::npos);
  CHECK(count_of(pods, "readinessProbe: {httpGet: {path: /health, port: 8000}") == 1);
  // the nodes find their leader by a Service that the set's controller makes under the set's name
  CHECK(pods.find("kind: LeaderWorkerSet\nmetadata: {name: server-nodes}") != std::string::npos);
  CHECK(pods.find("kind: Service\nmetadata: {name: server}") != std::string::npos);
}

TEST_CASE("launch plan: copies of the attention over two nodes are ranks of one server") {
  const std::string layout = "parallelism: {attention_dp: 16, ep: 16}";
  const LaunchPlan plan = launch_plan(planned(deployment("vllm", "deepseek-r1", "h200-sxm", layout)), "vllm", {"m"});
  const std::string words = command_line(first(plan).words);
  CHECK(words.find("--data-parallel-size 16 --data-parallel-size-local 8") != std::string::npos);
  CHECK(has(first(plan).further_words, "--data-parallel-start-rank"));
  // 16 ranks have 16 front ends by themselves; a node without a server has no count of them
  const std::string servers = as_kubernetes(launch_plan(
      planned(deployment("{name: vllm, api_servers: 4}", "deepseek-r1", "h200-sxm", layout)), "vllm", {"m"}));
  CHECK(servers.find("--api-server-count 4; else exec vllm serve m ") != std::string::npos);
  CHECK(count_of(servers, "--api-server-count") == count_of(servers, "= 0 ]; then"));
}

TEST_CASE("launch plan: adapters of experts have SGLang's names of modules") {
  const PlannedDeployment p = planned(
      deployment("sglang", "mixtral-8x7b", "h200-sxm",
                 "parallelism: {tp: 2}\nadapters: {count: 2, rank: 8, slots: 2, targets: [qkv_proj, experts_gate_up, "
                 "experts_down]}\nforce_unsupported: true"));
  CHECK(command_line(first(launch_plan(p, "sglang", {"m"})).words)
            .find("--lora-target-modules q_proj k_proj v_proj gate_proj up_proj down_proj --") != std::string::npos);
}

TEST_CASE("launch plan: prefill workers that share a cache by tokens are refused, too") {
  const std::string plain = "parallelism: {tp: 8}", shared = "parallelism: {tp: 8, dcp: 2}";
  PlannedDeployment p = planned(deployment("vllm", "deepseek-r1", "h200-sxm", plain));
  const PlannedDeployment prefill = planned(deployment("vllm", "deepseek-r1", "h200-sxm", shared));
  p.candidate.scenario.serving.disaggregation = Disaggregation{.prefill = prefill.candidate.scenario.deployment};
  p.prefill_replicas = 1;
  CHECK_NOTHROW(launch_plan(p, "vllm", {"m"}));
  CHECK_THROWS_WITH(launch_plan(p, "sglang", {"m"}), "--emit: how sglang shares a cache by tokens (dcp) is not known");
}

TEST_CASE("launch plan: every form is YAML or a script, and requests the GPUs") {
  const LaunchPlan plan =
      launch_plan(planned(deployment("trtllm", "llama-3.1-70b", "h200-sxm", "parallelism: {tp: 4}")), "trtllm", {"m"});
  const ConfigTree compose = parse_config_text(as_compose(plan), "compose.yaml");
  const ConfigTree* services = compose->find("services");
  REQUIRE(services != nullptr);
  CHECK((*services)->entries.size() == 2);  // two replicas of four GPUs on a host of eight
  CHECK(compose->find("configs") != nullptr);
  const std::string kubernetes = as_kubernetes(plan);
  CHECK(kubernetes.find("nvidia.com/gpu: 4") != std::string::npos);
  CHECK(kubernetes.find("replicas: 2") != std::string::npos);
  CHECK(kubernetes.find("kind: ConfigMap") != std::string::npos);
  CHECK(as_shell(plan).find("cat > extra.yaml") != std::string::npos);
  // the image's own folder is another one: what is named without a path lies where the command runs
  CHECK(as_compose(plan).find("working_dir: /launch\n") != std::string::npos);
  CHECK(as_compose(plan).find("{source: extra.yaml, target: /launch/extra.yaml}") != std::string::npos);
  CHECK(as_compose(plan).find("HF_TOKEN: ${HF_TOKEN:-}") != std::string::npos);
  CHECK(as_compose(plan).find("HF_HOME: /launch/huggingface") != std::string::npos);  // where the host's is mounted
  CHECK(as_compose(plan).find("- ${HOME}/.cache/huggingface:/launch/huggingface\n") != std::string::npos);
  CHECK(kubernetes.find("workingDir: /launch\n") != std::string::npos);
  CHECK(kubernetes.find("mountPath: /launch/extra.yaml") != std::string::npos);
  CHECK(kubernetes.find("secretKeyRef: {name: hf-token, key: token, optional: true}") != std::string::npos);
  CHECK(kubernetes.find("readinessProbe: {httpGet: {path: /health, port: 8000}") != std::string::npos);
}

TEST_CASE("launch plan: weights of the reader's own are mounted where the command looks for them") {
  const auto plan = [](const char* engine, const char* gpu, const char* precision) {
    return launch_plan(planned(deployment(engine, "llama-3.1-70b", gpu, precision)), engine, {"meta/L"});
  };
  const LaunchPlan folder = plan("trtllm", "h200-sxm", "precision: fp8"),
                   named = plan("vllm", "h200-sxm", "precision: awq");
  CHECK(folder.weights == std::vector<std::string>{"L-fp8"});
  CHECK(as_compose(folder).find("- ./L-fp8:/launch/L-fp8:ro") != std::string::npos);
  CHECK(as_kubernetes(folder).find("# PersistentVolumeClaim weights: holds L-fp8\n") != std::string::npos);
  CHECK(as_kubernetes(folder).find("mountPath: /launch/L-fp8, subPath: L-fp8") != std::string::npos);
  CHECK(named.weights == std::vector<std::string>{"$CHECKPOINT"});
  CHECK(as_compose(named).find("- ${CHECKPOINT:?a folder of weights}:/launch/CHECKPOINT:ro") != std::string::npos);
  CHECK(as_kubernetes(named).find("{name: CHECKPOINT, value: CHECKPOINT}") != std::string::npos);
  CHECK(as_kubernetes(named).find("claimName: weights") != std::string::npos);
}

TEST_CASE("launch plan: in Kubernetes each worker of a role has the address that the router is given") {
  const PlannedDeployment one = planned(deployment("vllm", "llama-3.1-70b", "h200-sxm", "parallelism: {tp: 4}"));
  PlannedDeployment p = one;
  p.candidate.scenario.serving.disaggregation = Disaggregation{.prefill = one.candidate.scenario.deployment};
  p.prefill_replicas = 2;
  const std::string pods = as_kubernetes(launch_plan(p, "vllm", {"m"}));
  for (const char* name : {"prefill-1", "prefill-2", "decode-1", "decode-2"}) {
    CHECK(pods.find(fmt::format("kind: Service\nmetadata: {{name: {}}}", name)) != std::string::npos);
    CHECK(pods.find(fmt::format("http://{}:", name)) != std::string::npos);
  }
  CHECK(count_of(pods, "clusterIP: None") == 4);  // workers talk to each other on further ports
  // on a host of its own each, by whose name the router knows it
  const ConfigTree compose = parse_config_text(as_compose(launch_plan(p, "vllm", {"m"})), "compose.yaml");
  CHECK((*compose->find("services"))->entries.size() == 3);
  // a list of variables in YAML is no shell
  CHECK(pods.find("export VLLM_NIXL_SIDE_CHANNEL_HOST=\\\"$(hostname -i)\\\"; exec vllm") != std::string::npos);
  CHECK(pods.find("name: VLLM_NIXL_SIDE_CHANNEL_HOST") == std::string::npos);
}

TEST_CASE("launch plan: a cache that holds less than the context") {
  // The 70 B parameters take 70.6 of 80 GB in fp8: the cache holds some ten thousand of 131072 tokens.
  const auto words = [](const std::string& engine, const std::string& rest) {
    const PlannedDeployment p = planned(deployment(engine, "llama-3.1-70b", "h100-sxm", rest));
    const Deployment& d = *p.candidate.scenario.deployment;
    const LaunchPlan plan = launch_plan(p, d.engine.name, {"m"});
    CHECK(Schema(d.engine.name).refusal(first(plan).words, d.engine.version) == "");
    return command_line(first(plan).words);
  };
  const auto contains = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  // with room for the sampler's sorted logits
  const std::string kOlder = "{name: vllm, version: 0.11.0, max_num_seqs: 64}";
  const std::string small = "precision: {weights: fp8, kv_cache: fp8}", large = small + "\nparallelism: {tp: 8}";
  const PlannedDeployment older = planned(deployment(kOlder, "llama-3.1-70b", "h100-sxm", small));
  const Deployment& d = *older.candidate.scenario.deployment;
  const double pool = d.memory.max_context(d.engine.block_size);
  CHECK(pool > 1100);
  CHECK(pool < 131072);
  CHECK(contains(words(kOlder, small), fmt::format("--max-model-len {:.0f} ", pool)));
  CHECK(contains(words("vllm", small), "--max-model-len auto "));  // what it measures itself fits for certain
  CHECK_FALSE(contains(words("vllm", large), "--max-model-len"));
  CHECK(contains(words("{name: vllm, max_model_len: 2048}", small), "--max-model-len 2048 "));
  // the others start, and refuse longer requests or lower the limit themselves
  CHECK_FALSE(contains(words("sglang", small), "--context-length"));
  CHECK_FALSE(contains(words("trtllm", small), "--max_seq_len"));
  REQUIRE(older.candidate.scenario.doubts.size() == 1);
  CHECK(
      older.candidate.scenario.doubts[0] ==
      fmt::format("the KV cache holds {0:.0f} tokens of one sequence, less than the context of llama-3.1-70b (131072): "
                  "vLLM starts with --max-model-len {0:.0f} or less",
                  pool));
  CHECK(planned(deployment("vllm", "llama-3.1-70b", "h100-sxm", large)).candidate.scenario.doubts.empty());
}

TEST_CASE("launch plan: llama-server takes no more slots than the memory has room for") {
  const auto contains = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  const PlannedDeployment p =
      planned(deployment("{name: llama-cpp, max_num_seqs: 64, max_model_len: 8192, block_size: 0}", "llama-3.1-8b",
                         "rtx-4090", "precision: gguf_q8_0"));
  // 131072 B a token: 1.07 GB a slot, some 12 of them beside 8.5 GB of weights in 24 GB
  const double slots = p.candidate.scenario.deployment->memory.max_batch(8192, 0);
  CHECK(slots > 4);
  CHECK(slots < 20);
  const std::string words = command_line(first(launch_plan(p, "llama-cpp", {"m"})).words);
  CHECK(words.find(fmt::format("--parallel {:.0f} --ctx-size {:.0f} ", slots, slots * 8192)) != std::string::npos);
  CHECK_FALSE(contains(words, "--kv-unified"));
}

TEST_CASE("launch plan: llama-server's slots share one cache, and drafts have the flags of their build") {
  const auto contains = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  const auto words = [](const std::string& engine, const std::string& more) {
    const PlannedDeployment p =
        planned(deployment(engine, "llama-3.1-8b", "h100-sxm", "precision: gguf_q8_0\nforce_unsupported: true" + more));
    const LaunchProcess server = first(launch_plan(p, "llama-cpp", {"m"}));
    if (engine == "llama-cpp") CHECK(Schema("llama-cpp").refusal(server.words, "") == "");
    return command_line(server.words);
  };
  // four slots of 131072 tokens at 131072 B each are 68.7 GB; 80 GB less 5 %, 8.5 GB of weights and 1 GB hold fewer
  const std::string shared = words("llama-cpp", "");
  CHECK(contains(shared, "--parallel 4 --ctx-size 5"));
  CHECK(contains(shared, "--kv-unified"));
  const char* drafts = "\nspeculation: {method: draft_model, model: llama-3.2-1b, num_speculative_tokens: 3}";
  CHECK(
      contains(words("llama-cpp", drafts), "--spec-type draft-simple --model-draft DRAFTER.gguf --spec-draft-n-max 3"));
  CHECK(contains(words("llama-cpp@7539", drafts), "--model-draft DRAFTER.gguf --draft-max 3"));
  CHECK(contains(words("llama-cpp@4621", ""), "--parallel 1 --ctx-size 4096"));
}

TEST_CASE("launch plan: the cache's format in each engine's words, by release") {
  const auto words = [](const std::string& engine, const char* gpu, const std::string& cache) {
    const PlannedDeployment p = planned(
        deployment(engine, "llama-3.1-8b", gpu, "precision: {kv_cache: " + cache + "}\nforce_unsupported: true"));
    const Deployment& d = *p.candidate.scenario.deployment;
    const LaunchPlan plan = launch_plan(p, d.engine.name, {"m"});
    CHECK(Schema(d.engine.name).refusal(first(plan).words, d.engine.version) == "");
    return command_line(first(plan).words) + (first(plan).files.empty() ? "" : first(plan).files[0].text);
  };
  const auto contains = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  CHECK_FALSE(contains(words("vllm", "h100-sxm", "bf16"), "--kv-cache-dtype"));
  CHECK(contains(words("vllm", "h100-sxm", "int8"), "--kv-cache-dtype int8_per_token_head"));
  CHECK(contains(words("vllm", "h100-sxm", "int4"), "--kv-cache-dtype int4_per_token_head"));
  CHECK(contains(words("vllm", "b200-sxm", "nvfp4"), "--kv-cache-dtype nvfp4"));
  CHECK(contains(words("sglang", "b200-sxm", "mxfp4"), "--kv-cache-dtype fp4_e2m1"));
  CHECK(contains(words("trtllm", "b200-sxm", "nvfp4"), "kv_cache_config: {dtype: nvfp4, "));
  CHECK(contains(words("llama-cpp", "h100-sxm", "int8"), "--cache-type-k q8_0 --cache-type-v q8_0"));
  CHECK(contains(words("llama-cpp", "h100-sxm", "int4"), "--cache-type-k q4_0 --cache-type-v q4_0"));
  CHECK_THROWS_WITH(words("vllm@0.19", "h100-sxm", "int8"),
                    "--emit: vllm has a KV cache in int8 from 0.20.0 on, not in "
                    "0.19.0");
  CHECK_THROWS_WITH(words("sglang", "h100-sxm", "int8"), "--emit: sglang has no KV cache in int8");
  CHECK_THROWS_WITH(words("trtllm", "h100-sxm", "int4"), "--emit: trtllm has no KV cache in int4");
  CHECK_THROWS_WITH(words("llama-cpp", "h100-sxm", "fp8"), "--emit: llama-cpp has no KV cache in fp8");
}

TEST_CASE("launch plan: fp8 is made while loading only where the 16-bit weights have room") {
  // 122.6 B parameters: 245 GB in bf16, 123 in fp8; an H200 has 141.
  const auto plan = [](const std::string& engine, const char* rest) {
    const PlannedDeployment p =
        planned(deployment(engine, "mistral-large-123b", "h200-sxm", std::string("precision: fp8\n") + rest));
    return launch_plan(p, p.candidate.scenario.deployment->engine.name, {"mistralai/Mistral-Large-Instruct-2407"});
  };
  const LaunchPlan alone = plan("sglang", "");
  CHECK(has(first(alone).words, "Mistral-Large-Instruct-2407-fp8"));
  CHECK_FALSE(has(first(alone).words, "--quantization"));
  CHECK(as_shell(alone).find("# sglang would load the 16-bit weights before it quantizes them, and h200-sxm has no "
                             "room\n") != std::string::npos);
  CHECK(as_shell(alone).find("--qformat fp8 --export_path Mistral-Large-Instruct-2407-fp8") != std::string::npos);
  CHECK(has(first(plan("sglang", "parallelism: {tp: 2}")).words, "--quantization"));  // 123 GB of bf16 on each
  CHECK(has(first(plan("vllm", "")).words, "--quantization"));                        // layer by layer since 0.15
  CHECK_FALSE(has(first(plan("vllm@0.14", "")).words, "--quantization"));
}

TEST_CASE("launch plan: fp8 weights with 16-bit activations") {
  const auto process = [](const std::string& engine, const char* model, const char* gpu, const char* activations) {
    const PlannedDeployment p = planned(deployment(
        engine, model, gpu,
        fmt::format("precision: {{weights: fp8, activations: {}}}\nparallelism: {{tp: 2}}\nforce_unsupported: true",
                    activations)));
    return first(launch_plan(p, engine, {"m"}));
  };
  using Environment = std::vector<std::pair<std::string, std::string>>;
  CHECK(process("vllm", "llama-3.1-70b", "h100-sxm", "fp8").environment.empty());
  CHECK(process("vllm", "llama-3.1-70b", "h100-sxm", "bf16").environment ==
        Environment{{"VLLM_TEST_FORCE_FP8_MARLIN", "1"}});
  CHECK(process("sglang", "llama-3.1-70b", "h100-sxm", "bf16").environment ==
        Environment{{"SGLANG_FORCE_FP8_MARLIN", "1"}});
  CHECK(process("vllm", "llama-3.1-70b", "a100-sxm", "bf16").environment.empty());  // it has no other kernels
  CHECK_THROWS_WITH(process("trtllm", "llama-3.1-70b", "h100-sxm", "bf16"),
                    "--emit: trtllm has no kernels for fp8 weights with bf16 activations on h100-sxm");
  CHECK_THROWS_AS(process("sglang", "mixtral-8x7b", "h100-sxm", "bf16"), ConfigError);
}

TEST_CASE("launch plan: trees of drafts where the engine drafts them") {
  const auto plan = [](const std::string& engine) {
    const PlannedDeployment p = planned(
        deployment(engine, "llama-3.1-70b", "h200-sxm",
                   "parallelism: {tp: 4}\nspeculation: {method: eagle3, num_speculative_tokens: 3, tree_width: 4}\n"
                   "force_unsupported: true"));
    return launch_plan(p, p.candidate.scenario.deployment->engine.name, {"m"});
  };
  const std::string sglang = command_line(first(plan("sglang")).words);  // 3 steps, 4 candidates: 12 nodes and the root
  CHECK(sglang.find("--speculative-num-steps 3 --speculative-eagle-topk 4 --speculative-num-draft-tokens 13") !=
        std::string::npos);
  const LaunchPlan trtllm = plan("trtllm@1.3");
  CHECK(
      first(trtllm).files[0].text.find("use_dynamic_tree: true\n  dynamic_tree_max_topK: 4\n  max_total_draft_tokens: "
                                       "12\n") != std::string::npos);
  CHECK(Schema("trtllm").refusal_of_options(first(trtllm).files[0].text) == "");
  const LaunchPlan vllm = plan("vllm");
  CHECK(as_shell(vllm).find("# vllm has no launch flag for trees of eagle3 drafts: left out\n") != std::string::npos);
  CHECK(as_shell(vllm).find("--speculative") == std::string::npos);
}

TEST_CASE("launch plan: the checkpoints of a scenario") {
  const auto of = [](const std::string& text) { return checkpoints_of(parse_config_text(text, "s.yaml")); };
  const Checkpoints chat = of("{model: llama-3.1-70b, speculation: {method: draft_model, model: llama-3.2-1b}}");
  CHECK(chat.model == "meta-llama/Llama-3.1-70B-Instruct");
  CHECK(chat.drafter == "meta-llama/Llama-3.2-1B-Instruct");
  CHECK(chat.note.starts_with("meta-llama/Llama-3.1-70B is the base model and has no chat template"));
  const Checkpoints named = of("{model: meta-llama/Llama-3.1-70B}");  // what the reader names is served
  CHECK(named.model == "meta-llama/Llama-3.1-70B");
  CHECK(named.note.empty());
  for (const char* format :
       {"Qwen/Qwen3-32B-FP8", "Qwen/Qwen3-32B-AWQ", "Qwen/Qwen3-235B-A22B-FP8", "nvidia/DeepSeek-R1-FP4",
        "nvidia/Llama-3.1-70B-Instruct-FP8", "RedHatAI/Llama-3.1-8B-Instruct-quantized.w4a16"}) {
    CAPTURE(format);
    const std::string model = std::string("{model: ") + format + "}";
    CHECK(of(model).model == format);
    CHECK(of(model).note.empty());
    CHECK(of("{model: llama-3.1-8b, speculation: {method: draft_model, model: " + std::string(format) + "}}").drafter ==
          format);
  }
  const Checkpoints unowned = of("{model: Qwen3-32B-FP8}");
  CHECK(unowned.model.empty());
  CHECK(unowned.note == "Qwen3-32B-FP8 is a checkpoint whose owner is not named: write OWNER/Qwen3-32B-FP8");
  CHECK(of("{model: hunyuan-large}").model.empty());                            // a paper's
  const std::string folder = std::string(ROOFCAST_SOURCE_DIR) + "/tests/data";  // of the reader's own
  CHECK(of("{model: " + folder + "/}").model == folder);
  const PlannedDeployment own = planned(deployment("vllm", "llama-3.1-8b", "h200-sxm", ""));
  const LaunchPlan mounted = launch_plan(own, "vllm", {folder});
  CHECK(as_compose(mounted).find(fmt::format("- {0}:{0}:ro", folder)) != std::string::npos);
  CHECK(as_kubernetes(mounted).find(fmt::format("mountPath: {}, subPath: data", folder)) != std::string::npos);
  PlannedDeployment p = planned(deployment("vllm", "llama-3.1-70b", "h200-sxm",
                                           "parallelism: {tp: 4}\nspeculation: {method: draft_model, model: "
                                           "llama-3.2-1b}"));
  CHECK(has(first(launch_plan(p, "vllm", chat)).words, "meta-llama/Llama-3.2-1B-Instruct"));
  CHECK_FALSE(has(first(launch_plan(p, "vllm", chat)).words, "llama-3.2-1b"));
}

TEST_CASE("launch plan: a folder next to the scenario stays a folder, for weights and for drafts") {
  const PlannedDeployment p = planned(
      deployment("vllm", "llama-3.1-8b", "h200-sxm", "speculation: {method: draft_model, model: llama-3.2-1b}"));
  const WorkingDirectory there;
  const Checkpoints from =
      checkpoints_of(parse_config_text("{model: ./my-model, speculation: {model: my-model/}}", "s.yaml"));
  CHECK(from.model == "./my-model");
  CHECK(from.drafter == "./my-model");
  const LaunchPlan model = launch_plan(p, "vllm", {from.model, "of/drafts"}),
                   drafts = launch_plan(p, "vllm", {"m", from.drafter});
  CHECK(command_line(first(model).words).starts_with("vllm serve ./my-model "));
  CHECK(command_line(first(drafts).words).find("--speculative-config.model ./my-model") != std::string::npos);
  for (const LaunchPlan* plan : {&model, &drafts}) {
    CHECK(plan->weights.size() == 1);
    CHECK(as_compose(*plan).find("- ./my-model:/launch/my-model:ro") != std::string::npos);
    CHECK(as_kubernetes(*plan).find("mountPath: /launch/my-model, subPath: my-model") != std::string::npos);
  }
}

TEST_CASE("launch plan: a repository that is named with its format is served, whatever starts it") {
  const std::string model = "Qwen/Qwen3-32B-FP8";
  for (const char* engine : {"vllm", "sglang", "trtllm"}) {
    CAPTURE(engine);
    const PlannedDeployment p = planned(deployment(engine, model, "h200-sxm", ""));
    const LaunchPlan plan = launch_plan(p, engine, checkpoints_of(parse_config_text("{model: " + model + "}", "s")));
    CHECK(has(first(plan).words, model));
    CHECK_FALSE(has(first(plan).words, "--quantization"));
    CHECK(plan.weights.empty());
    for (const std::string& text : {as_shell(plan), as_compose(plan), as_kubernetes(plan)})
      CHECK(text.find(model) != std::string::npos);
  }
}

TEST_CASE("launch plan: the checkpoint of a model that the scenario changes is the reader's") {
  for (const char* change : {"num_hidden_layers: 32", "drop_layers: [3]", "sparsity: 2:4"}) {
    const std::string text = fmt::format("{{model: {{name: llama-3.1-8b, {}}}}}", change);
    const Checkpoints from = checkpoints_of(parse_config_text(text, "s.yaml"));
    CHECK(from.model.empty());
    const std::string key = std::string(change).substr(0, std::string(change).find(':'));
    CHECK(from.note == fmt::format("the scenario changes {} of llama-3.1-8b, whose checkpoint is another one", key));
  }
  const LaunchPlan plan =
      launch_plan(planned(deployment("vllm", "{name: llama-3.1-8b, num_hidden_layers: 16}", "h200-sxm", "")), "vllm",
                  {.note = "16 layers"});
  CHECK(as_shell(plan).find("# 16 layers\n# CHECKPOINT: llama-3.1-8b with bf16 weights\n") != std::string::npos);
  CHECK(has(first(plan).words, "$CHECKPOINT"));
}

TEST_CASE("launch plan: a model's checkpoint for chat is one of its repositories") {
  int served = 0;
  for (const std::string& model : names_of("models")) {
    const ConfigTree document = load_named("models", model, {});
    const ConfigTree* chat = document->find("chat");
    if (chat == nullptr) continue;
    ++served;
    INFO(model);
    const ConfigTree* repositories = document->find("hugging_face");
    REQUIRE(repositories != nullptr);
    const auto same = [&](const ConfigTree& name) { return name->scalar == (*chat)->scalar; };
    CHECK(std::any_of((*repositories)->items.begin(), (*repositories)->items.end(), same));
  }
  CHECK(served > 10);
}

TEST_CASE("launch plan: AMD GPUs take AITER and their own resource") {
  const LaunchPlan plan = launch_plan(planned(deployment("vllm", "llama-3.1-70b", "mi300x", "")), "vllm", {"m"});
  REQUIRE(first(plan).environment.size() == 1);
  CHECK(first(plan).environment[0].first == "VLLM_ROCM_USE_AITER");
  CHECK(as_kubernetes(plan).find("amd.com/gpu: 1") != std::string::npos);
  // all devices are in each container: the second copy on the host takes the second GPU
  const std::string compose = as_compose(plan);
  CHECK(compose.find("  server-1:\n") < compose.find("HIP_VISIBLE_DEVICES: \"0\"\n"));
  CHECK(compose.find("  server-2:\n") < compose.find("HIP_VISIBLE_DEVICES: \"1\"\n"));
  CHECK(count_of(compose, "HIP_VISIBLE_DEVICES") == 2);
}

TEST_CASE("launch plan: copies on one host differ in their port alone") {
  const std::string compose = as_compose(
      launch_plan(planned(deployment("{name: vllm, max_num_batched_tokens: 8000}", "llama-3.1-8b", "h100-sxm", "")),
                  "vllm", {"m"}));
  CHECK(count_of(compose, "--max-num-batched-tokens 8000 ") == 2);
  CHECK(count_of(compose, "--port 8000") == 1);
  CHECK(count_of(compose, "--port 8001") == 1);
  CHECK(compose.find("device_ids: [\"1\"]") != std::string::npos);
}

TEST_CASE("launch plan: weights that an engine does not quantize are named") {
  const std::string fp8 = "precision: {weights: fp8, activations: fp8}",
                    fp4 = "precision: {weights: nvfp4, activations: nvfp4}";
  const LaunchPlan loads =
                       launch_plan(planned(deployment("vllm", "llama-3.1-70b", "h100-sxm", fp8)), "vllm", {"meta/L"}),
                   trtllm = launch_plan(planned(deployment("trtllm", "llama-3.1-70b", "h100-sxm", fp8)), "trtllm",
                                        {"meta/L"}),
                   blackwell =
                       launch_plan(planned(deployment("vllm", "llama-3.1-70b", "b200-sxm", fp4)), "vllm", {"meta/L"});
  CHECK(has(first(loads).words, "meta/L"));
  CHECK(has(first(trtllm).words, "L-fp8"));
  CHECK(has(first(blackwell).words, "L-nvfp4"));
  CHECK(as_shell(trtllm).find("hf_ptq.py --pyt_ckpt_path meta/L --qformat fp8 --export_path L-fp8") !=
        std::string::npos);
}

TEST_CASE("launch plan: llama.cpp's server") {
  const PlannedDeployment p =
      planned(deployment("llama-cpp", "llama-3.1-8b", "rtx-4090", "precision: {weights: gguf_q4_k_m}"));
  const LaunchPlan plan = launch_plan(p, "llama-cpp", {"meta/L"});
  CHECK(Schema("llama-cpp").refusal(first(plan).words, "") == "");
  CHECK(has(first(plan).words, "MODEL.gguf"));
}
