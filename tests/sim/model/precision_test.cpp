#include "sim/model/precision.h"

#include "base/config_library.h"
#include "base/model_document.h"
#include "models.h"
#include "sim/model/recipes.h"
#include "sim/model/weights.h"
#include "tests/base/temporary_folder.h"

using namespace roofcast;

namespace {
Precision parsed(const ModelSpec& model, const std::string& text, bool* asked = nullptr) {
  bool named = false;
  const Precision p = parse_precision(model, parse_config_text(text, "precision"), named);
  if (asked != nullptr) *asked = named;
  return p;
}
Precision checkpoint(const std::string& quantization) {
  return from_text(kSmall + ", quantization_config: " + quantization + "}").precision;
}
}  // namespace

TEST_CASE("a Hugging Face id that ends in a format is the shipped model in that format") {
  const auto named = [](const std::string& id) {
    CAPTURE(id);
    return parse_model(load_document("models", id, {}));
  };
  const ModelSpec qwen = named("Qwen/Qwen3-32B-FP8");
  CHECK(qwen.name == "qwen3-32b");
  CHECK(qwen.precision.weights == Dtype::kFp8Block);
  CHECK(qwen.assumptions.back().find("'-FP8'") != std::string::npos);
  CHECK(named("Qwen3-32B-FP8").precision.weights == Dtype::kFp8Block);
  // Scales by row: fbgemm_fp8; compressed-tensors with channel and token
  CHECK(named("meta-llama/Llama-3.1-405B-Instruct-FP8").precision.weights == Dtype::kFp8);
  CHECK_FALSE(named("meta-llama/Llama-3.1-405B-Instruct-FP8").precision.static_activations);
  CHECK(named("zai-org/GLM-4.5-FP8").precision.weights == Dtype::kFp8);
  CHECK(named("RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8").precision.static_activations);
  CHECK_FALSE(named("RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8-dynamic").precision.static_activations);
  CHECK(named("nvidia/Llama-3.3-70B-Instruct-FP4").precision.weights == Dtype::kNvfp4);
  CHECK(named("nvidia/Llama-3.3-70B-Instruct-FP4").precision.kv_cache == Dtype::kFp8);
  CHECK(named("Qwen3-8B-NVFP4").precision.weights == Dtype::kNvfp4);
  CHECK(named("Qwen/Qwen3-32B-AWQ").precision.recipe == "awq");
  CHECK(named("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4").precision.recipe == "gptq");
  CHECK(named("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int8").precision.weights == Dtype::kInt8);
  CHECK(named("RedHatAI/Qwen3-8B-quantized.w8a8").precision.activations == Dtype::kInt8);
  CHECK(named("mlx-community/Qwen3-8B-4bit").precision.weights == Dtype::kInt4);
  CHECK_THROWS_WITH_AS(
      named("unsloth/Qwen3-32B-GGUF"),
      doctest::Contains("holds several formats: write 'model: qwen3-32b' and 'precision: gguf_q4_k_m'"), ConfigError);
  CHECK_THROWS_WITH_AS(named("Qwen/Qwen3-32B-XYZ"), doctest::Contains("nearest of those shipped: qwen/qwen3-32b"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(named("foo/bar-FP8"), doctest::Contains("download its config.json"), ConfigError);
}

TEST_CASE("a config named after a format that it lacks is reported as 16 bit") {
  const ModelSpec model = from_text(kSmall + ", _name_or_path: Small-FP8}"),
                  plain = from_text(kSmall + ", _name_or_path: Small}");
  CHECK(model.precision.weights == Dtype::kBf16);
  REQUIRE(!model.assumptions.empty());
  CHECK(model.assumptions.back() ==
        "its name ends in '-FP8', but it has no quantization_config: its weights have 16 bit");
  CHECK(plain.assumptions.empty());
}

TEST_CASE("a format sets the activations that engines use with it") {
  const ModelSpec model = from_text(kSmall + "}");
  CHECK(parsed(model, "{weights: fp8}").activations == Dtype::kFp8);
  CHECK(parsed(model, "{weights: fp8_block}").activations == Dtype::kFp8);
  // `precision: fp8` in a file and --weights or --kv-cache-dtype beside it
  CHECK(parsed(model, "{name: fp8, weights: int8}").weights == Dtype::kInt8);
  CHECK(parsed(model, "{name: fp8, weights: int8}").activations == Dtype::kBf16);
  CHECK(parsed(model, "{name: awq, kv_cache: fp8}").recipe == "awq");
  CHECK(parsed(model, "{weights: nvfp4}").activations == Dtype::kNvfp4);
  CHECK(parsed(model, "{weights: int4}").activations == Dtype::kBf16);
  CHECK(parsed(model, "{weights: int8, activations: int8}").activations == Dtype::kInt8);
  bool asked = false;
  CHECK(parsed(model, "{weights: fp8, kv_cache: fp8}", &asked).kv_cache == Dtype::kFp8);
  CHECK(!asked);
  parsed(model, "{weights: fp8, activations: bf16}", &asked);
  CHECK(asked);
  const Precision apart = parsed(model, "{weights: bf16, expert_weights: int4, group_size: 32}");
  CHECK(apart.expert_weights == Dtype::kInt4);
  CHECK(apart.attention_weights == Dtype::kBf16);
  CHECK(apart.weight_scales.group_size == 32);
}

TEST_CASE("fp8 is scaled as the model's published checkpoint of it") {
  const auto weights = [](const char* model, const char* text) {
    return parsed(parse_model(load_document("models", model, {})), text).weights;
  };
  for (const char* text : {"fp8", "{weights: fp8}", "{weights: fp8, kv_cache: fp8}"}) {
    CHECK(weights("qwen3-32b", text) == Dtype::kFp8Block);
    CHECK(weights("deepseek-v3", text) == Dtype::kFp8Block);  // its own format
    CHECK(weights("glm-5", text) == Dtype::kFp8Block);
    CHECK(weights("llama-3.1-70b", text) == Dtype::kFp8);
    CHECK(weights("qwen2.5-72b", text) == Dtype::kFp8);  // none is published
  }
  CHECK(weights("qwen3-32b", "fp8_tensor") == Dtype::kFp8);
  CHECK(weights("deepseek-v3", "{weights: FP8_tensor}") == Dtype::kFp8);
  CHECK(weights("RedHatAI/Qwen3-32B-FP8-dynamic", "{weights: fp8}") == Dtype::kFp8);  // told by its own checkpoint
  const ModelSpec experts = parse_model(load_document("models", "qwen3-30b-a3b", {}));
  CHECK(parsed(experts, "{expert_weights: fp8}").expert_weights == Dtype::kFp8Block);
  CHECK(parsed(experts, "{expert_weights: fp8_tensor}").expert_weights == Dtype::kFp8);
  CHECK(parsed(experts, "{weights: fp8}").activations == Dtype::kFp8);
}

TEST_CASE("recipes set several at once") {
  const ModelSpec model = from_text(kSmall + "}");
  const Precision awq = parsed(model, "{weights: awq}");
  CHECK(awq.recipe == "awq");
  CHECK(awq.weights == Dtype::kInt4);
  CHECK(awq.weight_scales.group_size == 128);
  CHECK(parsed(model, "{weights: smoothquant}").activations == Dtype::kInt8);
  CHECK(parsed(model, "{weights: llm_int8}").outlier_fraction == 0.001);
  CHECK(parsed(model, "{weights: bitnet}").weights == Dtype::kTernary);
  for (const Recipe& recipe : recipes()) {
    CAPTURE(recipe.name);
    CHECK(!recipe.help.empty());
    CHECK(parsed(model, std::string("{weights: ") + std::string(recipe.name) + "}").recipe == recipe.name);
  }
}

TEST_CASE("six-bit floats take 6 bits, in blocks of 32 a quarter more") {
  // 4096 x 4096 weights: 6 / 8 B each; MXFP6 8 bits more for every 32
  const ModelSpec model = from_text(kSmall + "}");
  CHECK(bytes_per_weight(WeightRole::kFeedForward, parsed(model, "{weights: fp6}")) == 0.75);
  CHECK(bytes_per_weight(WeightRole::kMixer, parsed(model, "{weights: mxfp6}")) == 0.78125);
  CHECK(parsed(model, "{weights: fp6}").activations == Dtype::kBf16);
  const ModelSpec checkpoint = from_text(kSmall + ", quantization_config: {quant_method: deepspeedfp, bits: 6}}");
  CHECK(bytes_per_weight(WeightRole::kMixer, checkpoint.precision) == 0.75);
}

TEST_CASE("unknown names and keys are refused with the nearest") {
  const ModelSpec model = from_text(kSmall + "}");
  const auto message = [&](const std::string& text) {
    try {
      parsed(model, text);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message("{weights: fp9}").find("unknown number format 'fp9'; nearest is 'fp8'") != std::string::npos);
  CHECK(message("{weights: awk}").find("nearest is 'awq'") != std::string::npos);
  CHECK(message("{wieghts: fp8}").find("unknown key 'wieghts'") != std::string::npos);
}

TEST_CASE("modelopt's hf_quant_config.json next to a config.json gives formats that the latter lacks") {
  const TemporaryFolder folder;
  const std::string quantized =
      R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}})";
  const auto precision_of = [&](const std::string& name, const std::string& rest) {
    return parse_model(parse_model_file(folder.write(name, kSmall + rest + "}"))).precision;
  };
  CHECK(precision_of("config.json", "").weights == Dtype::kBf16);
  folder.write("hf_quant_config.json", quantized);
  folder.write("other.hf_quant_config.json", quantized);
  for (const char* name : {"config.json", "other.json"}) {
    CAPTURE(name);
    const Precision p = precision_of(name, "");
    CHECK(p.weights == Dtype::kFp8);
    CHECK(p.kv_cache == Dtype::kFp8);
    CHECK(p.static_activations);
  }
  CHECK(precision_of("third.json", "").weights == Dtype::kBf16);
  // also where a scenario changes a key, and in what `import` writes
  const std::string path = folder.write("config.json", kSmall + "}");
  const ConfigTree changed = parse_config_text("{name: '" + path + "', num_hidden_layers: 1}", "scenario.yaml");
  CHECK(parse_model(resolve_named("models", changed)).precision.weights == Dtype::kFp8);
  const ConfigTree imported = parse_config_text(to_yaml(*parse_model_file(path)), "imported.yaml");
  CHECK(parse_model(imported).precision.weights == Dtype::kFp8);
  folder.write("own.hf_quant_config.json", "{");  // nobody asks
  CHECK(precision_of("own.json", ", quantization_config: {quant_method: awq}").weights == Dtype::kInt4);
  CHECK_THROWS_AS(precision_of("own.json", ""), ConfigError);
}

