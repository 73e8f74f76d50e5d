#include "sim/plan/rules.h"

#include <doctest/doctest.h>

#include <map>

#include "base/config_library.h"
#include "hw/efficiency.h"
#include "sim/model/model_spec.h"
#include "tests/base/messages.h"

using namespace roofcast;

namespace {

const ModelSpec& model(const std::string& name) {
  static std::map<std::string, ModelSpec> read;
  const auto at = read.find(name);
  return at != read.end()
             ? at->second
             : read.emplace(name, parse_model(load_named("models", name, SourceLocation{"test", 0, 0}))).first->second;
}

/// What holds of Llama 3.1 8B in fp8 with vLLM 0.12 on one H100, 1000 tokens in and 100 out.
struct Known {
  GpuSpec gpu;
  Sharding sharding{.tp = 2};
  Precision precision;
  DeploymentFacts facts;
  explicit Known(const std::string& name = "llama-3.1-8b") {
    gpu.name = "h100-sxm";
    gpu.architecture = Architecture::kHopper;
    precision.weights = Dtype::kFp8;
    precision.kv_cache = Dtype::kBf16;
    facts.engine = "vllm";
    facts.version = "0.12.0";
    facts.client_date = "2025-10-01";
    facts.gpu = &gpu;
    facts.model = &model(name);
    facts.sharding = &sharding;
    facts.precision = &precision;
    facts.prompt_tokens = 1000;
    facts.output_tokens = 100;
    facts.concurrency = 8;
  }
  Known(const Known&) = delete;
  Known& operator=(const Known&) = delete;
};

bool holds_of(const DeploymentFacts& facts, const std::string& when) {
  return holds(parse_config_text(when, "r.yaml"), facts);
}

Amount amount(const std::string& text, const DeploymentFacts& facts, double max_num_seqs) {
  return evaluate_amount(*make_scalar(text, SourceLocation{"r.yaml", 4, 8}), facts, max_num_seqs);
}

}  // namespace

TEST_CASE("rules: no condition holds always, and all of several have to") {
  const Known known;
  CHECK(holds(nullptr, known.facts));
  CHECK(holds(nullptr, {}));
  CHECK(holds_of(known.facts, "{}"));
  CHECK(holds_of(known.facts, "{engine: vllm, weights: fp8, architecture: hopper}"));
  CHECK_FALSE(holds_of(known.facts, "{engine: vllm, weights: fp8, architecture: blackwell}"));
  CHECK_FALSE(holds_of(known.facts, "{engine: sglang, weights: fp8, architecture: hopper}"));
}

TEST_CASE("rules: names are one, or any of a list, and * stands for any text") {
  const Known known;
  CHECK(holds_of(known.facts, "{gpu: h100-sxm}"));
  CHECK_FALSE(holds_of(known.facts, "{gpu: h100}"));
  CHECK(holds_of(known.facts, "{gpu: \"h100*\"}"));
  CHECK(holds_of(known.facts, "{gpu: \"*sxm\"}"));
  CHECK(holds_of(known.facts, "{gpu: \"h*-*\"}"));
  CHECK(holds_of(known.facts, "{gpu: [a100-sxm, \"h100*\"]}"));
  CHECK_FALSE(holds_of(known.facts, "{gpu: [a100-sxm, h200-sxm]}"));
  CHECK(holds_of(known.facts, "{model: llama-3.1-8b}"));
  CHECK(holds_of(known.facts, "{model: \"llama-3.1-*\"}"));
  CHECK(holds_of(known.facts, "{family: \"" + model("llama-3.1-8b").family + "\"}"));
  CHECK_FALSE(holds_of(known.facts, "{model: \"qwen*\"}"));
  CHECK(holds_of(known.facts, "{weights: [nvfp4, fp8], kv_cache: [bf16, fp16]}"));
  CHECK_FALSE(holds_of(known.facts, "{kv_cache: fp8}"));
}

TEST_CASE("rules: releases of the engine, from the first and before the last") {
  Known known;
  const auto at = [&](const char* version, const char* when) {
    known.facts.version = version;
    return holds_of(known.facts, when);
  };
  CHECK(at("0.12.0", "{since: \"0.12.0\"}"));
  CHECK_FALSE(at("0.11.2", "{since: \"0.12.0\"}"));
  CHECK_FALSE(at("0.12.0", "{until: \"0.12.0\"}"));
  CHECK(at("0.9.2", "{until: \"0.12.0\"}"));
  CHECK(at("0.10.2", "{since: \"0.10\", until: \"0.11\"}"));
}

