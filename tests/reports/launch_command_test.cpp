#include "reports/launch_command.h"
#include "base/config_reader.h"
#include "reports/launch_plan.h"
#include "sim/step/deployment.h"

#include <doctest/doctest.h>

using namespace roofcast;
using namespace roofcast::reports;

namespace {

PlannedDeployment planned(const char* precision, int tp) {
  const std::string text =
      std::string(
          "model: llama-3.1-70b\ngpu: h200-sxm\nengine: {name: vllm, max_num_seqs: 128}\nworkload: {arrivals: "
          "{process: poisson, rate: 1 /s}, prompt_tokens: "
          "{distribution: fixed, value: 10}, output_tokens: {distribution: fixed, value: 10}, requests: 10}\n") +
      precision;
  PlannedDeployment p;
  p.candidate.scenario = read_scenario(
      with_assignment(parse_config_text(text, "p"), "parallelism.tp=" + std::to_string(tp), "t"), Fidelity::kIdeal);
  p.replicas = 3;
  return p;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("launch command: the flags of each engine") {
  const PlannedDeployment p = planned("precision: {weights: fp8, kv_cache: fp8}", 4);
  const std::string vllm = launch_command(p, "vllm", {"meta-llama/Llama-3.1-70B"}),
                    sglang = launch_command(p, "sglang", {"meta-llama/Llama-3.1-70B"}),
                    trtllm = launch_command(p, "trtllm", {"meta-llama/Llama-3.1-70B"});
  CHECK(has(vllm, "vllm serve meta-llama/Llama-3.1-70B --tensor-parallel-size 4"));
  CHECK(has(vllm, "--max-num-seqs 128 --max-num-batched-tokens 8192"));
  CHECK(has(vllm, "--quantization fp8 --kv-cache-dtype fp8"));
  CHECK(has(vllm, "# 3 replicas on 4 h200-sxm each"));
  CHECK(has(sglang, "--tp-size 4"));
  CHECK(has(sglang, "--max-running-requests 128"));
  CHECK(has(sglang, "--kv-cache-dtype fp8_e4m3"));
  CHECK(has(trtllm, "trtllm-serve Llama-3.1-70B-fp8"));
  CHECK(has(trtllm, "--max_batch_size 128 --max_num_tokens 8192"));
  CHECK(has(trtllm, "kv_cache_config: {dtype: fp8, enable_block_reuse: "));
  CHECK(has(trtllm,
            "hf_ptq.py --pyt_ckpt_path meta-llama/Llama-3.1-70B --qformat fp8 --kv_cache_qformat fp8 --export_path "
            "Llama-3.1-70B-fp8"));
  CHECK_THROWS_AS(launch_command(p, "tgi", {"meta-llama/Llama-3.1-70B"}), ConfigError);
}

TEST_CASE("launch command: settings of the checkpoint need no flag") {
  const std::string vllm = launch_command(planned("", 2), "vllm", {"x"});
  CHECK_FALSE(has(vllm, "--quantization"));
  CHECK_FALSE(has(vllm, "--kv-cache-dtype"));
  CHECK_FALSE(has(vllm, "pipeline"));
}

TEST_CASE("launch command: each engine gets the planned cache, in its own terms") {
  PlannedDeployment p = planned("precision: {weights: fp8, kv_cache: fp8}", 4);
  auto d = std::make_shared<Deployment>(*p.candidate.scenario.deployment);
  d->memory.capacity = Bytes(100), d->memory.weights = Bytes(20), d->memory.activations = Bytes(5);
  d->engine.reserved_memory = Bytes(2), d->engine.collective_memory = Bytes(3), d->memory.cache = Bytes(56);
  p.candidate.scenario.deployment = d;
  d->engine.memory_rule = MemoryRule::kShareOfFree, d->engine.gpu_memory_utilization = 0.8;  // 56 of 100 - 20 - 5 - 5
  CHECK(has(launch_command(p, "trtllm", {"x"}), "free_gpu_memory_fraction: 0.8}"));
  CHECK(has(launch_command(p, "vllm", {"x"}), "--gpu-memory-utilization 0.86"));  // 20 + 5 + 5 + 56
  CHECK(has(launch_command(p, "sglang", {"x"}), "--mem-fraction-static 0.76"));   // 20 + 56
  d->engine.memory_rule = MemoryRule::kShareOfTotal, d->engine.gpu_memory_utilization = 0.86;
  CHECK(has(launch_command(p, "trtllm", {"x"}), "free_gpu_memory_fraction: 0.8}"));
  CHECK(has(launch_command(p, "vllm", {"x"}), "--gpu-memory-utilization 0.86"));
}

TEST_CASE("launch command: workers of both roles, and their router") {
  PlannedDeployment p = planned("precision: {weights: fp8, kv_cache: fp8}", 4);
  const PlannedDeployment prefill = planned("precision: {weights: fp8, kv_cache: fp8}", 2);
  p.candidate.scenario.serving.disaggregation = Disaggregation{.prefill = prefill.candidate.scenario.deployment};
  p.prefill_replicas = 5;
  const std::string vllm = launch_command(p, "vllm", {"m"}), sglang = launch_command(p, "sglang", {"m"}),
                    trtllm = launch_command(p, "trtllm", {"m"});
  for (const std::string& text : {vllm, sglang, trtllm}) {
    CHECK(has(text, "# 5 prefill workers on 2 h200-sxm each"));
    CHECK(has(text, "# 3 decode workers on 4 h200-sxm each"));
  }
  CHECK(has(vllm, R"('{"kv_connector":"NixlConnector","kv_role":"kv_producer","kv_load_failure_policy":"fail"}')"));
  CHECK(has(vllm, R"("kv_role":"kv_consumer")"));
  CHECK(has(vllm, "vllm-router --vllm-pd-disaggregation --prefill http://prefill-1:8100"));
  CHECK(has(sglang, "--disaggregation-mode prefill --disaggregation-transfer-backend nixl"));
  CHECK(has(sglang, "--disaggregation-mode decode"));
  CHECK(has(sglang, "sglang_router.launch_router --pd-disaggregation --prefill http://prefill-1:8100 8998 --prefill "));
  CHECK(has(trtllm,
            "disable_overlap_scheduler: true\ncache_transceiver_config: {backend: NIXL, max_tokens_in_buffer: 1024}"));
  CHECK(has(trtllm, "context_servers:\n  num_instances: 5\n  urls:\n    - \"prefill-1:8100\""));
  CHECK(has(trtllm, "trtllm-serve disaggregated -c disagg_config.yaml"));
}

TEST_CASE("launch command: drafts in each engine's words") {
  PlannedDeployment p = planned("precision: {weights: fp8, kv_cache: fp8}", 4);
  SpeculationSpec& s = p.candidate.scenario.serving.speculation;
  s = {.method = SpeculationSpec::Method::kEagle3, .num_speculative_tokens = 3, .acceptance = {0.7}};
  CHECK(has(launch_command(p, "vllm", {"m"}),
            "--speculative-config.method eagle3 --speculative-config.num_speculative_tokens 3"));
  CHECK(has(launch_command(p, "sglang", {"m"}), "--speculative-algorithm EAGLE3 --speculative-draft-model-path"));
  CHECK(has(launch_command(p, "sglang", {"m"}),
            "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"));
  CHECK(has(launch_command(p, "trtllm", {"m"}), "speculative_config:\n  decoding_type: Eagle3\n  max_draft_len: 3"));
  s.method = SpeculationSpec::Method::kMtp;
  CHECK(has(launch_command(p, "vllm", {"m"}), "--speculative-config.method mtp"));
  CHECK_FALSE(has(launch_command(p, "vllm", {"m"}), "DRAFTER"));
  CHECK(has(launch_command(p, "trtllm", {"m"}), "decoding_type: MTP\n  num_nextn_predict_layers: 3"));
  s.method = SpeculationSpec::Method::kSelfDraft;
  CHECK(has(launch_command(p, "vllm", {"m"}), "no launch flag for self_draft drafts"));
  CHECK_FALSE(has(launch_command(p, "vllm", {"m"}), "--speculative"));
  s.method = SpeculationSpec::Method::kSuffix;
  const std::string suffix = launch_command(p, "vllm", {"m"}), compose = launch_command(p, "vllm", {"m"}, "compose");
  CHECK(has(suffix, "--speculative-config.method suffix --speculative-config.num_speculative_tokens 3"));
  CHECK(has(suffix, "\npip install arctic-inference==0.1.1\nvllm serve m "));
  CHECK(has(compose, "pip install arctic-inference==0.1.1 && exec vllm serve m "));
  CHECK(has(launch_command(p, "sglang", {"m"}), "no launch flag for suffix drafts"));
  s.method = SpeculationSpec::Method::kLookahead;
  CHECK(has(launch_command(p, "trtllm", {"m"}), "no launch flag for lookahead drafts"));
}

TEST_CASE("launch command: names of a stranger's files stay names") {
  PlannedDeployment p = planned("", 4);
  for (const char* name : {"a/$(id)", "a/`id`", "a/b\nid", "--trust-remote-code", "a/b\"", "a\\b"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(launch_command(p, "vllm", {name}), ConfigError);
    CHECK_THROWS_AS(launch_command(p, "vllm", {"a/b", name}), ConfigError);
  }
  CHECK(has(launch_command(p, "vllm", {"my folder/b;id"}), "vllm serve 'my folder/b;id' --tensor"));
  auto d = std::make_shared<Deployment>(*p.candidate.scenario.deployment);
  d->model.name = "x\nid\x1b";
  p.candidate.scenario.deployment = d;
  CHECK(has(launch_command(p, "llama-cpp", {}), "# MODEL.gguf: x id\\x1b as GGUF"));
  CHECK(yaml_text("./w:/launch/w:ro") == "./w:/launch/w:ro");
  CHECK(yaml_text("${WEIGHTS:?a folder}") == "${WEIGHTS:?a folder}");
  for (const char* name : {"a: b", "x #y", "[a", "w, readOnly: false", "a\"b", " a", ""}) {
    CAPTURE(name);
    CHECK(parse_config_text("key: " + yaml_text(name), "made.yaml")->items.empty());
    CHECK(ConfigReader(parse_config_text("key: " + yaml_text(name), "made.yaml"), "it").text("key") == name);
  }
  d->engine.version = "1 $(id)";
  CHECK_THROWS_AS(launch_command(p, "vllm", {"a/b"}), ConfigError);
}