TEST_CASE("quantization_config of checkpoints") {
  const Precision block = checkpoint("{quant_method: fp8, activation_scheme: dynamic, weight_block_size: [128, 128]}");
  CHECK(block.weights == Dtype::kFp8Block);
  CHECK(block.activations == Dtype::kFp8);
  CHECK(!block.static_activations);
  CHECK(checkpoint("{quant_method: fp8, activation_scheme: static}").static_activations);

  const Precision tensors = checkpoint(
      "{quant_method: compressed-tensors, config_groups: {group_0: {weights: {num_bits: 4, type: int, group_size: 32, "
      "symmetric: true}, input_activations: null}}, ignore: [lm_head, 're:.*self_attn.*']}");
  CHECK(tensors.weights == Dtype::kInt4);
  CHECK(tensors.attention_weights == Dtype::kBf16);
  CHECK(tensors.weight_scales.group_size == 32);
  CHECK(tensors.activations == Dtype::kBf16);

  CHECK(checkpoint("{quant_method: gptq, bits: 4, group_size: 128}").weights == Dtype::kInt4);
  CHECK(checkpoint("{quant_method: awq, bits: 4, group_size: 64}").weight_scales.zero_point_bits == 4);
  CHECK(checkpoint("{quant_method: bitsandbytes, load_in_8bit: true}").outlier_fraction == 0.001);
  const Precision modelopt = checkpoint("{quant_method: modelopt, quant_algo: NVFP4, kv_cache_quant_algo: FP8}");
  CHECK(modelopt.weights == Dtype::kNvfp4);
  CHECK(modelopt.kv_cache == Dtype::kFp8);

  const Precision oss = shipped("gpt-oss-20b").precision;  // experts alone
  CHECK(oss.expert_weights == Dtype::kMxfp4);
  CHECK(oss.attention_weights == Dtype::kBf16);
  CHECK_THROWS_AS(checkpoint("{quant_method: magic}"), ConfigError);
}

