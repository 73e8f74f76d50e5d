// quantization_config of a checkpoint.

#include <cmath>
#include <regex>

#include <fmt/format.h>

#include "sim/model/hf_config.h"
#include "sim/model/recipes.h"

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
      return false;  // not a pattern we can judge: taken to cover nothing
    }
  }
  std::string name = pattern;
  for (std::string_view prefix : {"language_model.", "model.language_model.", "model."}) {
    if (name.starts_with(prefix)) name = name.substr(prefix.size());
  }
  const std::string framed = "." + module + ".";
  return !name.empty() && framed.find("." + name + ".") != std::string::npos;
}

/// Whether the checkpoint leaves this module of the middle layers alone.
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

/// compressed-tensors and modelopt: {config_groups: {group_0: {weights: {...}, input_activations: {...}}}}.
void read_groups(Precision& p, ConfigReader& in) {
  auto groups = in.optional_child("config_groups");
  if (!groups || groups->keys().empty()) return;
  ConfigReader group = groups->child(groups->keys().front());
  auto weights = group.optional_child("weights");
  if (!weights) return;
  const double bits = weights->number("num_bits", 8);
  const double size = weights->number("group_size", 0);
  const bool floating = weights->text("type", "int") == "float";
  const bool blocks = weights->text("strategy", "") == "block";
  const Dtype dtype = floating ? (blocks ? Dtype::kFp8Block : float_of(bits, size)) : integer_of(bits, *weights);
  set_weights(p, dtype);
  if (!floating && size > 0) {
    p.weight_scales = {
        .group_size = size, .bits = 16.0, .zero_point_bits = weights->boolean("symmetric", true) ? 0.0 : bits};
  }
  p.activations = Dtype::kBf16;
  if (auto inputs = group.optional_child("input_activations")) {
    const double input_bits = inputs->number("num_bits", 8);
    p.activations = inputs->text("type", "int") == "float" ? (input_bits == 8 ? Dtype::kFp8 : dtype) : Dtype::kInt8;
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

void read_integers(Precision& p, ConfigReader& in, bool zero_points) {
  const double bits = in.number(in.has("bits") ? "bits" : "w_bit", 4);
  set_weights(p, integer_of(bits, in));
  const double size = in.number(in.has("group_size") ? "group_size" : "q_group_size", 128);
  p.weight_scales = {.group_size = size > 0 ? size : 0.0, .bits = 16.0, .zero_point_bits = zero_points ? bits : 0.0};
}

void read_method(Precision& p, ConfigReader& in) {
  const std::string method = in.text("quant_method", in.has("quant_algo") ? "modelopt" : "");
  if (method == "fp8" || method == "fbgemm_fp8") {
    set_weights(p, in.has("weight_block_size") ? Dtype::kFp8Block : Dtype::kFp8);
    p.static_activations = in.text("activation_scheme", "dynamic") == "static";
  } else if (method == "compressed-tensors") {
    read_groups(p, in);
  } else if (method == "modelopt" || method == "modelopt_fp4") {
    read_modelopt(p, in);
  } else if (method == "mxfp4") {
    set_weights(p, Dtype::kMxfp4);
  } else if (method == "awq" || method == "gptq") {
    read_integers(p, in, method == "awq" ? in.boolean("zero_point", true) : !in.boolean("sym", true));
    p.recipe = method;
  } else if (method == "bitsandbytes") {
    for (const Recipe& recipe : recipes()) {
      if (recipe.name == (in.boolean("load_in_4bit", false) ? "nf4" : "llm_int8")) recipe.set(p);
    }
  } else if (method == "bitnet") {
    set_weights(p, Dtype::kTernary);
    p.activations = Dtype::kInt8;
  } else {
    in.fail("quant_method",
            fmt::format("'{}' is not known (known: fp8, compressed-tensors, modelopt, mxfp4, awq, gptq, "
                        "bitsandbytes, bitnet)",
                        method));
  }
  read_cache_format(p, in);
}

}  // namespace

Precision read_checkpoint_precision(HfConfig& in) {
  Precision p;
  for (std::string_view key : {"torch_dtype", "dtype"}) {  // 16-bit formats cost the same; engines load fp32 in 16 bit
    in.reader().ignore(key);
    in.outer().ignore(key);
  }
  ConfigTree tree = in.outer().tree("quantization_config");
  if (!tree) tree = in.reader().tree("quantization_config");
  if (!tree || tree->kind != ConfigNode::Kind::kMap) return p;
  ConfigReader quantization(tree, "a quantization_config");
  read_method(p, quantization);
  std::vector<std::string> patterns;
  for (std::string_view key : {"modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules"}) {
    for (std::string& pattern : quantization.texts(key)) patterns.push_back(std::move(pattern));
  }
  const int layers = layer_count(in);
  if (left_alone(patterns, layers, {"self_attn.o_proj"})) p.attention_weights = Dtype::kBf16;
  if (left_alone(patterns, layers, {"mlp.gate_proj", "feed_forward.gate_proj"})) p.weights = Dtype::kBf16;
  if (left_alone(patterns, layers, {"mlp.experts.0.gate_proj", "feed_forward.experts.0.gate_proj"})) {
    p.expert_weights = Dtype::kBf16;
  }
  if (in.text({"expert_dtype"}, "") == "fp4") p.expert_weights = Dtype::kMxfp4;  // DeepSeek-V4
  return p;
}

}  // namespace roofcast
