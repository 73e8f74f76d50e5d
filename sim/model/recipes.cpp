#include "sim/model/recipes.h"

#include <array>

#include "base/config_reader.h"
#include "base/text.h"
#include "sim/model/stored_format.h"

namespace roofcast {
namespace {

Scales grouped(double group, double zero_point_bits) {
  return {.group_size = group, .bits = 16.0, .zero_point_bits = zero_point_bits};
}

void weight_only(Precision& p, Dtype dtype, Scales scales) {
  set_weights(p, dtype);
  p.weight_scales = scales;
}

/// AWQ (Lin et al. 2023): 4 bit in groups of 128 with a 16-bit scale and a 4-bit zero point.
void set_awq(Precision& p) { weight_only(p, Dtype::kInt4, grouped(128, 4)); }
/// GPTQ (Frantar et al. 2022), the common 4-bit form with groups of 128.
void set_gptq(Precision& p) { weight_only(p, Dtype::kInt4, grouped(128, 4)); }
/// SmoothQuant (Xiao et al. 2022): 8-bit weights and activations; the smoothing folds into the norms.
void set_smoothquant(Precision& p) {
  set_weights(p, Dtype::kInt8);
  p.activations = Dtype::kInt8;
}
/// LLM.int8() (Dettmers et al. 2022): 0.1 % of the columns are outliers and stay in 16 bit (section 3.2).
void set_llm_int8(Precision& p) {
  set_smoothquant(p);
  p.outlier_fraction = 0.001;
}
/// llama.cpp's formats by mean bits per weight, including scales and minima: of the blocks in ggml/src/ggml-common.h,
/// or of the mixture without head and embedding, in tools/quantize/README.md (Llama 3.1 8B: 6.98 B weights in
/// layers, 1.05 B in head and embedding). The head is Q6_K (6.5625 bit), the embedding has the format itself; `head` is
/// their mean.
void by_mean_bits(Precision& p, Dtype dtype, double layers, double head) {
  constexpr double kBlock = 256;
  const auto rest = [&](double bits) {
    return Scales{.group_size = kBlock, .bits = (bits - element_bits(dtype)) * kBlock};
  };
  weight_only(p, dtype, rest(layers));
  p.head = dtype;
  p.head_scales = rest(head);
}
void set_gguf_q2_k(Precision& p) { by_mean_bits(p, Dtype::kInt2, 2.94, 4.59); }
void set_gguf_iq2_xs(Precision& p) { by_mean_bits(p, Dtype::kInt2, 2.35, 4.18); }
void set_gguf_q3_k_m(Precision& p) { by_mean_bits(p, Dtype::kInt3, 3.84, 5.00); }
void set_gguf_iq3_m(Precision& p) { by_mean_bits(p, Dtype::kInt3, 3.58, 5.00); }
void set_gguf_iq4_xs(Precision& p) { by_mean_bits(p, Dtype::kInt4, 4.32, 5.41); }
/// Q4_0: blocks of 32 with a 16-bit scale.
void set_gguf_q4_0(Precision& p) { by_mean_bits(p, Dtype::kInt4, 4.50, 5.53); }
/// Q4_K_M: Q4_K (4.5 bit), except half of the value and down projections (about 14.5 % of a layer), which are Q6_K.
void set_gguf_q4_k_m(Precision& p) { by_mean_bits(p, Dtype::kInt4, 4.80, 5.53); }
void set_gguf_q5_k_m(Precision& p) { by_mean_bits(p, Dtype::kInt4, 5.65, 6.03); }
void set_gguf_q6_k(Precision& p) { by_mean_bits(p, Dtype::kInt4, 6.5625, 6.5625); }
/// 8 bit with a 16-bit scale every 32 values, head and embedding too.
void set_gguf_q8_0(Precision& p) { by_mean_bits(p, Dtype::kInt8, 8.5, 8.5); }
/// mlx-lm: groups of 64 with a 16-bit scale and bias, head and embedding too (mlx_lm/utils.py, quantize_model).
void set_mlx_4bit(Precision& p) { by_mean_bits(p, Dtype::kInt4, 4.5, 4.5); }
void set_mlx_8bit(Precision& p) { by_mean_bits(p, Dtype::kInt8, 8.5, 8.5); }
/// ExLlama's 4.0 bit per weight, its head of 6 bit (exllamav3, doc/convert.md).
void set_exl_4bpw(Precision& p) {
  weight_only(p, Dtype::kInt4, {});
  p.head = Dtype::kInt4;
  p.head_scales = {.group_size = 256, .bits = 7.0 * 256};  // embedding of 16 bit, in host memory: 11 bit on average
}
/// FP6-LLM (Xia et al. 2024, arXiv:2401.14112): e3m2 weights with a scale per output, dequantized to 16 bit in the
/// kernel, which reads 2 and 4 bits of a weight separately. Modelled as a 4-bit weight with 2 extra bits.
void set_fp6(Precision& p) { weight_only(p, Dtype::kInt4, {.group_size = 1, .bits = 2}); }
/// MXFP6 (OCP Microscaling Formats v1.0, table 1): 6 bits, and an e8m0 scale per 32: 6.25 bits per weight.
void set_mxfp6(Precision& p) { weight_only(p, Dtype::kInt4, {.group_size = 32, .bits = 2 * 32.0 + 8.0}); }
/// BitNet b1.58 (Ma et al. 2024): ternary weights, 8-bit activations.
void set_bitnet(Precision& p) {
  set_weights(p, Dtype::kTernary);
  p.activations = Dtype::kInt8;
}
/// QLoRA's NF4 (Dettmers et al. 2023): 4 bit in blocks of 64 with 8-bit scales, of which 256 share a 32-bit one: 0.127
/// bit per weight.
void set_nf4(Precision& p) { weight_only(p, Dtype::kInt4, {.group_size = 64, .bits = 8.0 + 32.0 / 256.0}); }
/// HQQ and the like at 3 and 2 bit, groups of 64 and 16.
void set_hqq3(Precision& p) { weight_only(p, Dtype::kInt3, grouped(64, 16)); }
void set_hqq2(Precision& p) { weight_only(p, Dtype::kInt2, grouped(16, 16)); }
/// QServe (Lin et al. 2024): 4-bit weights in groups of 128, 8-bit activations, 4-bit cache.
void set_qserve(Precision& p) {
  set_awq(p);
  p.activations = Dtype::kInt8;
  p.kv_cache = Dtype::kInt4;
}

constexpr std::array kRecipes{
    Recipe{"awq", "int4 weights in groups of 128 with zero points, 16-bit products", set_awq},
    Recipe{"gptq", "int4 weights in groups of 128, 16-bit products", set_gptq},
    Recipe{"smoothquant", "int8 weights and activations (W8A8)", set_smoothquant},
    Recipe{"llm_int8", "int8 with outlier columns in 16 bit (bitsandbytes)", set_llm_int8},
    Recipe{"nf4", "4-bit normal floats in blocks of 64 (bitsandbytes)", set_nf4},
    Recipe{"gguf_q2_k", "llama.cpp's Q2_K, 2.9 bit per weight of a layer", set_gguf_q2_k},
    Recipe{"gguf_iq2_xs", "llama.cpp's IQ2_XS, 2.35 bit", set_gguf_iq2_xs},
    Recipe{"gguf_q3_k_m", "llama.cpp's Q3_K_M, 3.8 bit", set_gguf_q3_k_m},
    Recipe{"gguf_iq3_m", "llama.cpp's IQ3_M, 3.6 bit", set_gguf_iq3_m},
    Recipe{"gguf_iq4_xs", "llama.cpp's IQ4_XS, 4.3 bit", set_gguf_iq4_xs},
    Recipe{"gguf_q4_0", "llama.cpp's Q4_0, 4.5 bit", set_gguf_q4_0},
    Recipe{"gguf_q4_k_m", "llama.cpp's mixture of Q4_K and Q6_K, 4.8 bit", set_gguf_q4_k_m},
    Recipe{"gguf_q5_k_m", "llama.cpp's Q5_K_M, 5.65 bit", set_gguf_q5_k_m},
    Recipe{"gguf_q6_k", "llama.cpp's Q6_K, 6.56 bit", set_gguf_q6_k},
    Recipe{"gguf_q8_0", "llama.cpp's 8 bit in blocks of 32, 8.5 bit", set_gguf_q8_0},
    Recipe{"mlx_4bit", "mlx-lm's 4 bit in groups of 64, 4.5 bit per weight", set_mlx_4bit},
    Recipe{"mlx_8bit", "mlx-lm's 8 bit in groups of 64, 8.5 bit per weight", set_mlx_8bit},
    Recipe{"exl_4bpw", "ExLlama's EXL2 and EXL3 at 4.0 bit per weight", set_exl_4bpw},
    Recipe{"fp6", "6-bit float weights, 16-bit products (FP6-LLM)", set_fp6},
    Recipe{"mxfp6", "6-bit float weights in blocks of 32, 6.25 bit, 16-bit products", set_mxfp6},
    Recipe{"bitnet", "ternary weights (1.58 bit), int8 activations", set_bitnet},
    Recipe{"qserve", "int4 weights, int8 activations, int4 cache (W4A8KV4)", set_qserve},
    Recipe{"hqq3", "int3 weights in groups of 64", set_hqq3},
    Recipe{"hqq2", "int2 weights in groups of 16", set_hqq2},
};

const Recipe* find_recipe(std::string_view name) {
  for (const Recipe& recipe : kRecipes) {
    if (recipe.name == name) return &recipe;
  }
  return nullptr;
}

/// Throws ConfigError with the valid names of both kinds.
[[noreturn]] void fail_name(std::string_view word, const SourceLocation& location) {
  std::vector<std::string> valid(dtype_names().begin(), dtype_names().end());
  valid.emplace_back(kTensorFp8);
  for (const Recipe& recipe : kRecipes) valid.emplace_back(recipe.name);
  const std::string nearest = nearest_name(word, valid);
  throw ConfigError(location, "unknown number format '" + std::string(word) + "'" +
                                  (nearest.empty() ? "" : "; nearest is '" + nearest + "'") +
                                  " (valid: " + join(valid, ", ") + ")");
}

void set_named(Precision& p, std::string_view word, const SourceLocation& location, const ModelSpec& model) {
  const std::string name = lower(trim(word));
  if (name == kTensorFp8) return set_weights(p, Dtype::kFp8);
  if (const Recipe* recipe = find_recipe(name)) {
    p.weight_scales = {};
    recipe->set(p);
    p.recipe = name;
    return;
  }
  Dtype dtype{};
  try {
    dtype = parse_dtype(name, location);
  } catch (const ConfigError&) {
    fail_name(word, location);
  }
  set_weights(p, stored_format(model, dtype));
}

/// Reads the format of a part of the model's weights.
Dtype read_weights(ConfigReader& in, std::string_view key, Dtype default_value, const ModelSpec& model) {
  if (!in.has(key)) return default_value;
  const std::string word = lower(in.text(key));
  if (word == kTensorFp8) return Dtype::kFp8;
  return stored_format(model, parse_dtype(word, in.location_of(key)));
}

Dtype read_dtype(ConfigReader& in, std::string_view key, Dtype default_value) {
  if (!in.has(key)) return default_value;
  const SourceLocation location = in.location_of(key);
  return parse_dtype(in.text(key), location);
}

Precision parse_map(const ModelSpec& model, ConfigReader in, bool& asked) {
  Precision p = model.precision;
  for (std::string_view key : {"name", "weights", "recipe"}) {  // a name, and what --weights and the like change of it
    if (!in.has(key)) continue;
    const SourceLocation location = in.location_of(key);
    set_named(p, in.text(key), location, model);
  }
  asked = in.has("activations");
  p.activations = read_dtype(in, "activations", p.activations);
  p.static_activations = in.boolean("static_activations", p.static_activations);
  p.kv_cache = read_dtype(in, "kv_cache", p.kv_cache);
  p.attention_weights = read_weights(in, "attention_weights", p.attention_weights, model);
  p.expert_weights = read_weights(in, "expert_weights", p.expert_weights, model);
  p.head = read_dtype(in, "head", p.head);
  if (in.has("group_size")) {
    const double zero = p.weight_scales.zero_point_bits;
    p.weight_scales = grouped(in.number("group_size", kAtLeastOne), zero);
  }
  if (in.has("outlier_fraction")) p.outlier_fraction = in.number("outlier_fraction", kFraction);
  in.finish();
  return p;
}

}  // namespace

std::span<const Recipe> recipes() { return kRecipes; }

void set_weights(Precision& p, Dtype dtype) {
  p.weights = p.attention_weights = p.expert_weights = dtype;
  p.weight_scales = {};
  p.head_scales = {};
  p.outlier_fraction = 0;
  p.static_activations = false;
  p.recipe.clear();
  switch (dtype) {
    case Dtype::kFp8:
    case Dtype::kFp8Block:
      p.activations = Dtype::kFp8;
      break;
    case Dtype::kNvfp4:
      p.activations = Dtype::kNvfp4;
      break;
    case Dtype::kFp32:
    case Dtype::kTf32:
    case Dtype::kFp16:
      p.activations = p.other = p.head = dtype;
      break;
    case Dtype::kBf16:
    case Dtype::kMxfp4:
    case Dtype::kInt8:
    case Dtype::kInt4:
    case Dtype::kInt3:
    case Dtype::kInt2:
    case Dtype::kTernary:
      p.activations = Dtype::kBf16;
      break;
  }
}

Precision parse_precision(const ModelSpec& model, const ConfigTree& tree, bool& asked) {
  asked = false;
  if (tree && tree->kind == ConfigNode::Kind::kScalar) {
    Precision p = model.precision;
    set_named(p, tree->scalar, tree->location, model);
    return p;
  }
  return parse_map(model, ConfigReader(tree, "a precision"), asked);
}

void choose_activations(Precision& p, const GpuSpec& gpu) {
  if (p.expert_weights == Dtype::kMxfp4 && p.activations == Dtype::kBf16 &&
      gpu.peak(Dtype::kMxfp4) > FlopsPerSecond(0)) {
    p.activations = Dtype::kFp8;
  }
  for (Dtype weights : {p.weights, p.attention_weights, p.expert_weights}) {
    if (gpu.compute_dtype(weights, p.activations)) continue;
    p.activations = gpu.peak(Dtype::kBf16) > FlopsPerSecond(0) ? Dtype::kBf16 : Dtype::kFp16;
  }
}

}  // namespace roofcast