TEST_CASE("formats that engines and libraries write under their own names") {
  const auto bits = [](const std::string& text) {
    const Precision p = checkpoint(text);
    return 8.0 * bytes_per_weight(WeightRole::kFeedForward, p);
  };
  CHECK(bits("{quant_method: gptq_marlin, bits: 4, group_size: 128, sym: true}") == doctest::Approx(4 + 20.0 / 128));
  CHECK(bits("{quant_method: auto-round, bits: 4, group_size: 128}") == doctest::Approx(4 + 20.0 / 128));
  CHECK(bits("{quant_method: marlin, bits: 4, group_size: 128}") == doctest::Approx(4 + 16.0 / 128));
  CHECK(bits("{quant_method: gptq, bits: 4, group_size: -1}") == doctest::Approx(4));
  CHECK(bits("{load_in_4bit: true, bnb_4bit_use_double_quant: false}") == doctest::Approx(4.5));
  CHECK(bits("{load_in_4bit: true, bnb_4bit_use_double_quant: true}") == doctest::Approx(4.127));
  CHECK(bits("{quant_method: hqq, quant_config: {weight_quant_params: {nbits: 4, group_size: 64}}}") ==
        doctest::Approx(4.5));
  CHECK(bits("{quant_method: quanto, weights: int8}") == doctest::Approx(8));
  CHECK(bits("{quant_method: torchao, quant_type: int4_weight_only, quant_type_kwargs: {group_size: 32}}") ==
        doctest::Approx(4.5));
  CHECK(
      bits("{quant_method: torchao, quant_type: {default: {_type: Int4WeightOnlyConfig, _data: {group_size: 64}}}}") ==
      doctest::Approx(4.25));
  CHECK(bits("{quant_method: exl2, bits: 4.25, head_bits: 6}") == doctest::Approx(4.25));
  CHECK(bits("{quant_method: aqlm, in_group_size: 8, nbits_per_codebook: 16, num_codebooks: 1}") == doctest::Approx(2));
  CHECK(bits("{quantization: {quant_algo: FP8}}") == doctest::Approx(8));
  CHECK(bits("{quant_algo: W4A16_AWQ, quant_method: modelopt}") == doctest::Approx(4 + 16.0 / 128));
  CHECK(bits("{quant_method: deepspeedfp, bits: 8}") == doctest::Approx(8));
  CHECK(checkpoint("{quant_method: deepspeedfp, bits: 8}").activations == Dtype::kBf16);
  CHECK(checkpoint("{quant_method: fp_quant, forward_dtype: nvfp4}").weights == Dtype::kNvfp4);
  CHECK(checkpoint("{quant_method: fp_quant}").weights == Dtype::kMxfp4);
  CHECK(checkpoint("{quant_method: bitnet}").weights == Dtype::kTernary);
  CHECK(checkpoint("{quant_method: bitnet}").activations == Dtype::kInt8);
  CHECK(bits("{}") == doctest::Approx(16));
  const Precision quark = checkpoint(
      "{quant_method: quark, global_quant_config: {weight: {dtype: fp8_e4m3}, input_tensors: {dtype: fp8_e4m3}}}");
  CHECK(quark.activations == Dtype::kFp8);
  const Precision quark_fp4 = checkpoint(
      "{quant_method: quark, global_quant_config: {weight: {dtype: fp4, group_size: 32}, "
      "input_tensors: {dtype: fp4, group_size: 32}}}");
  CHECK(quark_fp4.weights == Dtype::kMxfp4);
  CHECK(quark_fp4.activations == Dtype::kMxfp4);
  const std::string dynamic = "{quant_method: torchao, quant_type: int8_dynamic_activation_int8_weight}";
  CHECK(checkpoint(dynamic).activations == Dtype::kInt8);
}

