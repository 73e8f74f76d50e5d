#include "reports/launch_command.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "reports/html_text.h"

namespace roofcast {
namespace {

/// What runs on one worker: a whole replica, or one role of a disaggregated fleet.
enum class Role { kWhole, kPrefill, kDecode };

struct Launch {
  const Deployment& d;
  std::string model;
  Role role = Role::kWhole;
  int longest_prompt = 0;  ///< tokens
  SpeculationSpec speculation = {};
};

using Method = SpeculationSpec::Method;

/// Where the drafter's weights are; empty where it needs none of its own.
std::string drafter(const SpeculationSpec& s) {
  if (s.method == Method::kDraftModel) return s.draft ? shell_word(s.draft->model.name) : "\"$DRAFTER\"";
  const bool heads = s.method == Method::kEagle || s.method == Method::kEagle3 || s.method == Method::kMedusa;
  return heads ? "\"$DRAFTER\"" : "";
}

std::string vllm_speculation(const SpeculationSpec& s) {
  if (!s.active()) return "";
  std::string out = fmt::format(" --speculative-config.method {} --speculative-config.num_speculative_tokens {}",
                                name_of(s.method), s.num_speculative_tokens);
  if (s.method == Method::kNgram) out += " --speculative-config.prompt_lookup_max 4";
  if (const std::string weights = drafter(s); !weights.empty()) out += " --speculative-config.model " + weights;
  return out;
}

std::string sglang_speculation(const SpeculationSpec& s) {
  if (!s.active()) return "";
  const char* algorithm = s.method == Method::kNgram        ? "NGRAM"
                          : s.method == Method::kDraftModel ? "STANDALONE"
                          : s.method == Method::kEagle3     ? "EAGLE3"
                                                            : "EAGLE";  // MTP runs as EAGLE without weights of its own
  std::string out = fmt::format(" --speculative-algorithm {}", algorithm);
  const std::string weights = drafter(s);
  if (!weights.empty()) out += " --speculative-draft-model-path " + weights;
  const int nodes = s.query_len();
  if (s.method == Method::kNgram) return out + fmt::format(" --speculative-num-draft-tokens {}", nodes);
  return out + fmt::format(" --speculative-num-steps {} --speculative-eagle-topk {} --speculative-num-draft-tokens {}",
                           s.num_speculative_tokens, std::max(s.tree_width, 1), nodes);
}

std::string trtllm_speculation(const SpeculationSpec& s) {
  if (!s.active()) return "";
  const char* type = s.method == Method::kNgram        ? "NGram"
                     : s.method == Method::kDraftModel ? "DraftTarget"
                     : s.method == Method::kMtp        ? "MTP"
                                                       : "Eagle3";
  std::string out =
      fmt::format("speculative_config:\n  decoding_type: {}\n  max_draft_len: {}\n", type, s.num_speculative_tokens);
  if (s.method == Method::kDraftModel && s.draft) out += fmt::format("  speculative_model: {}\n", s.draft->model.name);
  if (s.method != Method::kDraftModel && !drafter(s).empty()) out += "  speculative_model: DRAFTER\n";
  return out;
}

/// Whether the engine has such a drafter.
bool can_draft(const SpeculationSpec& s, const std::string& engine) {
  if (s.method == Method::kMedusa) return engine == "vllm";
  if (s.method == Method::kEagle) return engine != "trtllm";  // it takes EAGLE-3 weights only
  return s.method != Method::kSelfDraft && s.method != Method::kDiffusion;
}

/// What cannot be said by flags alone.
std::string speculation_comment(const SpeculationSpec& s, const std::string& engine) {
  if (!s.active()) return "";
  if (!can_draft(s, engine))
    return fmt::format("# {} has no launch flag for {} drafts: left out\n", engine, name_of(s.method));
  if (drafter(s) != "\"$DRAFTER\"") return "";
  return fmt::format("# DRAFTER: {} weights trained for this model\n", name_of(s.method));
}

constexpr int kPrefillPort = 8100, kDecodePort = 8200;

int port_of(Role role) { return role == Role::kPrefill ? kPrefillPort : kDecodePort; }
const char* host_of(Role role) { return role == Role::kPrefill ? "prefill" : "decode"; }

bool eight_bit_cache(const Deployment& d) { return d.precision.kv_cache == Dtype::kFp8; }
bool quantized(const Deployment& d) { return d.precision.weights != d.model.precision.weights; }
/// Weights that vLLM and SGLang quantize while loading a 16-bit checkpoint.
bool fp8_while_loading(const Deployment& d) { return d.precision.weights == Dtype::kFp8 && quantized(d); }

Bytes used(const Deployment& d) { return d.memory.weights + d.memory.activations + d.reserved_memory(); }
Bytes planned(const Deployment& d) { return d.memory.cache + d.memory.states; }
/// The cache that was planned, as each engine is told it: the memory in use of the whole (vLLM), weights and cache of
/// the whole (SGLang), the cache of what is free (TensorRT-LLM). The engine's own setting where its rule is the plan's.
double share_of_total(const Deployment& d) {
  if (d.engine.memory_rule == MemoryRule::kShareOfTotal) return d.engine.gpu_memory_utilization;
  return (used(d) + planned(d)) / d.memory.capacity;
}
double static_share(const Deployment& d) {  // 0: SGLang's own
  if (d.engine.memory_rule == MemoryRule::kStaticShare) return d.engine.gpu_memory_utilization;
  return (d.memory.weights + planned(d)) / d.memory.capacity;
}
double share_of_free(const Deployment& d) {
  if (d.engine.memory_rule == MemoryRule::kShareOfFree) return d.engine.gpu_memory_utilization;
  return planned(d) / std::max(d.memory.capacity - used(d), Bytes(1));
}

std::string vllm(const Launch& l) {
  const Deployment& d = l.d;
  std::string out;
  if (l.role != Role::kWhole)
    out = fmt::format("VLLM_NIXL_SIDE_CHANNEL_HOST=$(hostname) VLLM_NIXL_SIDE_CHANNEL_PORT=5600 ");
  out += fmt::format("vllm serve {} --tensor-parallel-size {}", l.model, d.sharding.tp);
  if (d.sharding.pp > 1) out += fmt::format(" --pipeline-parallel-size {}", d.sharding.pp);
  if (d.sharding.attention_dp > 1) out += fmt::format(" --data-parallel-size {}", d.sharding.attention_dp);
  if (d.sharding.ep > 1) out += " --enable-expert-parallel";
  out += fmt::format(" --max-num-seqs {} --max-num-batched-tokens {} --gpu-memory-utilization {:.3g}",
                     d.engine.max_num_seqs, d.engine.max_num_batched_tokens, share_of_total(d));
  if (d.engine.max_model_len > 0) out += fmt::format(" --max-model-len {}", d.engine.max_model_len);
  if (fp8_while_loading(d)) out += " --quantization fp8";
  if (eight_bit_cache(d)) out += " --kv-cache-dtype fp8";
  out += vllm_speculation(l.speculation);
  if (l.role == Role::kWhole) return out;
  return out + fmt::format(
                   " --port {} --kv-transfer-config "
                   "'{{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"{}\",\"kv_load_failure_policy\":\"fail\"}}'",
                   port_of(l.role), l.role == Role::kPrefill ? "kv_producer" : "kv_consumer");
}

std::string sglang(const Launch& l) {
  const Deployment& d = l.d;
  // SGLang counts the copies of the attention into --tp-size.
  std::string out = fmt::format("python3 -m sglang.launch_server --model-path {} --tp-size {}", l.model,
                                d.sharding.tp * d.sharding.attention_dp);
  if (d.sharding.pp > 1) out += fmt::format(" --pp-size {}", d.sharding.pp);
  if (d.sharding.attention_dp > 1) out += fmt::format(" --dp-size {} --enable-dp-attention", d.sharding.attention_dp);
  if (d.sharding.ep > 1) out += fmt::format(" --ep-size {}", d.sharding.ep);
  // Both of all copies, which SGLang parts.
  const std::int64_t copies = d.sharding.attention_dp;
  out += fmt::format(" --max-running-requests {} --chunked-prefill-size {}", copies * d.engine.max_num_seqs,
                     copies * d.engine.max_num_batched_tokens);
  if (static_share(d) > 0) out += fmt::format(" --mem-fraction-static {:.3g}", static_share(d));
  if (d.engine.max_model_len > 0) out += fmt::format(" --context-length {}", d.engine.max_model_len);
  if (fp8_while_loading(d)) out += " --quantization fp8";
  if (eight_bit_cache(d)) out += " --kv-cache-dtype fp8_e4m3";
  out += sglang_speculation(l.speculation);
  if (l.role == Role::kWhole) return out;
  return out + fmt::format(" --host 0.0.0.0 --port {} --disaggregation-mode {} --disaggregation-transfer-backend nixl",
                           port_of(l.role), host_of(l.role));
}

std::string trtllm(const Launch& l) {
  const Deployment& d = l.d;
  std::string out =
      fmt::format("trtllm-serve {} --backend pytorch --tp_size {}", l.model, d.sharding.tp * d.sharding.attention_dp);
  if (d.sharding.pp > 1) out += fmt::format(" --pp_size {}", d.sharding.pp);
  if (d.sharding.ep > 1) out += fmt::format(" --ep_size {}", d.sharding.ep);
  out += fmt::format(" --max_batch_size {} --max_num_tokens {} --kv_cache_free_gpu_memory_fraction {:.3g}",
                     d.engine.max_num_seqs, d.engine.max_num_batched_tokens, share_of_free(d));
  if (d.engine.max_model_len > 0) out += fmt::format(" --max_seq_len {}", d.engine.max_model_len);
  std::string extra;
  if (d.sharding.attention_dp > 1) extra += "enable_attention_dp: true\n";
  if (eight_bit_cache(d)) extra += "kv_cache_config: {dtype: fp8}\n";
  extra += trtllm_speculation(l.speculation);
  if (l.role == Role::kPrefill) extra += "disable_overlap_scheduler: true\n";  // not supported there
  if (l.role != Role::kWhole)
    extra += fmt::format("cache_transceiver_config: {{backend: NIXL, max_tokens_in_buffer: {}}}\n",
                         (l.longest_prompt + 1023) / 1024 * 1024);
  const std::string file = l.role == Role::kWhole ? "extra.yaml" : fmt::format("{}.yaml", host_of(l.role));
  if (l.role != Role::kWhole) out += fmt::format(" --host 0.0.0.0 --port {}", port_of(l.role));
  if (extra.empty()) return out;
  return fmt::format("cat > {} <<'EOF'\n{}EOF\n{} --extra_llm_api_options {}", file, extra, out, file);
}

std::string worker(const Launch& launch, const std::string& engine) {
  return (engine == "vllm" ? vllm(launch) : engine == "sglang" ? sglang(launch) : trtllm(launch)) + "\n";
}

/// What sends requests to both roles.
std::string front(const std::string& engine, int prefill, int decode) {
  if (engine == "vllm") {
    return fmt::format(
        "# in front: vLLM's example of a proxy, from its source tree\n"
        "python3 tests/v1/kv_connector/nixl_integration/toy_proxy_server.py --port 8000 --prefiller-hosts "
        "prefill-{{1..{0}}} --prefiller-ports $(yes {2} | head -{0}) --decoder-hosts decode-{{1..{1}}} "
        "--decoder-ports $(yes {3} | head -{1})\n",
        prefill, decode, kPrefillPort, kDecodePort);
  }
  if (engine == "sglang") {
    return fmt::format(
        "# in front\n"
        "python3 -m sglang_router.launch_router --pd-disaggregation $(printf -- '--prefill http://prefill-%d:{2} ' "
        "{{1..{0}}}) $(printf -- '--decode http://decode-%d:{3} ' {{1..{1}}}) --host 0.0.0.0 --port 8000\n",
        prefill, decode, kPrefillPort, kDecodePort);
  }
  std::string yaml = "hostname: 0.0.0.0\nport: 8000\nbackend: pytorch\n";
  for (const auto& [role, count] : {std::pair{Role::kPrefill, prefill}, {Role::kDecode, decode}}) {
    yaml += fmt::format("{}:\n  num_instances: {}\n  urls:\n",
                        role == Role::kPrefill ? "context_servers" : "generation_servers", count);
    for (int i = 1; i <= count; ++i) yaml += fmt::format("    - \"{}-{}:{}\"\n", host_of(role), i, port_of(role));
  }
  return fmt::format(
      "# in front\ncat > disagg_config.yaml <<'EOF'\n{}EOF\ntrtllm-serve disaggregated -c "
      "disagg_config.yaml\n",
      yaml);
}

/// How Model Optimizer calls the format (examples/llm_ptq), empty where it has none.
std::string_view optimizer_format(Dtype weights) {
  if (weights == Dtype::kFp8) return "fp8";
  if (weights == Dtype::kNvfp4) return "nvfp4";
  return weights == Dtype::kInt4 ? "int4_awq" : "";
}

/// Where the weights come from, if not from the model's own checkpoint.
std::string checkpoint(const Deployment& d, const std::string& engine, const std::string& model) {
  const bool while_loading = fp8_while_loading(d) && engine != "trtllm";
  if (!quantized(d) || while_loading) return "";
  const std::string_view format = optimizer_format(d.precision.weights);
  if (engine == "trtllm" && d.precision.recipe.empty() && !format.empty()) {
    return fmt::format(
        "# TensorRT-LLM loads weights as they are stored. Quantize them first, in examples/llm_ptq of NVIDIA Model\n"
        "# Optimizer, and serve the folder that it writes:\n"
        "#   scripts/huggingface_example.sh --model {} --quant {} --export_fmt hf\n",
        model, format);
  }
  return fmt::format("# take a checkpoint of this model with {} weights\n",
                     d.precision.recipe.empty() ? std::string(name_of(d.precision.weights)) : d.precision.recipe);
}

std::string place(const char* what, int count, const Deployment& d) {
  return fmt::format("# {} {}{} on {} {} each", count, what, count == 1 ? "" : "s", d.sharding.gpus(), d.gpu.name);
}

std::string disaggregated(const PlannedDeployment& p, const std::string& engine, const std::string& model) {
  const Deployment &prefill = p.candidate.prefill(), &decode = *p.candidate.scenario.deployment;
  const int longest = p.candidate.scenario.workload ? p.candidate.scenario.workload->prompt_tokens.longest() : 8192;
  const Fleet all = p.paid();
  const SpeculationSpec& drafts = p.candidate.scenario.serving.speculation;
  std::string out = checkpoint(decode, engine, model) + speculation_comment(drafts, engine);
  out += place("prefill worker", all.prefill_replicas, prefill) + ", on hosts prefill-1 ...\n";
  out += worker({.d = prefill, .model = model, .role = Role::kPrefill, .longest_prompt = longest}, engine);
  out += place("decode worker", all.replicas, decode) + ", on hosts decode-1 ...\n";
  Launch launch{.d = decode, .model = model, .role = Role::kDecode, .longest_prompt = longest};
  if (can_draft(drafts, engine)) launch.speculation = drafts;
  out += worker(launch, engine);
  return out + front(engine, all.prefill_replicas, all.replicas);
}

}  // namespace

void check_launch_engine(const std::string& engine) {
  if (engine == "vllm" || engine == "sglang" || engine == "trtllm") return;
  throw ConfigError(fmt::format("--emit: must be vllm, sglang or trtllm, got '{}'", engine));
}

std::string launch_command(const PlannedDeployment& p, const std::string& engine, const std::string& model) {
  check_launch_engine(engine);
  const std::string name = shell_word(model);
  if (p.candidate.disaggregated()) return disaggregated(p, engine, name);
  const Deployment& d = *p.candidate.scenario.deployment;
  const SpeculationSpec& drafts = p.candidate.scenario.serving.speculation;
  Launch launch{.d = d, .model = name};
  if (can_draft(drafts, engine)) launch.speculation = drafts;
  return checkpoint(d, engine, name) + speculation_comment(drafts, engine) + place("replica", p.replicas + p.spare, d) +
         ", behind a load balancer\n" + worker(launch, engine);
}

}  // namespace roofcast
