#include "reports/launch_plan.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/config_release.h"
#include "reports/launch_command.h"

using namespace roofcast;

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
        const LaunchPlan plan = launch_plan(p, e.name, "meta-llama/Llama-3.1-70B");
        INFO(release << " " << layout << " " << format << ": " << command_line(first(plan).words));
        CHECK(schema.refusal(first(plan).words, e.version) == "");
        std::vector<std::string> further = first(plan).words;
        further.insert(further.end(), first(plan).further_words.begin(), first(plan).further_words.end());
        CHECK(schema.refusal(further, e.version) == "");
        for (const LaunchFile& file : first(plan).files) CHECK(schema.refusal_of_options(file.text) == "");
      }
    }
  }
}

TEST_CASE("launch plan: settings that a scenario changes reach the command") {
  const auto words = [](const std::string& settings) {
    const PlannedDeployment p = planned(deployment(settings, "llama-3.1-8b", "h100-sxm", ""));
    const std::string engine = p.candidate.scenario.deployment->engine.name;
    const LaunchPlan plan = launch_plan(p, engine, "m");
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

TEST_CASE("launch plan: a replica on two nodes has ranks and an address") {
  const std::string layout = "parallelism: {tp: 8, pp: 2}\nprecision: {weights: fp8, activations: fp8}";
  const LaunchPlan vllm = launch_plan(planned(deployment("vllm", "llama-3.1-405b", "h100-sxm", layout)), "vllm", "m"),
                   older = launch_plan(planned(deployment("vllm@0.11.0", "llama-3.1-405b", "h100-sxm", layout)), "vllm",
                                       "m"),
                   sglang =
                       launch_plan(planned(deployment("sglang", "llama-3.1-405b", "h100-sxm", layout)), "sglang", "m"),
                   trtllm =
                       launch_plan(planned(deployment("trtllm", "llama-3.1-405b", "h100-sxm", layout)), "trtllm", "m");
  for (const LaunchPlan* plan : {&vllm, &older, &sglang, &trtllm}) {
    CHECK(first(*plan).nodes == 2);
    CHECK(first(*plan).gpus_per_node == 8);
  }
  CHECK(has(first(vllm).words, "$HEAD_ADDRESS"));
  CHECK(has(first(vllm).further_words, "--headless"));
  CHECK(has(first(older).words, "ray"));
  CHECK(has(first(sglang).words, "$HEAD_ADDRESS:5000"));
  CHECK(first(trtllm).prefix.starts_with("mpirun -n 16 --npernode 8"));
  CHECK(as_kubernetes(sglang).find("kind: LeaderWorkerSet") != std::string::npos);
  CHECK(as_kubernetes(sglang).find("size: 2") != std::string::npos);
  CHECK(as_compose(sglang).find("NODE_RANK: ${NODE_RANK}") != std::string::npos);
}

TEST_CASE("launch plan: copies of the attention over two nodes are ranks of one server") {
  const std::string layout = "parallelism: {attention_dp: 16, ep: 16}";
  const LaunchPlan plan = launch_plan(planned(deployment("vllm", "deepseek-r1", "h200-sxm", layout)), "vllm", "m");
  const std::string words = command_line(first(plan).words);
  CHECK(words.find("--data-parallel-size 16 --data-parallel-size-local 8") != std::string::npos);
  CHECK(has(first(plan).further_words, "--data-parallel-start-rank"));
}

TEST_CASE("launch plan: every form is YAML or a script, and asks for the GPUs") {
  const LaunchPlan plan =
      launch_plan(planned(deployment("trtllm", "llama-3.1-70b", "h200-sxm", "parallelism: {tp: 4}")), "trtllm", "m");
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
}

TEST_CASE("launch plan: AMD GPUs take AITER and their own resource") {
  const LaunchPlan plan = launch_plan(planned(deployment("vllm", "llama-3.1-70b", "mi300x", "")), "vllm", "m");
  REQUIRE(first(plan).environment.size() == 1);
  CHECK(first(plan).environment[0].first == "VLLM_ROCM_USE_AITER");
  CHECK(as_kubernetes(plan).find("amd.com/gpu: 1") != std::string::npos);
}

TEST_CASE("launch plan: weights that an engine does not quantize are named") {
  const std::string fp8 = "precision: {weights: fp8, activations: fp8}",
                    fp4 = "precision: {weights: nvfp4, activations: nvfp4}";
  const LaunchPlan loads = launch_plan(planned(deployment("vllm", "llama-3.1-70b", "h100-sxm", fp8)), "vllm", "meta/L"),
                   trtllm =
                       launch_plan(planned(deployment("trtllm", "llama-3.1-70b", "h100-sxm", fp8)), "trtllm", "meta/L"),
                   blackwell =
                       launch_plan(planned(deployment("vllm", "llama-3.1-70b", "b200-sxm", fp4)), "vllm", "meta/L");
  CHECK(has(first(loads).words, "meta/L"));
  CHECK(has(first(trtllm).words, "L-fp8"));
  CHECK(has(first(blackwell).words, "L-nvfp4"));
  CHECK(as_shell(trtllm).find("hf_ptq.py --pyt_ckpt_path meta/L --qformat fp8 --export_path L-fp8") !=
        std::string::npos);
}

TEST_CASE("launch plan: llama.cpp's server") {
  const PlannedDeployment p =
      planned(deployment("llama-cpp", "llama-3.1-8b", "rtx-4090", "precision: {weights: gguf_q4_k_m}"));
  const LaunchPlan plan = launch_plan(p, "llama-cpp", "meta/L");
  CHECK(Schema("llama-cpp").refusal(first(plan).words, "") == "");
  CHECK(has(first(plan).words, "MODEL.gguf"));
}