TEST_CASE("torchao's names say the activations' format first, then the weights'") {
  const auto expect = [](const std::string& type, Dtype weights, Dtype activations) {
    CAPTURE(type);
    const Precision p = checkpoint("{quant_method: torchao, quant_type: " + type + "}");
    CHECK(p.weights == weights);
    CHECK(p.activations == activations);
  };
  expect("float8_dynamic_activation_int4_weight", Dtype::kInt4, Dtype::kFp8);
  expect("int8_dynamic_activation_int4_weight", Dtype::kInt4, Dtype::kInt8);
  expect("{default: {_type: Float8DynamicActivationInt4WeightConfig}}", Dtype::kInt4, Dtype::kFp8);
  expect("float8_dynamic_activation_float8_weight", Dtype::kFp8, Dtype::kFp8);
  expect("float8_weight_only", Dtype::kFp8, Dtype::kBf16);
  expect("int8_weight_only", Dtype::kInt8, Dtype::kBf16);
  CHECK_THROWS_AS(checkpoint("{quant_method: torchao, quant_type: int8_dynamic_activation_intx_weight}"), ConfigError);
}

TEST_CASE("bitsandbytes that loads in neither 8 nor 4 bit quantizes nothing") {
  const Precision p = checkpoint("{quant_method: bitsandbytes, load_in_8bit: false, load_in_4bit: false}");
  CHECK(p.weights == Dtype::kBf16);
  CHECK(p.outlier_fraction == 0);
}

