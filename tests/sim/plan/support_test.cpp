#include "sim/plan/support.h"
#include "sim/model/model_spec.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdlib.h>

#include "base/config_library.h"
#include "sim/model/cut_blocks.h"
#include "tests/base/messages.h"
#include "tests/base/temporary_folder.h"

using namespace roofcast;

namespace {

Scenario scenario(const std::string& text) {
  return read_scenario(parse_config_text(text, "s.yaml"), Fidelity::kCalibrated);
}
std::string refusal(const std::string& text) {
  try {
    (void)scenario(text);
  } catch (const CannotRun& error) {
    return error.what();
  }
  return "";
}
bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("support: what cannot run is refused with its reason") {
  CHECK(has(refusal("{model: llama-3.1-8b, gpu: h100-sxm, engine: mlx}"), "Apple silicon"));
  CHECK(has(refusal("{model: llama-3.1-70b, gpu: mi300x, engine: trtllm}"), "NVIDIA GPUs only"));
  CHECK(has(refusal("{model: gpt-oss-20b, gpu: h100-sxm, engine: vllm@0.2.0}"), "gpt-oss came with vLLM 0.10.1"));
  CHECK(has(refusal("{model: gpt-oss-20b, gpu: h100-sxm, engine: vllm-2023}"), "gpt-oss came with vLLM 0.10.1"));
  CHECK(has(refusal("{model: llada-8b, gpu: h100-sxm, engine: vllm}"), "no diffusion decoding"));
  CHECK(has(refusal("{model: llama-3.1-70b, gpu: h100-sxm, parallelism: {tp: 4}, speculation: {method: diffusion}}"),
            "autoregressive"));
  CHECK(has(
      refusal("{model: llama-3.1-8b, gpu: h100-sxm, engine: llama-cpp, precision: {weights: fp8, activations: fp8}}"),
      "GGUF has no fp8"));
  CHECK(has(
      refusal(
          "{model: llama-3.1-70b, gpu: h100-sxm, engine: trtllm, parallelism: {tp: 4}, precision: {weights: nvfp4}}"),
      "Blackwell"));
  CHECK(has(refusal("{model: deepseek-v3, gpu: h200-sxm, engine: tgi, parallelism: {tp: 8, ep: 8}}"),
            "tensor parallelism only"));
  CHECK(has(refusal("{model: deepseek-v3, gpu: h200-sxm, engine: vllm@0.10.1, parallelism: {tp: 8, dcp: 8}}"),
            "decode context parallelism"));
  for (const char* engine : {"llama-cpp", "ollama", "hf-transformers"}) {
    CHECK(has(refusal(fmt::format(
                  "{{model: llama-3.1-70b, gpu: h100-sxm, engine: {}, parallelism: {{tp: 16, dcp: 2}}}}", engine)),
              "no decode context parallelism"));
  }
  CHECK(has(refusal("{model: llama-3.1-70b, gpu: h100-sxm, engine: tgi, parallelism: {tp: 16, dcp: 2}}"),
            "tensor parallelism only"));
}

TEST_CASE("support: who swaps what it preempts") {
  const auto with = [](const char* engine, const char* more) {
    return refusal(
        fmt::format("{{model: llama-3.1-8b, gpu: h100-sxm, engine: {{name: {}, preemption: swap}}{}}}", engine, more));
  };
  const char* apart = ", disaggregation: {prefill: {engine: sglang}}";
  CHECK(with("vllm@0.7", "") == "");
  for (const char* engine : {"vllm@0.8", "vllm@0.10.2", "vllm"}) CHECK(has(with(engine, ""), "V1 engine"));
  CHECK(has(with("sglang", ""), "recomputes it"));
  CHECK(with("sglang", apart) == "");
  CHECK(has(with("trtllm", ""), "kv_offload"));
  CHECK(with("vllm", ", force_unsupported: true") == "");
}

TEST_CASE("support: a release that is older than the model is told") {
  const auto doubts = [](const char* model, const char* engine) {
    std::string all;
    for (const std::string& doubt :
         scenario(
             fmt::format("{{model: {}, gpu: h200-sxm, engine: {}, parallelism: {{tp: 4}}, force_unsupported: true}}",
                         model, engine))
             .doubts)
      all += doubt + "\n";
    return all;
  };
  CHECK(
      has(doubts("nemotron-h-8b", "vllm@0.1"),
          "not known to run: vllm 0.1.0 of 2023-06-20 is older than nemotron-h-8b, which was published on 2025-03-21"));
  for (const char* model :
       {"jamba-1.5-mini", "deepseek-v2", "gemma-2-9b", "command-r", "llama-3.1-8b", "qwen2.5-vl-7b"})
    CHECK(has(doubts(model, "vllm@0.3"), "is older than"));
  CHECK(has(doubts("minimax-m2.5", "vllm@0.9"), "is older than minimax-m2.5"));
  CHECK(has(doubts("qwen3-next-80b-a3b", "sglang@0.4.10"), "is older than qwen3-next-80b-a3b"));
  CHECK(has(doubts("qwen3-32b", "trtllm@0.12"), "is older than qwen3-32b"));
  CHECK_FALSE(has(doubts("llama-3.1-8b", "vllm"), "is older than"));
  // vLLM 0.8.4 came two weeks before Qwen3, whose layers it has
  CHECK_FALSE(has(doubts("qwen3-32b", "vllm@0.8.4"), "is older than"));
  CHECK(has(doubts("qwen3-32b", "vllm@0.8.0"), "is older than"));
}

TEST_CASE("support: every shipped model says when it was published") {
  std::string without;
  for (const std::string& name : names_of("models")) {
    const ConfigTree model = load_named("models", name, {});
    if (model->find("published") == nullptr) without += name + " ";
  }
  CHECK(without == "");
}

TEST_CASE("support: number formats by engine, release and GPU") {
  const auto on = [](const char* engine, const char* gpu, const char* precision) {
    return refusal(fmt::format("{{model: llama-3.1-8b, gpu: {}, engine: {}, precision: {}}}", gpu, engine, precision));
  };
  CHECK(has(on("vllm@0.19", "h100-sxm", "{kv_cache: int8}"), "came with vLLM 0.20"));
  CHECK(on("vllm@0.20", "h100-sxm", "{kv_cache: int8}") == "");
  CHECK(has(on("vllm@0.20", "b200-sxm", "{kv_cache: nvfp4}"), "came with vLLM 0.21"));
  CHECK(on("vllm@0.21", "b200-sxm", "{kv_cache: nvfp4}") == "");
  CHECK(has(on("vllm", "h100-sxm", "{kv_cache: nvfp4}"), "kernels of B200 and B300"));
  CHECK(has(on("sglang", "h100-sxm", "{kv_cache: int8}"), "fp8 or fp4"));
  CHECK(has(on("sglang@0.5.5", "b200-sxm", "{kv_cache: mxfp4}"), "came with SGLang 0.5.7"));
  // the engines that TensorRT-LLM built had int8, the PyTorch backend of 1.0 has not
  for (const char* precision : {"{kv_cache: int8}", "smoothquant", "llm_int8", "int8"}) {
    CHECK(has(on("trtllm@1.0", "h100-sxm", precision), "PyTorch backend"));
    CHECK(on("trtllm@0.20", "h100-sxm", precision) == "");
  }
  CHECK(on("trtllm", "h100-sxm", "awq") == "");
  CHECK(on("trtllm", "b200-sxm", "{kv_cache: nvfp4}") == "");
  CHECK(has(on("trtllm", "h100-sxm", "{kv_cache: nvfp4}"), "Blackwell"));
  CHECK(has(on("trtllm", "h100-sxm", "{weights: fp8, activations: bf16}"), "by fp8 activations"));
  CHECK(on("vllm", "h100-sxm", "{weights: fp8, activations: bf16}") == "");
  CHECK(has(on("vllm", "mi300x", "{weights: fp8, activations: bf16}"), "ROCm lacks"));
  CHECK(has(on("llama-cpp", "h100-sxm", "{kv_cache: fp8}"), "q8_0"));
}

TEST_CASE("support: block fp8 is shared in whole blocks of 128") {
  const auto of = [](const std::string& engine, const std::string& model, const std::string& parallelism) {
    return refusal(
        fmt::format("{{model: {}, gpu: h200-sxm, engine: {}, parallelism: {{{}}}}}", model, engine, parallelism));
  };
  const std::string large = "Qwen/Qwen3-235B-A22B-FP8", small = "Qwen/Qwen3-30B-A3B-FP8";
  for (const char* engine : {"vllm", "sglang", "trtllm"}) {
    CAPTURE(engine);
    // Experts 1536 wide: 192 = 1.5 blocks on each of 8 GPUs, 384 = 3 blocks on each of 4.
    CHECK(
        has(of(engine, large, "tp: 8"),
            ": the width of the experts is 1536, 192 on a GPU; what loads: ep 8, which keeps experts whole, or tp 4"));
    CHECK(of(engine, large, "tp: 4") == "");
    CHECK(of(engine, large, "tp: 8, ep: 8") == "");
    CHECK(has(of(engine, large, "tp: 1, attention_dp: 8, ep: 1"), "192 on a GPU; what loads: ep 8"));
    CHECK(has(of(engine, "minimax-m2.5", "tp: 8"), "1536, 192 on a GPU"));
    CHECK(has(of(engine, small, "tp: 4"), "768, 192 on a GPU"));
    CHECK(of(engine, small, "tp: 2") == "");
  }
  // Outside the experts: 25600 / 16 = 1600 = 12.5 blocks; 18432 / 32 = 576 = 4.5 blocks.
  CHECK(has(of("vllm", "Qwen/Qwen3-32B-FP8", "tp: 16"), "the feed-forward is 25600, 1600 on a GPU; what loads: tp 8"));
  CHECK(has(of("sglang", "deepseek-v3", "tp: 32, ep: 32"), "18432, 576 on a GPU; what loads: tp 16 with ep 16"));
  CHECK(of("vllm", "deepseek-v3", "tp: 16") == "");
  // One scale for a matrix or a channel has no blocks, nor has a format of 16 bit.
  CHECK(of("vllm", "qwen3-235b-a22b", "tp: 8") == "");
  CHECK(refusal("{model: qwen3-235b-a22b, gpu: h200-sxm, engine: vllm, parallelism: {tp: 8}, precision: fp8_tensor}") ==
        "");
}

TEST_CASE("support: trees of drafts") {
  const auto with = [](const char* engine, const char* speculation) {
    return refusal(
        fmt::format("{{model: llama-3.1-8b, gpu: h100-sxm, engine: {}, speculation: {}}}", engine, speculation));
  };
  const char* tree = "{method: eagle3, tree_width: 4}";
  CHECK(has(with("vllm", tree), "drafts and verifies a chain"));
  CHECK(has(with("trtllm@1.0", tree), "under development"));
  CHECK(with("trtllm@1.3", tree) == "");
  CHECK(with("sglang", tree) == "");
  for (const char* engine : {"vllm", "sglang", "trtllm"}) CHECK(with(engine, "{method: eagle3}") == "");
}

TEST_CASE("support: what runs is not refused, and what is not known is said") {
  for (const char* text :
       {"{model: llama-3.1-8b, gpu: h100-sxm, engine: vllm}", "{model: llama-3.1-8b, gpu: mi300x, engine: sglang}",
        "{model: gpt-oss-20b, gpu: h100-sxm, engine: vllm@0.10.1}",
        "{model: llama-3.1-8b, gpu: rtx-4090, engine: llama-cpp}",
        "{model: llada-8b, gpu: h100-sxm, engine: hf-transformers, speculation: {method: diffusion, block_tokens: 32, "
        "steps: 8}}"})
    CHECK(refusal(text) == "");
  const Scenario doubtful = scenario(
      "{model: llama-3.1-8b, gpu: rtx-4090, engine: exllamav2, parallelism: {tp: 2}, precision: {weights: int4}}");
  REQUIRE(doubtful.doubts.size() == 1);
  CHECK(has(doubtful.doubts[0], "no record that this runs"));
}

TEST_CASE("support: what cannot run is priced when it is forced, which is said, and by the datasheet in any case") {
  const Scenario forced = scenario("{model: llama-3.1-8b, gpu: h100-sxm, engine: mlx, force_unsupported: true}");
  REQUIRE(forced.doubts.size() == 1);
  CHECK(has(forced.doubts[0], "estimated all the same"));
  const ConfigTree tree = parse_config_text("{model: llama-3.1-8b, gpu: h100-sxm, engine: mlx}", "s.yaml");
  CHECK(read_scenario(tree, Fidelity::kIdeal).doubts.empty());
}

TEST_CASE("support: every shipped engine has a table, and every rule a reason and a source") {
  const std::vector<std::string> tables = names_of("support");
  for (const std::string& engine : names_of("engines")) {
    CAPTURE(engine);
    CHECK(std::count(tables.begin(), tables.end(), engine) == 1);
  }
}

TEST_CASE("support: what an engine does that no setting says") {
  for (const char* engine : {"llama-cpp", "ollama"}) CHECK(engine_traits(engine).splits_by_layers);
  for (const char* engine : {"vllm", "sglang", "trtllm"}) CHECK_FALSE(engine_traits(engine).splits_by_layers);
  // A TensorRT-LLM prompt runs whole unless enable_chunked_prefill is set; vLLM cuts prompts by itself.
  CHECK(engine_traits("trtllm").chunks_when_told);
  CHECK_FALSE(engine_traits("vllm").chunks_when_told);
  for (const char* engine : {"trtllm", "lmdeploy"}) CHECK(engine_traits(engine).static_batch_in_one_pass);
  CHECK_FALSE(engine_traits("vllm").static_batch_in_one_pass);
  CHECK_FALSE(engine_traits("no-such-engine").splits_by_layers);
}

TEST_CASE("support: a misspelt word of cut_blocks is refused with those there are") {
  const TemporaryFolder folder;
  folder.write("support/winged.yaml",
               "name: winged\nrules:\n  - when: {cut_blocks: [expert]}\n    reason: r\n    source: s\n");
  setenv("ROOFCAST_CONFIGS", folder.path().c_str(), 1);
  const std::string message = message_of([] { (void)engine_traits("winged"); });
  unsetenv("ROOFCAST_CONFIGS");
  CHECK(has(message, "winged.yaml:3:"));
  CHECK(has(message, "unknown cut_blocks 'expert'"));
  CHECK(has(message, "others"));
}

TEST_CASE("cut blocks: layers with a state are called so") {
  Precision p;
  p.weights = p.attention_weights = Dtype::kFp8Block;
  // 8192 / 128 = 64, half a block
  const auto cut = cut_blocks(parse_model(load_named("models", "falcon-mamba-7b", {})), p, {.tp = 128});
  REQUIRE(!cut.empty());
  CHECK(cut.front().part == "the layers with a state");
  CHECK(cut.front().share == 64);
}

TEST_CASE("support: Transformers' own cache of DeepSeek is not the one that is priced") {
  const auto doubts = [](const char* model) {
    std::string all;
    for (const std::string& doubt :
         scenario(fmt::format("{{model: {}, gpu: h200-sxm, engine: hf-transformers, parallelism: {{pp: 8}}}}", model))
             .doubts)
      all += doubt + "\n";
    return all;
  };
  CHECK(has(doubts("deepseek-v3"), "a cache of latents is modelled"));
  CHECK_FALSE(has(doubts("llama-3.1-8b"), "latents"));
}

TEST_CASE("support: a trait that is none is refused with those there are") {
  const TemporaryFolder folder;
  folder.write("support/winged.yaml", "name: winged\ntraits: [splits_by_layers, flies]\n");
  setenv("ROOFCAST_CONFIGS", folder.path().c_str(), 1);
  const std::string message = message_of([] { (void)engine_traits("winged"); });
  unsetenv("ROOFCAST_CONFIGS");
  CHECK(has(message, "winged.yaml:2:"));
  CHECK(has(message, "unknown trait 'flies' (valid: splits_by_layers, chunks_when_told, static_batch_in_one_pass)"));
}