TEST_CASE("rules: experts, indexers, attention-DP, disaggregation") {
  Known dense;
  CHECK(holds_of(dense.facts, "{experts: false}"));
  CHECK_FALSE(holds_of(dense.facts, "{experts: true}"));
  CHECK(holds_of(dense.facts, "{indexed: false}"));
  CHECK(holds_of(Known("mixtral-8x7b").facts, "{experts: true, indexed: false}"));
  CHECK(holds_of(Known("deepseek-v3").facts, "{experts: true, indexed: false}"));
  CHECK(holds_of(Known("deepseek-v3.2").facts, "{experts: true, indexed: true}"));
  CHECK(holds_of(dense.facts, "{attention_dp: false, disaggregated: false}"));
  dense.sharding.attention_dp = 2;
  dense.facts.disaggregated = true;
  CHECK(holds_of(dense.facts, "{attention_dp: true, disaggregated: true}"));
  CHECK_FALSE(holds_of(dense.facts, "{attention_dp: false}"));
  dense.sharding.ep = 8;
  CHECK(holds_of(dense.facts, "{ep: [8, 65536]}"));
  CHECK_FALSE(holds_of(dense.facts, "{ep: [9, 65536]}"));
}

TEST_CASE("rules: lengths from the least to the most, both included") {
  const Known known;  // 1000 in, 100 out
  CHECK(holds_of(known.facts, "{prompt_tokens: [1000, 1000]}"));
  CHECK(holds_of(known.facts, "{prompt_tokens: [0, 2000], output_tokens: [100, 200]}"));
  CHECK_FALSE(holds_of(known.facts, "{prompt_tokens: [1001, 2000]}"));
  CHECK_FALSE(holds_of(known.facts, "{output_tokens: [1, 99]}"));
}

TEST_CASE("rules: days of the client; none given is the newest") {
  Known known;
  known.facts.client_date = "2026-05-01";
  CHECK(holds_of(known.facts, "{client_since: 2026-05-01}"));
  CHECK_FALSE(holds_of(known.facts, "{client_until: 2026-05-01}"));
  known.facts.client_date = "2026-04-30";
  CHECK_FALSE(holds_of(known.facts, "{client_since: 2026-05-01}"));
  CHECK(holds_of(known.facts, "{client_until: 2026-05-01}"));
  known.facts.client_date = "";
  CHECK(holds_of(known.facts, "{client_since: 2026-05-01}"));
  CHECK_FALSE(holds_of(known.facts, "{client_until: 2026-05-01}"));
}

TEST_CASE("rules: what is not known is not so") {
  const DeploymentFacts nothing;
  for (const char* when :
       {"{engine: \"*\"}", "{since: \"0.1\"}", "{until: \"99\"}", "{gpu: \"*\"}", "{architecture: \"*\"}",
        "{model: \"*\"}", "{family: \"*\"}", "{model_type: \"*\"}", "{weights: \"*\"}", "{kv_cache: \"*\"}",
        "{experts: false}", "{experts: true}", "{indexed: false}", "{attention_dp: false}",
        "{prompt_tokens: [0, 1000000]}", "{output_tokens: [0, 1000000]}"}) {
    INFO(when);
    CHECK_FALSE(holds_of(nothing, when));
  }
  CHECK(holds_of(nothing, "{disaggregated: false}"));
}

TEST_CASE("rules: a condition that cannot be read is refused, whether it holds or not") {
  const Known known;
  const auto refused = [&](const char* when) { return message_of([&] { holds_of(known.facts, when); }); };
  CHECK(refused("{engin: vllm}").find("unknown key 'engin' of a condition; nearest is 'engine'") != std::string::npos);
  CHECK(refused("{engine: sglang, experts: maybe}").find("'experts'") != std::string::npos);
  CHECK(refused("{prompt_tokens: [1]}") == "r.yaml:1:17: 'prompt_tokens': must be [least, most]");
  CHECK(refused("{prompt_tokens: 100}") != "");
}

TEST_CASE("amounts: sums from left to right, and the larger of two") {
  const Known known;  // 1000 in, 100 out, 8 in flight
  const auto value = [&](const std::string& text) {
    const Amount a = amount(text, known.facts, 512);
    CHECK(a.known);
    return a.value;
  };
  CHECK(value("16") == 16);
  CHECK(value("max_num_seqs + prompt_tokens + 1500") == 512 + 1000 + 1500);
  CHECK(value("prompt_tokens + concurrency - 2") == 1000 + 8 - 2);
  CHECK(value("10 - 3 - 2") == 5);
  CHECK(value("max(512, concurrency)") == 512);
  CHECK(value("max( concurrency , 4 ) + output_tokens") == 8 + 100);
  CHECK(value("max(1, max(2, 3 + 4)) - 1") == 6);
}

TEST_CASE("amounts: with something unknown they are not known") {
  DeploymentFacts facts;
  CHECK(amount("16", facts, 0).known);
  for (const char* text : {"prompt_tokens", "output_tokens + 1", "max(512, concurrency)", "max_num_seqs"})
    CHECK_FALSE(amount(text, facts, 0).known);
  CHECK(amount("max_num_seqs", facts, 256).known);
}

TEST_CASE("amounts: what is no sum is refused where it stands") {
  const Known known;
  for (const char* text : {"", "+", "1 +", "2 * 3", "tokens", "max(1)", "max(1, 2", "(1)", "1 2", "max_num_seqs)"}) {
    INFO(text);
    CHECK(message_of([&] {
            amount(text, known.facts, 512);
          }).starts_with(std::string("r.yaml:4:8: '") + text + "' is not a sum of numbers"));
  }
}