TEST_CASE("several config_groups in one format are reported") {
  const std::string eight = "{weights: {num_bits: 8, type: float}}", four = "{weights: {num_bits: 4, type: int}}";
  const auto said = [](const std::string& groups) {
    const std::string method = ", quantization_config: {quant_method: compressed-tensors, config_groups: ";
    return from_text(kSmall + method + groups + "}}").assumptions;
  };
  CHECK(said("{group_0: " + eight + "}").empty());
  const auto two = said("{group_0: " + eight + ", group_1: " + four + "}");
  REQUIRE(two.size() == 1);
  CHECK(two[0].find("2 config_groups are taken in one format, fp8") != std::string::npos);
}

TEST_CASE("codebooks of less than one bit are refused") {
  CHECK_THROWS_AS(checkpoint("{quant_method: aqlm, in_group_size: 8, nbits_per_codebook: -16}"), ConfigError);
  CHECK_THROWS_AS(checkpoint("{quant_method: aqlm, in_group_size: 8, num_codebooks: -1}"), ConfigError);
}

TEST_CASE("groups that do not divide a matrix's inputs are refused with their location") {
  const auto message = [](const std::string& text) {
    try {
      checkpoint(text);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message("{quant_method: gptq, bits: 4, group_size: 100}")
            .find("groups of 100 weights do not divide the 256 "
                  "inputs of qkv_proj") != std::string::npos);
  CHECK(message("{quant_method: gptq, bits: 4, group_size: 64}").empty());
  const ModelSpec model = from_text(kSmall + "}");  // 512 wide feed-forward: 64 inputs of down_proj at tp 8
  const Precision awq = parsed(model, "awq");
  CHECK_NOTHROW(check_groups(model, awq, {}, {}));
  CHECK_NOTHROW(check_groups(model, parsed(model, "gguf_q4_k_m"), {.tp = 8}, {}));
  CHECK_THROWS_WITH_AS(check_groups(model, awq, {.tp = 8}, {}), doctest::Contains("on one GPU"), ConfigError);
}
