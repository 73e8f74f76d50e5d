// quantization_config of a checkpoint.

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <regex>

#include <fmt/format.h>

#include "base/checkpoint_name.h"
#include "base/text.h"
#include "sim/model/hf_config.h"
#include "sim/model/recipes.h"
#include "sim/model/weights.h"

namespace roofcast {
namespace {

/// True when `pattern` (a regular expression after "re:", a glob with *, or a module's name or part of its path)
/// covers `module`. Part of a path means whole components: "gate" is not "gate_proj".
bool covers(const std::string& pattern, const std::string& module) {
  if (pattern.starts_with("re:") || pattern.find('*') != std::string::npos) {
    std::string expression = pattern.starts_with("re:") ? pattern.substr(3) : std::string();
    if (expression.empty()) {
      for (char c : pattern) expression += c == '*' ? ".*" : (c == '.' ? "\\." : std::string(1, c));
      expression += "(\\..*)?";
    }
    try {
      return std::regex_match(module, std::regex(expression));
    } catch (const std::regex_error&) {
      return false;  // unsupported pattern: covers nothing
    }
  }
  std::string name = pattern;
  for (std::string_view prefix : {"language_model.", "model.language_model.", "model."}) {
    if (name.starts_with(prefix)) name = name.substr(prefix.size());
  }
  const std::string framed = "." + module + ".";
  return !name.empty() && framed.find("." + name + ".") != std::string::npos;
}

/// Whether the checkpoint leaves this module of the middle layers unquantized.
bool left_alone(const std::vector<std::string>& patterns, int layers, std::initializer_list<std::string_view> modules) {
  for (std::string_view module : modules) {
    int covered = 0;
    for (int i : {layers / 2, std::min(layers / 2 + 1, layers - 1)}) {
      const std::string name = fmt::format("model.layers.{}.{}", i, module);
      for (const std::string& pattern : patterns) {
        if (covers(pattern, name)) {
          ++covered;
          break;
        }
      }
    }
    if (covered == 2) return true;
  }
  return false;
}

Dtype float_of(double bits, double group) {
  if (bits == 8) return Dtype::kFp8;
  return group == 16 ? Dtype::kNvfp4 : Dtype::kMxfp4;
}

Dtype integer_of(double bits, ConfigReader& in) {
  if (bits == 8) return Dtype::kInt8;
  if (bits == 4) return Dtype::kInt4;
  if (bits == 3) return Dtype::kInt3;
  if (bits == 2) return Dtype::kInt2;
  in.fail("num_bits", fmt::format("integers of {} bits are not known", bits));
}

/// Number types of compressed-tensors (quantization/quant_args.py, QuantizationType and QuantizationStrategy).
constexpr std::array<std::string_view, 2> kNumbers{"int", "float"};
constexpr std::array<std::string_view, 7> kStrategies{"tensor",       "block",     "channel", "group",
                                                      "tensor_group", "attn_head", "token"};

/// compressed-tensors and modelopt: {config_groups: {group_0: {weights: {...}, input_activations: {...}}}}.
void read_groups(Precision& p, ConfigReader& in) {
  auto groups = in.optional_child("config_groups");
  if (!groups || groups->keys().empty()) return;
  ConfigReader group = groups->child(groups->keys().front());
  auto weights = group.optional_child("weights");
  if (!weights) return;
  const double bits = weights->number("num_bits", 8);
  const double size = weights->number("group_size", 0);
  const bool floating = weights->choice("type", kNumbers, 0) == 1;
  const bool blocks = weights->choice("strategy", kStrategies, 0) == 1;
  const Dtype dtype = floating ? (blocks ? Dtype::kFp8Block : float_of(bits, size)) : integer_of(bits, *weights);
  set_weights(p, dtype);
  if (!floating && size > 0) {
    p.weight_scales = {
        .group_size = size, .bits = 16.0, .zero_point_bits = weights->boolean("symmetric", true) ? 0.0 : bits};
  }
  p.activations = Dtype::kBf16;
  if (auto inputs = group.optional_child("input_activations")) {
    const double input_bits = inputs->number("num_bits", 8);
    p.activations = inputs->choice("type", kNumbers, 0) == 1 ? (input_bits == 8 ? Dtype::kFp8 : dtype) : Dtype::kInt8;
    const ConfigTree dynamic = inputs->tree("dynamic");
    p.static_activations = dynamic && dynamic->scalar == "false";
  }
}

/// modelopt: {quant_algo: FP8 | NVFP4 | W4A16_AWQ ..., kv_cache_scheme | kv_cache_quant_algo}.
void read_modelopt(Precision& p, ConfigReader& in) {
  const std::string algorithm = in.text("quant_algo", "");
  if (algorithm == "FP8") {
    set_weights(p, Dtype::kFp8);
    p.static_activations = true;
  } else if (algorithm == "NVFP4") {
    set_weights(p, Dtype::kNvfp4);  // its block scales are computed at run time
  } else if (algorithm.find("AWQ") != std::string::npos) {
    set_weights(p, Dtype::kInt4);
    p.weight_scales = {.group_size = 128, .bits = 16.0};
  } else {
    read_groups(p, in);
  }
}

void read_cache_format(Precision& p, ConfigReader& in) {
  for (std::string_view key : {"kv_cache_scheme", "kv_cache_quant_algo"}) {
    const ConfigTree scheme = in.tree(key);
    if (!scheme || scheme->kind == ConfigNode::Kind::kNull) continue;
    if (scheme->kind == ConfigNode::Kind::kMap || scheme->scalar == "FP8") p.kv_cache = Dtype::kFp8;
    if (scheme->scalar == "NVFP4") p.kv_cache = Dtype::kNvfp4;
  }
}

/// GPTQ's files hold packed zero points even where they are symmetric, as AWQ's do.
void read_integers(Precision& p, ConfigReader& in, bool zero_points) {
  const double bits = in.number(in.has("bits") ? "bits" : "w_bit", 4);
  set_weights(p, integer_of(bits, in));
  const double size = in.number(in.has("group_size") ? "group_size" : "q_group_size", 128);
  p.weight_scales = {.group_size = size > 0 ? size : 0.0, .bits = 16.0, .zero_point_bits = zero_points ? bits : 0.0};
}

void take_recipe(Precision& p, std::string_view name) {
  for (const Recipe& recipe : recipes()) {
    if (recipe.name == name) recipe.set(p);
  }
}

/// Scales of a block of 64: 8 bit with a second quantization, else 32 (Dettmers et al. 2023, section 3). Neither
/// load_in_4bit nor load_in_8bit: nothing is quantized.
void read_bitsandbytes(Precision& p, ConfigReader& in) {
  const bool four = in.boolean("load_in_4bit", false);
  if (!in.boolean("load_in_8bit", false) && !four) return;
  take_recipe(p, four ? "nf4" : "llm_int8");
  if (four && !in.boolean("bnb_4bit_use_double_quant", false)) p.weight_scales = {.group_size = 64, .bits = 32.0};
}

/// {quant_config: {weight_quant_params: {nbits, group_size}}}; scale and zero point of 16 bit each.
void read_hqq(Precision& p, ConfigReader& in) {
  ConfigReader weights = in.child("quant_config").child("weight_quant_params");
  set_weights(p, integer_of(weights.number("nbits", 4), weights));
  p.weight_scales = {.group_size = weights.number("group_size", 64), .bits = 16.0, .zero_point_bits = 16.0};
}

/// ExLlama: any mean number of bits per weight, such as 3.5 or 4.25; the fractional part is counted as scales.
void read_exllama(Precision& p, ConfigReader& in) {
  const auto whole = [&](double bits) { return bits >= 8 ? 8.0 : bits >= 4 ? 4.0 : bits >= 3 ? 3.0 : 2.0; };
  const auto rest = [&](double bits) { return Scales{.group_size = 32, .bits = (bits - whole(bits)) * 32}; };
  const double bits = in.number("bits", Range{2, 16});
  set_weights(p, integer_of(whole(bits), in));
  p.weight_scales = rest(bits);
  if (!in.has("head_bits")) return;
  const double head = in.number("head_bits", Range{2, 16});
  p.head = integer_of(whole(head), in);
  p.head_scales = rest(head);
}

/// The format that a word names; nullopt where it names none.
std::optional<Dtype> format_in(std::string_view word, double group) {
  const auto says = [&](std::string_view part) { return word.find(part) != std::string_view::npos; };
  if (says("fp8") || says("float8")) return Dtype::kFp8;
  if (says("fp4") || says("float4")) return float_of(4, group);
  if (says("int8")) return Dtype::kInt8;
  if (says("int4")) return Dtype::kInt4;
  if (says("int2")) return Dtype::kInt2;
  return std::nullopt;
}

/// A format from the words in its name: quanto's "int8", torchao's "int8_dynamic_activation_int4_weight" (the part
/// before "activation" is the activation format, the rest the weight format) or "Int4WeightOnlyConfig", quark's
/// "fp8_e4m3".
void set_worded(Precision& p, ConfigReader& in, std::string_view key, const std::string& name, double group) {
  const std::string word = lower(name);
  const auto says = [&](std::string_view part) { return word.find(part) != std::string::npos; };
  const std::size_t split = word.find("activation");
  const bool both = split != std::string::npos;
  const std::string_view after = both ? std::string_view(word).substr(split) : std::string_view(word);
  const auto weights = format_in(after, group);
  const auto activations = both ? format_in(std::string_view(word).substr(0, split), group) : std::nullopt;
  if (!weights || (both && !activations)) {
    in.fail(key, fmt::format("'{}' is not known (known words: fp8, fp4, int8, int4, int2)", name));
  }
  set_weights(p, *weights);
  if (*weights == Dtype::kInt4 || *weights == Dtype::kInt2) {
    p.weight_scales = {.group_size = group > 0 ? group : 128.0, .bits = 16.0};
  }
  if (activations) {
    p.activations = *activations;
  } else if (says("weight_only") || says("weightonly")) {
    p.activations = Dtype::kBf16;
  }
}

void read_torchao(Precision& p, ConfigReader& in) {
  double group = 0;
  if (auto arguments = in.optional_child("quant_type_kwargs")) group = arguments->number("group_size", 0);
  const ConfigTree type = in.tree("quant_type");
  if (type && type->kind == ConfigNode::Kind::kMap) {  // {default: {_type: Int4WeightOnlyConfig, _data: {group_size}}}
    ConfigReader named = in.child("quant_type").child("default");
    if (auto data = named.optional_child("_data")) group = data->number("group_size", group);
    set_worded(p, named, "_type", named.text("_type"), group);
    return;
  }
  set_worded(p, in, "quant_type", in.text("quant_type"), group);
}

void read_quark(Precision& p, ConfigReader& in) {
  ConfigReader global = in.child("global_quant_config");
  ConfigReader weight = global.child("weight");
  set_worded(p, weight, "dtype", weight.text("dtype"), weight.number("group_size", 0));
  auto inputs = global.optional_child("input_tensors");
  if (!inputs) {
    p.activations = Dtype::kBf16;
    return;
  }
  const std::string name = inputs->text("dtype");
  const auto format = format_in(lower(name), inputs->number("group_size", 0));
  if (!format) inputs->fail("dtype", fmt::format("'{}' is not known (known words: fp8, fp4, int8, int4, int2)", name));
  p.activations = *format;
}

/// AQLM: codebooks of 2^nbits entries stand for groups of inputs.
void read_codebooks(Precision& p, ConfigReader& in) {
  const double group = in.number("in_group_size", 8, kAtLeastOne);
  const double bits = in.number("nbits_per_codebook", 16, kAtLeastOne) * in.number("num_codebooks", 1, kAtLeastOne);
  set_weights(p, Dtype::kInt2);
  p.weight_scales = {.group_size = group, .bits = std::max(0.0, bits - 2.0 * group)};
}

/// How each quant_method of config.json is read: the names that a message quotes.
struct QuantMethod {
  std::string_view name;
  void (*read)(Precision&, ConfigReader&);
};
void read_fp8(Precision& p, ConfigReader& in) {
  constexpr std::array<std::string_view, 2> kSchemes{"dynamic", "static"};
  const bool blocks = in.has("weight_block_size");
  if (blocks && in.numbers("weight_block_size") != std::vector<double>{128, 128})
    in.fail("weight_block_size", "block fp8 is priced with scales of blocks of [128, 128]");
  set_weights(p, blocks ? Dtype::kFp8Block : Dtype::kFp8);
  p.static_activations = in.choice("activation_scheme", kSchemes, 0) == 1;
}
void read_awq(Precision& p, ConfigReader& in) {
  read_integers(p, in, in.boolean("zero_point", true));
  p.recipe = "awq";
}
void read_gptq(Precision& p, ConfigReader& in) {
  read_integers(p, in, true);
  p.recipe = "gptq";
}
void read_marlin(Precision& p, ConfigReader& in) { read_integers(p, in, false); }
void read_mxfp4(Precision& p, ConfigReader&) { set_weights(p, Dtype::kMxfp4); }
void read_fp_quant(Precision& p, ConfigReader& in) {
  set_weights(p, in.text("forward_dtype", "mxfp4") == "nvfp4" ? Dtype::kNvfp4 : Dtype::kMxfp4);
}
void read_eight_bit(Precision& p, ConfigReader&) { set_weights(p, Dtype::kInt8); }
void read_quanto(Precision& p, ConfigReader& in) { set_worded(p, in, "weights", in.text("weights", "int8"), 128); }
void read_bitnet(Precision& p, ConfigReader&) {
  set_weights(p, Dtype::kTernary);
  p.activations = Dtype::kInt8;
}
/// FP6 and FP8 weights of DeepSpeed (vllm/model_executor/layers/quantization/deepspeedfp.py).
void read_deepspeed_fp(Precision& p, ConfigReader& in) {
  const double bits = in.number("bits", 8);
  if (bits != 6 && bits != 8) in.fail("bits", fmt::format("must be 6 or 8, got {}", bits));
  if (bits == 6) return take_recipe(p, "fp6");
  set_weights(p, Dtype::kFp8);
  p.activations = Dtype::kBf16;
}
constexpr std::array kQuantMethods{
    QuantMethod{"deepspeedfp", read_deepspeed_fp},
    QuantMethod{"fp8", read_fp8},
    QuantMethod{"fbgemm_fp8", read_fp8},
    QuantMethod{"compressed-tensors", read_groups},
    QuantMethod{"modelopt", read_modelopt},
    QuantMethod{"modelopt_fp4", read_modelopt},
    QuantMethod{"mxfp4", read_mxfp4},
    QuantMethod{"fp_quant", read_fp_quant},
    QuantMethod{"awq", read_awq},
    QuantMethod{"awq_marlin", read_awq},
    QuantMethod{"gptq", read_gptq},
    QuantMethod{"gptq_marlin", read_gptq},
    QuantMethod{"auto-round", read_gptq},
    QuantMethod{"intel/auto-round", read_gptq},
    QuantMethod{"marlin", read_marlin},
    QuantMethod{"bitsandbytes", read_bitsandbytes},
    QuantMethod{"hqq", read_hqq},
    QuantMethod{"quanto", read_quanto},
    QuantMethod{"eetq", read_eight_bit},
    QuantMethod{"torchao", read_torchao},
    QuantMethod{"quark", read_quark},
    QuantMethod{"exl2", read_exllama},
    QuantMethod{"exl3", read_exllama},
    QuantMethod{"aqlm", read_codebooks},
    QuantMethod{"bitnet", read_bitnet},
};

/// Older files omit quant_method; other keys reveal it.
std::string method_of(ConfigReader& in) {
  if (in.has("quant_method")) return in.text("quant_method");
  if (in.has("quant_algo")) return "modelopt";
  if (in.has("load_in_4bit") || in.has("load_in_8bit")) return "bitsandbytes";
  return in.has("bits") ? "gptq" : "";
}

void read_method(Precision& p, ConfigReader& in) {
  const std::string method = method_of(in);
  std::vector<std::string> known;
  for (const QuantMethod& one : kQuantMethods) {
    if (one.name != method) {
      known.emplace_back(one.name);
      continue;
    }
    one.read(p, in);
    read_cache_format(p, in);
    if (auto sparsity = in.optional_child("sparsity_config")) {
      p.two_of_four = sparsity->text("sparsity_structure", "") == "2:4";
      sparsity->ignore_rest();
    }
    return;
  }
  in.fail("quant_method", fmt::format("'{}' is not known (known: {})", method, join(known, ", ")));
}

/// quantization_config of the document or of its text part, else modelopt's file next to it (base/model_document.h),
/// with one level more. Null where there is none.
ConfigTree quantization_of(HfConfig& in) {
  ConfigTree tree = in.outer().tree("quantization_config");
  if (!tree) tree = in.reader().tree("quantization_config");
  if (!tree) {  // MLX's converter: quantization: {bits, group_size}, in older files nothing else
    const ConfigTree own = in.outer().tree("quantization");
    if (own && own->kind == ConfigNode::Kind::kMap && own->find("bits") != nullptr) return own;
  }
  if (!tree && (tree = in.outer().tree("hf_quant_config")))
    in.say("the formats are those of modelopt's hf_quant_config.json");
  if (tree && tree->find("by_name") != nullptr) in.say(assumed_formats((*tree->find("by_name"))->scalar));
  if (!tree || tree->kind != ConfigNode::Kind::kMap || tree->entries.empty()) return nullptr;
  const ConfigTree* inner = tree->find("quantization");
  return inner != nullptr && *inner && (*inner)->kind == ConfigNode::Kind::kMap ? *inner : tree;
}

/// Notes that a file's name claims a format that it does not have.
void say_unquantized(HfConfig& in) {
  const ConfigTree* name = in.outer().whole()->find("_name_or_path");
  if (name == nullptr || !*name || (*name)->kind != ConfigNode::Kind::kScalar) return;
  const auto checkpoint = parse_checkpoint_name((*name)->scalar, (*name)->location);
  if (checkpoint)
    in.say(fmt::format("its name ends in '{}', but it has no quantization_config: its weights have 16 bit",
                       checkpoint->format));
}

/// Source location of the group size, for messages.
SourceLocation location_of_group(ConfigReader& in) {
  for (std::string_view key : {"group_size", "q_group_size", "config_groups", "quant_config", "quant_type_kwargs"}) {
    if (in.has(key)) return in.location_of(key);
  }
  return in.location();
}

}  // namespace

Precision read_checkpoint_precision(HfConfig& in, const ModelSpec& model) {
  Precision p;
  for (std::string_view key : {"torch_dtype", "dtype"}) {  // 16-bit formats cost the same; engines load fp32 in 16 bit
    in.reader().ignore(key);
    in.outer().ignore(key);
  }
  const ConfigTree tree = quantization_of(in);
  if (!tree) {
    say_unquantized(in);
    return p;
  }
  ConfigReader quantization(tree, "a quantization_config");
  read_method(p, quantization);
  if (auto groups = quantization.optional_child("config_groups"); groups && groups->keys().size() > 1) {
    in.say(fmt::format("the checkpoint's {} config_groups are taken in one format, {}, apart from what it leaves alone",
                       groups->keys().size(), name_of(p.weights)));
  }
  std::vector<std::string> patterns;
  for (std::string_view key : {"modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules"}) {
    for (std::string& pattern : quantization.texts(key)) patterns.push_back(std::move(pattern));
  }
  const int layers = model.layer_count();
  if (left_alone(patterns, layers, {"self_attn.o_proj"})) p.attention_weights = Dtype::kBf16;
  if (left_alone(patterns, layers, {"mlp.gate_proj", "feed_forward.gate_proj"})) p.weights = Dtype::kBf16;
  if (left_alone(patterns, layers, {"mlp.experts.0.gate_proj", "feed_forward.experts.0.gate_proj"})) {
    p.expert_weights = Dtype::kBf16;
  }
  if (in.text({"expert_dtype"}, "") == "fp4") p.expert_weights = Dtype::kMxfp4;  // DeepSeek-V4
  check_groups(model, p, {}, location_of_group(quantization));
  return p;
}

}  // namespace roofcast
