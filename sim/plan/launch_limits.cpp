#include "sim/plan/launch_limits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/config_reader.h"
#include "base/config_release.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

/// vllm/config/cache.py, `BlockSize`.
constexpr std::array kVllmBlocks{1, 8, 16, 32, 64, 128, 256};

const ConfigTree* written(const ConfigTree& engine, std::string_view key) {
  const ConfigTree* value = engine->find(key);
  return value != nullptr && *value && (*value)->kind == ConfigNode::Kind::kScalar ? value : nullptr;
}

}  // namespace

void check_launch(const Deployment& d, const ConfigTree& engine, bool forced) {
  const EngineSpec& e = d.engine;
  const bool vllm = e.name == "vllm", sglang = e.name == "sglang";
  if (const ConfigTree* block = written(engine, "block_size");
      vllm && block && e.block_size != 0 &&
      std::find(kVllmBlocks.begin(), kVllmBlocks.end(), e.block_size) == kVllmBlocks.end()) {
    throw ConfigError((*block)->location, fmt::format("vLLM takes a 'block_size' of {}, not {}",
                                                      fmt::join(kVllmBlocks, ", "), e.block_size));
  }
  if (const ConfigTree* asynchronous = written(engine, "async_scheduling");
      asynchronous && ConfigReader(engine, "an engine").boolean("async_scheduling", false)) {
    if (e.name == "hf-transformers")
      throw ConfigError((*asynchronous)->location,
                        "generate() prepares a step when the last one has ended: it has no "
                        "'async_scheduling'");
    if (!e.async_pipelines && d.sharding.pp > 1)
      throw ConfigError((*asynchronous)->location,
                        fmt::format("{} {} has no 'async_scheduling' with pipeline stages{}", vllm ? "vLLM" : e.name,
                                    e.version, vllm ? "; vLLM 0.15 has it" : ""));
  }
  // src/llama-kv-cache.cpp: cells of one token
  if (const ConfigTree* block = written(engine, "block_size"); e.name == "llama-cpp" && block && e.block_size > 1)
    throw ConfigError((*block)->location,
                      fmt::format("llama-server's cache has cells of one token: a 'block_size' of 1, or "
                                  "0 for slots of their own, not {}",
                                  e.block_size));
  // vllm/config/scheduler.py: SchedulerConfig.verify_max_model_len
  if (const ConfigTree* tokens = written(engine, "max_num_batched_tokens");
      vllm && tokens && written(engine, "max_num_seqs") && e.max_num_batched_tokens < e.max_num_seqs) {
    throw ConfigError((*tokens)->location,
                      fmt::format("vLLM refuses 'max_num_batched_tokens: {}' below 'max_num_seqs: {}'",
                                  e.max_num_batched_tokens, e.max_num_seqs));
  }
  // vllm/config/model.py: _get_and_verify_max_len; sglang/srt/configs/model_config.py: context_length
  if (const ConfigTree* length = written(engine, "max_model_len");
      (vllm || sglang) && !forced && length && d.model.max_context > 0 && e.max_model_len > d.model.max_context) {
    throw ConfigError((*length)->location,
                      fmt::format("{} refuses 'max_model_len: {}' beyond the context of {}, {:.0f} tokens; "
                                  "--force-unsupported estimates it all the same",
                                  vllm ? "vLLM" : "SGLang", e.max_model_len, d.model.name, d.model.max_context));
  }
}

ServedContext served_context(const Deployment& d) {
  ServedContext out{.asked = d.engine.max_model_len > 0 ? d.engine.max_model_len : d.model.max_context};
  const bool cached = d.engine.kv_cache && !d.model.encoder_only && !d.memory.infeasible;
  const bool counts = cached && d.fidelity != Fidelity::kIdeal;
  out.pool = counts ? d.memory.max_context(d.engine.block_size) : std::numeric_limits<double>::infinity();
  return out;
}

/// vLLM: v1/core/kv_cache_utils.py (check_enough_kv_cache_memory), pull/29431. SGLang: managers/scheduler.py
/// (max_req_len). TensorRT-LLM: _torch/pyexecutor/resource_manager.py (validate_and_adjust_attention_windows).
std::string context_text(const Deployment& d, const ServedContext& context) {
  const std::string& engine = d.engine.name;
  const std::string then =
      engine == "vllm"     ? fmt::format("vLLM starts with --max-model-len {}",
                                     !d.engine.version.empty() && compare_versions(d.engine.version, "0.14.0") < 0
                                             ? fmt::format("{:.0f} or less", context.pool)
                                             : std::string("auto"))
          : engine == "trtllm" ? "TensorRT-LLM lowers its max_seq_len"
                           : "longer requests are refused";
  return fmt::format("the KV cache holds {:.0f} tokens of one sequence, less than {} ({:.0f}): {}", context.pool,
                     d.engine.max_model_len > 0 ? "engine.max_model_len" : "the context of " + d.model.name,
                     context.asked, then);
}

void check_draft(const Deployment& target, const Deployment& draft, const SourceLocation& location) {
  constexpr double kPadding = 0.01;  // tables of one tokenizer are padded to different sizes
  const double here = target.model.vocabulary, there = draft.model.vocabulary;
  if (std::abs(here - there) <= kPadding * std::max(here, there)) return;
  throw ConfigError(location,
                    fmt::format("{} has {:.0f} tokens, {} has {:.0f}: a draft model needs the tokenizer of the "
                                "model that it drafts for",
                                draft.model.name, there, target.model.name, here));
}

}  // namespace roofcast
