#include "reports/launch_settings.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/config_library.h"
#include "base/release_flags.h"
#include "hw/kernels/moe.h"
#include "reports/provenance.h"
#include "sim/step/deployment.h"

namespace roofcast::reports {
namespace {

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(int value) { return std::to_string(value); }
std::string text_of(double value) { return fmt::format("{:g}", value); }
std::string text_of(const std::string& value) { return value; }
std::string text_of(Bytes value) { return fmt::format("{:g} GB", value.base() / 1e9); }
std::string text_of(Seconds value) { return fmt::format("{:g} s", value.base()); }
template <class Enum>
std::string word_of(Enum value, std::initializer_list<const char*> words) {
  return *(words.begin() + static_cast<std::ptrdiff_t>(value));
}

std::string host_of(const EngineSpec& e) {
  std::string out;
  for (const Seconds cost :
       {e.host.step_time, e.host.sequence_time, e.host.scheduler_time, e.host.scheduler_sequence_time,
        e.host.worker_time, e.host.prefill_step_time, e.host.launch_time, e.host.request_time, e.host.request_latency,
        e.host.token_time, e.host.prompt_token_time, e.host.graph_gap, e.host.rank_skew})
    out += text_of(cost) + " ";
  return out + text_of(e.host.scatter);
}

std::string tiers_of(const EngineSpec& e) {
  std::string out;
  for (const KvTier& tier : e.kv_tiers)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", tier.name, text_of(tier.capacity));
  return out;
}

struct Setting {
  std::string_view key;
  std::string (*text)(const EngineSpec&);
};

/// Every key of an engine's file (sim/step/engine_spec.cpp), in the order in which it is read.
constexpr std::array kSettings{
    Setting{"kernels", [](const EngineSpec& e) { return e.rooflines ? std::string("own") : e.kernels; }},
    Setting{"scheduler", [](const EngineSpec& e) { return text_of(e.scheduler); }},
    Setting{"max_num_seqs", [](const EngineSpec& e) { return text_of(e.max_num_seqs); }},
    Setting{"max_num_batched_tokens", [](const EngineSpec& e) { return text_of(e.max_num_batched_tokens); }},
    Setting{"launch_speed", [](const EngineSpec& e) { return text_of(e.launch_speed); }},
    Setting{"chunked_prefill", [](const EngineSpec& e) { return text_of(e.chunked_prefill); }},
    Setting{"batch_wait", [](const EngineSpec& e) { return text_of(e.batch_wait); }},
    Setting{"stream_interval", [](const EngineSpec& e) { return text_of(e.stream_interval); }},
    Setting{"async_scheduling", [](const EngineSpec& e) { return text_of(e.async_scheduling); }},
    Setting{"async_drafts",
            [](const EngineSpec& e) {
              return word_of(e.async_drafts, {"none", "layers", "all"});
            }},
    Setting{"async_pipelines", [](const EngineSpec& e) { return text_of(e.async_pipelines); }},
    Setting{"scheduler_launches", [](const EngineSpec& e) { return text_of(e.scheduler_launches); }},
    Setting{"prefill_wait_ratio", [](const EngineSpec& e) { return text_of(e.prefill_wait_ratio); }},
    Setting{"prefill_wait_steps", [](const EngineSpec& e) { return text_of(e.prefill_wait_steps); }},
    Setting{"attention_dp_balance", [](const EngineSpec& e) { return text_of(e.attention_dp_balance); }},
    Setting{"prefill_batch_steps", [](const EngineSpec& e) { return text_of(e.prefill_batch_steps); }},
    Setting{"rank_choice",
            [](const EngineSpec& e) {
              return word_of(e.rank_choice, {"fewest", "in_turn"});
            }},
    Setting{"receive_interval", [](const EngineSpec& e) { return text_of(e.receive_interval); }},
    Setting{"postprocess_workers", [](const EngineSpec& e) { return text_of(e.postprocess_workers); }},
    Setting{"api_servers",
            [](const EngineSpec& e) { return e.api_servers > 0 ? text_of(e.api_servers) : std::string("per_rank"); }},
    Setting{"block_size", [](const EngineSpec& e) { return text_of(e.block_size); }},
    Setting{"max_model_len", [](const EngineSpec& e) { return text_of(e.max_model_len); }},
    Setting{"memory_rule",
            [](const EngineSpec& e) {
              return word_of(e.memory_rule, {"share_of_total", "share_of_free", "static_share"});
            }},
    Setting{"gpu_memory_utilization", [](const EngineSpec& e) { return text_of(e.gpu_memory_utilization); }},
    Setting{"state_memory_ratio", [](const EngineSpec& e) { return text_of(e.state_memory_ratio); }},
    Setting{"reserved_memory", [](const EngineSpec& e) { return text_of(e.reserved_memory); }},
    Setting{"compiled", [](const EngineSpec& e) { return text_of(e.compiled); }},
    Setting{"keeps_expert_buffers", [](const EngineSpec& e) { return text_of(e.keeps_expert_buffers); }},
    Setting{"collective_memory", [](const EngineSpec& e) { return text_of(e.collective_memory); }},
    Setting{"watermark", [](const EngineSpec& e) { return text_of(e.watermark); }},
    Setting{"prompt_must_fit", [](const EngineSpec& e) { return text_of(e.prompt_must_fit); }},
    Setting{"reserve_output_ratio", [](const EngineSpec& e) { return text_of(e.reserve_output_ratio); }},
    Setting{"preemption", [](const EngineSpec& e) { return text_of(e.preemption); }},
    Setting{"victim",
            [](const EngineSpec& e) {
              return word_of(e.victim, {"newest", "fewest_outputs"});
            }},
    Setting{"mtp_drafts", [](const EngineSpec& e) { return text_of(e.mtp_drafts); }},
    Setting{"state_checkpoints", [](const EngineSpec& e) { return text_of(e.state_checkpoints); }},
    Setting{"kv_cache", [](const EngineSpec& e) { return text_of(e.kv_cache); }},
    Setting{"scaled_latents", [](const EngineSpec& e) { return text_of(e.scaled_latents); }},
    Setting{"fp8_latent_prompts", [](const EngineSpec& e) { return text_of(e.fp8_latent_prompts); }},
    Setting{"prefix_caching", [](const EngineSpec& e) { return text_of(e.prefix_caching); }},
    Setting{"kv_offload", [](const EngineSpec& e) { return text_of(e.kv_offload); }},
    Setting{"kv_tiers", tiers_of},
    Setting{"sampling", [](const EngineSpec& e) { return std::string(e.samples_top_p ? "top_p" : "greedy"); }},
    Setting{"top_p_by", [](const EngineSpec& e) { return std::string(e.sorts_for_top_p ? "sort" : "select"); }},
    Setting{"moe_kernel",
            [](const EngineSpec& e) {
              return std::string(requested_experts_names()[static_cast<std::size_t>(e.moe_kernel)]);
            }},
    Setting{"expanded_experts", [](const EngineSpec& e) { return text_of(e.expanded_experts); }},
    Setting{"block_products",
            [](const EngineSpec& e) { return std::string(e.block_products == nullptr ? "deep_gemm" : "flashinfer"); }},
    Setting{"rows_quantized_at_once", [](const EngineSpec& e) { return text_of(e.rows_quantized_at_once); }},
    Setting{"attention_kernel", [](const EngineSpec& e) { return text_of(e.attention_kernel); }},
    Setting{"sparse_attention", [](const EngineSpec& e) { return text_of(e.sparse_attention); }},
    Setting{"shared_query_heads", [](const EngineSpec& e) { return text_of(e.shared_query_heads); }},
    Setting{"aiter", [](const EngineSpec& e) { return text_of(e.aiter); }},
    Setting{"own_all_reduce", [](const EngineSpec& e) { return text_of(e.own_all_reduce); }},
    Setting{"fused_all_reduce", [](const EngineSpec& e) { return text_of(e.fused_all_reduce); }},
    Setting{"compiled_quantization", [](const EngineSpec& e) { return text_of(e.compiled_quantization); }},
    Setting{"fused_elementwise", [](const EngineSpec& e) { return text_of(e.fused_elementwise); }},
    Setting{"merged_projections", [](const EngineSpec& e) { return text_of(e.merged_projections); }},
    Setting{"copied_cache", [](const EngineSpec& e) { return text_of(e.copied_cache); }},
    Setting{"expert_exchange",
            [](const EngineSpec& e) {
              return word_of(e.expert_exchange, {"all_gather", "all_to_all"});
            }},
    Setting{"expert_overlap",
            [](const EngineSpec& e) {
              return word_of(e.expert_overlap, {"none", "single_batch", "two_batch", "dual_batch"});
            }},
    Setting{"cuda_graphs.enabled", [](const EngineSpec& e) { return text_of(e.graphs.enabled); }},
    Setting{"cuda_graphs.max_batch", [](const EngineSpec& e) { return text_of(e.graphs.max_batch); }},
    Setting{"cuda_graphs.prefill_tokens", [](const EngineSpec& e) { return text_of(e.graphs.prefill_tokens); }},
    Setting{"cuda_graphs.plain_prefill", [](const EngineSpec& e) { return text_of(e.graphs.plain_prefill); }},
    Setting{"cuda_graphs.dependent_launch", [](const EngineSpec& e) { return text_of(e.graphs.dependent_launch); }},
    Setting{"cuda_graphs.padded_sizes",
            [](const EngineSpec& e) { return fmt::format("{}", fmt::join(e.graphs.padded_sizes, " ")); }},
    Setting{"host", host_of},
    Setting{"front_end", [](const EngineSpec& e) { return text_of(e.front_end); }},
    Setting{"start_time", [](const EngineSpec& e) { return text_of(e.start_time); }},
    Setting{"cache_transfer",
            [](const EngineSpec& e) {
              return word_of(e.cache_transfer, {"after_prefill", "by_chunk", "by_layer"});
            }},
    Setting{"handover_time", [](const EngineSpec& e) { return text_of(e.handover_time); }},
};

/// Whether the command omits a flag on purpose: it can only be switched in one direction and the release has it
/// already, or it belongs to an unused feature.
bool is_left_out(const SettingChange& change, std::string_view engine, const Deployment& d) {
  const EngineSpec& e = d.engine;
  const std::string_view key = change.key;
  if (engine == "vllm" && key == "cuda_graphs.prefill_tokens") return e.graphs.prefill_tokens != e.graphs.max_batch;
  if (key == "aiter") return traits_of(d.gpu.architecture).matrix_units != MatrixUnits::kMfma;
  if (key == "expert_overlap") return e.expert_exchange != ExpertExchange::kAllToAll;
  if ((engine == "sglang" && key == "prefill_wait_steps") || key == "prefill_batch_steps")
    return !e.attention_dp_balance;
  if (engine == "sglang" && change.value == "false") return key == "fused_all_reduce" || key == "attention_dp_balance";
  if (engine == "sglang" && change.value == "true")
    return key == "prefix_caching" || key == "async_scheduling" || key == "cuda_graphs.enabled";
  return engine == "vllm" && key == "cuda_graphs.enabled" && change.value == "true";
}

}  // namespace

std::vector<SettingChange> changed_settings(const EngineSpec& engine, const EngineSpec& plain) {
  std::vector<SettingChange> out;
  for (const Setting& setting : kSettings) {
    const std::string value = setting.text(engine);
    if (value != setting.text(plain)) out.push_back({std::string(setting.key), setting.key == "host" ? "" : value});
  }
  return out;
}

bool has_launch_flag(std::string_view engine, const std::string& version, std::string_view key) {
  return has_flag(load_document("engines", std::string(engine), Mark{"engines", 0, 0}), version, key);
}

std::vector<std::string> settings_not_set(const Deployment& d, const EngineSpec& plain, const ServingOptions& serving,
                                          const std::string& engine) {
  // A command for another engine does not state the planned engine's release.
  const std::string version = d.engine.name == engine ? d.engine.version : "";
  std::vector<std::string> out;
  const auto add = [&](const std::string& key, const std::string& value) {
    out.push_back(fmt::format("not set: {}{} (the forecast assumes it; no flag of {} says it)", key,
                              value.empty() ? "" : ": " + value, engine + (version.empty() ? "" : " " + version)));
  };
  for (const SettingChange& change : changed_settings(d.engine, plain)) {
    // A front end has its own costs, and the ideal roofline has none.
    if (change.key == "host" && (d.engine.front_end != plain.front_end || d.fidelity == Fidelity::kIdeal)) continue;
    if (engine == "sglang" && change.key == "scheduler" && change.value == "mixed_chunk") continue;
    if (!has_launch_flag(engine, version, change.key) || is_left_out(change, engine, d))
      add("engine." + change.key, change.value);
  }
  if (serving.max_queue > 0 && !has_launch_flag(engine, version, "max_queue"))
    add("max_queue", std::to_string(serving.max_queue));
  if (serving.policy != "fcfs" && !has_launch_flag(engine, version, "policy: " + serving.policy))
    add("policy", serving.policy);
  return out;
}

}  // namespace roofcast::reports
