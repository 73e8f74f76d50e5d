#include "reports/launch_checkpoint.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/config_release.h"
#include "base/error.h"
#include "base/text.h"
#include "reports/html_text.h"
#include "sim/model/memory.h"
#include "sim/model/stored_format.h"
#include "sim/plan/rules.h"
#include "sim/step/deployment.h"

namespace roofcast::reports {
namespace {

std::string text_at(const ConfigTree& tree, std::string_view key) {
  const ConfigTree* value = tree->find(key);
  return value != nullptr && *value && (*value)->kind == ConfigNode::Kind::kScalar ? (*value)->scalar : "";
}

/// The name of a scenario's model; empty if the scenario defines the model itself.
std::string name_in(const ConfigTree& model) {
  return model->kind == ConfigNode::Kind::kScalar ? model->scalar : text_at(model, "name");
}

/// The scenario's changes to a model that it names; empty if it defines the model itself.
std::vector<std::string> changed_keys(const ConfigTree& model) {
  std::vector<std::string> out;
  if (model->kind != ConfigNode::Kind::kMap || text_at(model, "name").empty() || model->find("base") != nullptr)
    return out;
  for (const ConfigNode::Entry& entry : model->entries) {
    if (entry.key != "name") out.push_back(entry.key);
  }
  return out;
}

/// "https://huggingface.co/OWNER/NAME, remarks" as OWNER/NAME; empty for other sources.
std::string repository_in(const std::string& source) {
  static constexpr std::string_view kHub = "huggingface.co/";
  const auto at = source.find(kHub);
  if (at == std::string::npos) return "";
  const std::string rest = source.substr(at + kHub.size());
  return rest.substr(0, rest.find_first_of(" ,"));
}

/// A path in the working directory keeps `./`: without a slash it would be a name.
std::string folder_path(const std::string& name) {
  const std::string path = (std::filesystem::path(name) / "").lexically_normal().parent_path().string();
  return path.find('/') == std::string::npos ? "./" + path : path;
}

std::string checkpoint_of(const ConfigTree& model, std::string& note) {
  const std::string name = name_in(model);
  if (const std::vector<std::string> changed = changed_keys(model); !changed.empty()) {
    note = fmt::format("the scenario changes {} of {}, whose checkpoint is another one", join(changed, ", "), name);
    return "";
  }
  if (is_local_folder(name)) return folder_path(name);
  std::error_code unknown;
  if (name.find('/') != std::string::npos && !std::filesystem::exists(name, unknown)) return name;  // OWNER/NAME
  const ConfigTree document = resolve_named("models", model);
  if (const ConfigTree* format = document->find("quantization_config");
      format != nullptr && *format && (*format)->find("by_name") != nullptr) {
    note = fmt::format("{} is a checkpoint whose owner is not named: write OWNER/{}", name, name);
    return "";
  }
  const std::string source = repository_in(text_at(document, "source")), chat = text_at(document, "chat");
  if (chat.empty()) return source;
  note = fmt::format(
      "{} is the base model and has no chat template: its instruct checkpoint of the same shape is served", source);
  return chat;
}

/// Model Optimizer's name of the format (examples/llm_ptq); empty if it has none.
std::string optimizer_format(Dtype weights) {
  if (weights == Dtype::kFp8) return "fp8";
  if (weights == Dtype::kNvfp4) return "nvfp4";
  return weights == Dtype::kInt4 ? "int4_awq" : "";
}

bool sixteen_bit(Dtype dtype) { return dtype == Dtype::kBf16 || dtype == Dtype::kFp16; }
bool is_fp8(Dtype dtype) { return dtype == Dtype::kFp8 || dtype == Dtype::kFp8Block; }

/// Whether the 16-bit weights fit the memory in which they are converted to fp8. SGLang loads all of them first
/// (python/sglang/srt/layers/quantization/fp8.py; pull/17945, which would quantize by layers, is open), and so did vLLM
/// before 0.15 (pull/31914).
bool has_room_to_quantize(const Deployment& d, const std::string& engine) {
  if (engine == "vllm" && !is_before(d, "vllm", "0.15.0")) return true;
  return weight_bytes(d.model, d.model.precision, d.sharding) + d.reserved_memory() <= d.memory.capacity;
}

std::string format_text(const Precision& p) {
  if (!p.recipe.empty()) return p.recipe;
  std::string out(name_of(p.weights));
  if (!sixteen_bit(p.activations) && p.activations != p.weights && !is_fp8(p.weights))
    out += fmt::format(" weights and {} activations", name_of(p.activations));
  else
    out += " weights";
  return out;
}

/// An engine's name of a KV cache format, and the first release with it. vLLM: vllm/config/cache.py (CacheDType),
/// pull/38378, pull/48842, pull/40177. SGLang: server_args.py (kv_cache_dtype), pull/12612. TensorRT-LLM: llm_args.py
/// (KvCacheConfig.dtype) and the documentation of 1.0 and later. llama.cpp: common/arg.cpp (--cache-type-k).
struct CacheWord {
  std::string_view engine;
  Dtype format;
  std::string_view since, word;
};
constexpr std::array kCacheWords{
    CacheWord{"vllm", Dtype::kFp8, "", "fp8"},
    CacheWord{"vllm", Dtype::kInt8, "0.20.0", "int8_per_token_head"},
    CacheWord{"vllm", Dtype::kInt4, "0.26.0", "int4_per_token_head"},
    CacheWord{"vllm", Dtype::kNvfp4, "0.21.0", "nvfp4"},
    CacheWord{"sglang", Dtype::kFp8, "", "fp8_e4m3"},
    CacheWord{"sglang", Dtype::kMxfp4, "0.5.7", "fp4_e2m1"},
    CacheWord{"trtllm", Dtype::kFp8, "", "fp8"},
    CacheWord{"trtllm", Dtype::kNvfp4, "1.1.0", "nvfp4"},
    CacheWord{"llama-cpp", Dtype::kInt8, "", "q8_0"},
    CacheWord{"llama-cpp", Dtype::kInt4, "", "q4_0"},
};

/// Model Optimizer's option for the cache.
std::string optimizer_cache(const Deployment& d) {
  if (d.precision.kv_cache == Dtype::kFp8) return " --kv_cache_qformat fp8";
  return d.precision.kv_cache == Dtype::kNvfp4 ? " --kv_cache_qformat nvfp4" : "";
}

ServedWeights readers_own(const char* name, const std::string& comment) {
  return {.name = name, .comments = {comment}, .local = true};
}

}  // namespace

bool is_local_folder(const std::string& name) {
  std::error_code unknown;
  return name.find('/') != std::string::npos && std::filesystem::is_directory(name, unknown);
}

bool is_before(const Deployment& d, std::string_view engine, std::string_view version) {
  return d.engine.name == engine && !d.engine.version.empty() && compare_versions(d.engine.version, version) < 0;
}

Checkpoints checkpoints_of(const ConfigTree& scenario) {
  Checkpoints out;
  if (const ConfigTree* model = scenario->find("model")) out.model = checkpoint_of(*model, out.note);
  const ConfigTree* drafts = scenario->find("speculation");
  const ConfigTree* drafter = drafts != nullptr && *drafts ? (*drafts)->find("model") : nullptr;
  std::string note;
  if (drafter != nullptr) out.drafter = checkpoint_of(*drafter, note);
  return out;
}

ServedWeights served_weights(const Deployment& d, const std::string& engine, const Checkpoints& from) {
  const std::string model = from.model.empty() ? d.model.name : from.model, format = format_text(d.precision);
  if (engine == "llama-cpp")
    return readers_own("MODEL.gguf", fmt::format("MODEL.gguf: {} as GGUF with {}", model, format));
  if (from.model.empty()) return readers_own("$CHECKPOINT", fmt::format("CHECKPOINT: {} with {}", model, format));
  const Dtype weights = d.precision.weights, published = d.model.precision.weights;
  const bool scales =
      engine == "trtllm" && d.precision.kv_cache == Dtype::kNvfp4;  // scales of the cache, stored in the checkpoint
  ServedWeights out{.name = model, .local = is_local_folder(model)};
  if (weights == published && !scales) return out;
  if (weights == Dtype::kFp8 && sixteen_bit(published) && (engine == "vllm" || engine == "sglang")) {
    out.made_while_loading = has_room_to_quantize(d, engine);
    if (out.made_while_loading) return out;
    out.comments.push_back(fmt::format("{} would load the 16-bit weights before it quantizes them, and {} has no room",
                                       engine, d.gpu.name));
  }
  // Published next to the 16-bit one: Qwen/Qwen3-32B-FP8, zai-org/GLM-5-FP8.
  if (weights == Dtype::kFp8Block && stored_format(d.model, Dtype::kFp8) == weights && !out.local && !scales) {
    out.name += "-FP8";
    return out;
  }
  const std::string quantizer = optimizer_format(weights);
  const bool readable = engine == "trtllm" || quantizer == "fp8" || quantizer == "nvfp4";
  if (!d.precision.recipe.empty() || quantizer.empty() || !readable || !sixteen_bit(published))
    return readers_own("$CHECKPOINT", fmt::format("CHECKPOINT: {} with {}{}", model, format,
                                                  scales ? " and scales of an nvfp4 cache" : ""));
  out.name = fmt::format("{}-{}", model.substr(model.find_last_of('/') + 1), quantizer);
  out.local = true;
  out.comments.push_back("quantize the weights first, in examples/llm_ptq of NVIDIA Model Optimizer:");
  out.comments.push_back(fmt::format("  python hf_ptq.py --pyt_ckpt_path {} --qformat {}{} --export_path {}",
                                     shell_word(model), quantizer, optimizer_cache(d), shell_word(out.name)));
  return out;
}

std::string kv_cache_word(const Deployment& d, const std::string& engine) {
  const Dtype format = d.precision.kv_cache;
  if (element_bits(format) >= 16) return "";
  for (const CacheWord& w : kCacheWords) {
    if (w.engine != engine || w.format != format) continue;
    if (!w.since.empty() && is_before(d, engine, w.since))
      throw ConfigError(fmt::format("--emit: {} has a KV cache in {} from {} on, not in {}", engine, name_of(format),
                                    w.since, d.engine.version));
    return std::string(w.word);
  }
  throw ConfigError(fmt::format("--emit: {} has no KV cache in {}", engine, name_of(format)));
}

/// Marlin's kernels: vllm/model_executor/layers/quantization/fp8.py and python/sglang/srt/layers/quantization/fp8.py
/// (use_marlin). GPUs without fp8 units use them anyway.
std::vector<std::pair<std::string, std::string>> weight_only_environment(const Deployment& d,
                                                                         const std::string& engine) {
  const bool units = d.gpu.compute_dtype(Dtype::kFp8, Dtype::kFp8).has_value();
  if (!is_fp8(d.precision.weights) || !sixteen_bit(d.precision.activations) || !units) return {};
  const bool nvidia = traits_of(d.gpu.architecture).matrix_units != MatrixUnits::kMfma;
  if (engine == "vllm" && nvidia) return {{"VLLM_TEST_FORCE_FP8_MARLIN", "1"}};
  if (engine == "sglang" && nvidia && !has_experts(d.model)) return {{"SGLANG_FORCE_FP8_MARLIN", "1"}};
  throw ConfigError(fmt::format("--emit: {} has no kernels for {} weights with {} activations on {}", engine,
                                name_of(d.precision.weights), name_of(d.precision.activations), d.gpu.name));
}

}  // namespace roofcast::reports
