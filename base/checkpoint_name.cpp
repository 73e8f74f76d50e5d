#include "base/checkpoint_name.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"

namespace roofcast {
namespace {

/// How checkpoints with an ending are quantized, as their config.json says it.
struct Ending {
  std::string_view ending;        ///< of the name in lower case
  std::string_view owners;        ///< of whom it means this; empty: of all others
  std::string_view quantization;  ///< YAML; empty: of several formats
  std::string_view weights;       ///< CheckpointName's
};

// Longer endings first. Block fp8: huggingface.co/Qwen/Qwen3-32B-FP8/blob/main/config.json and deepseek-ai/DeepSeek-V3.
// A scale a row, by token: meta-llama/Llama-3.1-405B-Instruct-FP8 (fbgemm_fp8), zai-org/GLM-4.5-FP8 (channel and
// token); so of all others, too. Scales for a whole tensor, measured before:
// huggingface.co/RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8; by token, as they come: its -FP8-dynamic; with a cache of
// fp8: huggingface.co/nvidia/Llama-3.1-8B-Instruct-FP8 and -FP4 (hf_quant_config.json).
constexpr std::string_view kBlocks = "{quant_method: fp8, activation_scheme: dynamic, weight_block_size: [128, 128]}";
constexpr std::string_view kDynamic = "{quant_method: fp8, activation_scheme: dynamic}";
constexpr std::string_view kStatic = "{quant_method: fp8, activation_scheme: static}";
constexpr std::string_view kModeloptFp8 = "{quant_method: modelopt, quant_algo: FP8, kv_cache_quant_algo: FP8}";
constexpr std::string_view kModeloptFp4 = "{quant_method: modelopt, quant_algo: NVFP4, kv_cache_quant_algo: FP8}";
constexpr std::string_view kNvfp4 = "{quant_method: modelopt, quant_algo: NVFP4}";
constexpr std::string_view kGptq4 = "{quant_method: gptq, bits: 4, group_size: 128}";
constexpr std::string_view kInt8 =
    "{quant_method: compressed-tensors, config_groups: {group_0: {weights: {num_bits: 8, type: int, strategy: "
    "channel}, "
    "input_activations: {num_bits: 8, type: int, strategy: token, dynamic: true}}}}";
constexpr std::array kEndings{
    Ending{"-fp8-dynamic", "", kDynamic, "fp8"},
    Ending{"-fp8-block", "", kBlocks, "fp8_block"},
    Ending{"-fp8", "nvidia", kModeloptFp8, "fp8"},
    Ending{"-fp8", "redhatai neuralmagic", kStatic, "fp8"},
    Ending{"-fp8", "qwen deepseek-ai", kBlocks, "fp8_block"},
    Ending{"-fp8", "", kDynamic, "fp8"},
    Ending{"-nvfp4", "nvidia", kModeloptFp4, "nvfp4"},
    Ending{"-nvfp4", "", kNvfp4, "nvfp4"},
    Ending{"-fp4", "", kModeloptFp4, "nvfp4"},
    Ending{"-mxfp4", "", "{quant_method: mxfp4}", "mxfp4"},
    Ending{"-awq-int4", "", "{quant_method: awq, bits: 4, group_size: 128}", "awq"},
    Ending{"-awq", "", "{quant_method: awq, bits: 4, group_size: 128}", "awq"},
    Ending{"-gptq-int8", "", "{quant_method: gptq, bits: 8, group_size: 128}", ""},
    Ending{"-gptq-int4", "", kGptq4, "gptq"},
    Ending{"-gptq", "", kGptq4, "gptq"},
    Ending{"-quantized.w4a16", "", kGptq4, "gptq"},
    Ending{"-quantized.w8a8", "", kInt8, ""},
    Ending{"-bnb-4bit", "", "{quant_method: bitsandbytes, load_in_4bit: true, bnb_4bit_quant_type: nf4}", ""},
    Ending{"-8bit", "mlx-community", "{bits: 8, group_size: 64}", ""},
    Ending{"-4bit", "mlx-community", "{bits: 4, group_size: 64}", ""},
    Ending{"-gguf", "", "", ""},
    Ending{"-exl2", "", "", ""},
    Ending{"-exl3", "", "", ""},
};

/// Whether one of `owners` owns it. Where none is named, a family's name begins like its owner's: Qwen3-32B-FP8.
bool is_of(std::string_view owners, const std::string& owner, std::string_view name) {
  const std::vector<std::string> all = split(std::string(owners), ' ');
  return std::any_of(all.begin(), all.end(), [&](const std::string& one) {
    return owner.empty() ? name.starts_with(one.substr(0, one.find('-'))) : owner == one;
  });
}

constexpr std::string_view kAssumed = "the formats are those that checkpoints named '";

}  // namespace

std::string assumed_formats(std::string_view format) {
  return fmt::format("{}{}' have; where its config.json leaves more layers in 16 bit, name that file", kAssumed,
                     format);
}

bool are_assumed_formats(std::string_view assumption) { return assumption.starts_with(kAssumed); }

std::optional<CheckpointName> parse_checkpoint_name(std::string_view written, const Mark& mark) {
  const std::string name = lower(written);
  const std::size_t slash = name.find('/');
  const std::string owner = slash == std::string::npos ? "" : name.substr(0, slash);
  for (const Ending& one : kEndings) {
    if (!name.ends_with(one.ending) || name.size() == one.ending.size()) continue;
    if (!one.owners.empty() && !is_of(one.owners, owner, name)) continue;
    CheckpointName out;
    const std::string model = name.substr(0, name.size() - one.ending.size());
    const std::string alone = slash == std::string::npos ? model : model.substr(slash + 1);
    if (slash != std::string::npos) out.models.push_back(model);
    out.models.push_back(alone);
    if (constexpr std::string_view kMeta = "meta-"; alone.starts_with(kMeta))  // Meta-Llama-3.1, renamed to Llama-3.1
      out.models.push_back(alone.substr(kMeta.size()));
    if (constexpr std::string_view kTuned = "-instruct"; alone.ends_with(kTuned))  // as large as what it was tuned from
      out.models.push_back(alone.substr(0, alone.size() - kTuned.size()));
    out.weights = std::string(one.weights);
    out.format = std::string(written.substr(written.size() - one.ending.size()));
    const std::string where = fmt::format("{} (formats of checkpoints '{}')", mark.path.str(), out.format);
    if (!one.quantization.empty()) {
      out.quantization =
          with_value(parse_config_text(one.quantization, where), "by_name", make_scalar(out.format), where);
    } else {
      out.advice = one.ending == "-gguf" ? "gguf_q4_k_m" : "exl_4bpw";
    }
    return out;
  }
  return std::nullopt;
}

}  // namespace roofcast
