#include "reports/launch_command.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/config_library.h"
#include "base/config_release.h"
#include "base/control_characters.h"
#include "base/error.h"
#include "reports/launch_plan.h"
#include "reports/launch_settings.h"
#include "reports/provenance.h"
#include "sim/plan/launch_limits.h"
#include "sim/step/deployment.h"

namespace roofcast::reports {
namespace {

using Method = SpeculationSpec::Method;
using Words = std::vector<std::string>;

/// What runs on one worker: a whole replica, or one role of a disaggregated fleet.
enum class Role { kWhole, kPrefill, kDecode };

constexpr std::array<std::string_view, 4> kEngines{"vllm", "sglang", "trtllm", "llama-cpp"};
constexpr int kPort = 8000, kPrefillPort = 8100, kDecodePort = 8200, kBootstrapPort = 8998;

struct Launch {
  const Deployment& d;
  EngineSpec plain;  ///< the release's defaults on this GPU
  const ServedWeights& weights;
  const Checkpoints& from;
  Role role = Role::kWhole;
  const ServingOptions& serving;
  int longest_prompt = 0;  ///< tokens
  SpeculationSpec speculation = {};

  bool has_flag(std::string_view engine, std::string_view key) const {
    return has_launch_flag(engine, d.engine.name == engine ? d.engine.version : "", key);
  }
  int gpus() const { return d.sharding.gpus(); }
  int nodes() const { return (gpus() + d.gpu.node.gpus_per_node - 1) / d.gpu.node.gpus_per_node; }
  int gpus_per_node() const { return gpus() / nodes(); }
  int port() const { return role == Role::kPrefill ? kPrefillPort : role == Role::kDecode ? kDecodePort : kPort; }
};

const char* name_of(Role role) {
  return role == Role::kPrefill ? "prefill" : role == Role::kDecode ? "decode" : "server";
}

bool amd(const Deployment& d) { return traits_of(d.gpu.architecture).matrix_units == MatrixUnits::kMfma; }
void add(Words& words, std::initializer_list<std::string> more) { words.insert(words.end(), more); }
std::string text_of(double value) { return fmt::format("{:.3g}", value); }

/// The drafter's weights; empty if it needs none of its own.
std::string drafter(const SpeculationSpec& s, const Checkpoints& from) {
  if (s.method == Method::kDraftModel) return from.drafter.empty() ? "$DRAFTER" : from.drafter;
  const bool heads = s.method == Method::kEagle || s.method == Method::kEagle3 || s.method == Method::kMedusa;
  return heads ? "$DRAFTER" : "";
}

/// Whether the engine supports this drafter and its trees.
bool can_draft(const SpeculationSpec& s, const std::string& engine) {
  const bool tree = s.tree_width > 1;
  if (engine == "llama-cpp") return s.method == Method::kDraftModel && !tree;
  if (engine == "vllm" && tree) return false;
  if (engine == "trtllm" && tree && s.method != Method::kEagle3) return false;
  if (s.method == Method::kMedusa || s.method == Method::kSuffix) return engine == "vllm";
  if (s.method == Method::kEagle) return engine != "trtllm";  // it takes EAGLE-3 weights only
  return s.method != Method::kSelfDraft && s.method != Method::kDiffusion && s.method != Method::kLookahead;
}

void comment_speculation(LaunchPlan& plan, const SpeculationSpec& s, const std::string& engine,
                         const Checkpoints& from) {
  if (!s.active()) return;
  if (!can_draft(s, engine)) {
    plan.comments.push_back(fmt::format("{} has no launch flag for {}{} drafts: left out", engine,
                                        s.tree_width > 1 ? "trees of " : "", roofcast::name_of(s.method)));
  } else if (s.method == Method::kSuffix) {
    plan.comments.emplace_back("suffix drafts need the package arctic-inference, which vLLM's image lacks");
  } else if (engine == "llama-cpp") {
    plan.comments.push_back(
        fmt::format("DRAFTER.gguf: {} as GGUF", from.drafter.empty() ? "the draft model" : from.drafter));
    plan.weights.emplace_back("DRAFTER.gguf");
  } else if (drafter(s, from) == "$DRAFTER") {
    plan.comments.push_back(fmt::format("DRAFTER: {} weights trained for this model", roofcast::name_of(s.method)));
    plan.weights.push_back(engine == "trtllm" ? "DRAFTER" : "$DRAFTER");
  } else if (const std::string weights = drafter(s, from); is_local_folder(weights)) {
    plan.weights.push_back(weights);
  }
}

Bytes used(const Deployment& d) { return d.memory.weights + d.memory.activations + d.reserved_memory(); }
Bytes planned(const Deployment& d) { return d.memory.cache + d.memory.states; }
/// The planned cache in each engine's terms: memory in use of the total (vLLM), weights and cache of the total
/// (SGLang), cache of the free memory (TensorRT-LLM). Returns the engine's own setting if its rule gives the plan.
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

/// The defaults of the deployment's release; or its own engine if the command is for another engine.
EngineSpec plain_release(const Deployment& d, const std::string& engine) {
  if (d.engine.name != engine) return d.engine;
  const std::string release = d.engine.name + (d.engine.version.empty() ? "" : "@" + d.engine.version);
  EngineSpec plain =
      parse_engine_spec(ConfigReader(load_named("engines", release, SourceLocation{"engines", 0, 0}), "an engine"));
  plain.settle(d.gpu, d.sharding);
  return plain;
}

// --- vLLM ----------------------------------------------------------------------------------------------------------

/// Ranks that a slot may have (vllm/config/lora.py, MaxLoRARanks): the smallest that suffices.
int vllm_rank(const AdapterSpec& a) {
  constexpr std::array kRanks{1, 8, 16, 32, 64, 128, 256, 320, 512};
  const auto least = std::find_if(kRanks.begin(), kRanks.end(), [&](int rank) { return rank >= a.slot_rank; });
  if (least == kRanks.end())
    throw ConfigError(
        fmt::format("--emit: vLLM has no slots for adapters of rank {}, {} is the most", a.slot_rank, kRanks.back()));
  return *least;
}

void add_vllm_settings(const Launch& l, Words& w) {
  const EngineSpec &e = l.d.engine, &plain = l.plain;
  add(w, {"--max-num-seqs", std::to_string(e.max_num_seqs), "--max-num-batched-tokens",
          std::to_string(e.max_num_batched_tokens), "--gpu-memory-utilization", text_of(share_of_total(l.d))});
  // A release without `auto` (pull/29431) does not start if the cache holds less than the context.
  const ServedContext context = served_context(l.d);
  const double encoded = l.d.model.encoded_tokens;  // vLLM only counts the decoder's tokens
  if (context.pool_binds())
    add(w,
        {"--max-model-len", is_before(l.d, "vllm", "0.14.0") ? fmt::format("{:.0f}", context.pool - encoded) : "auto"});
  else if (e.max_model_len > 0)
    add(w, {"--max-model-len", fmt::format("{:.0f}", e.max_model_len - encoded)});
  if (l.weights.made_while_loading) add(w, {"--quantization", "fp8"});
  if (const std::string cache = kv_cache_word(l.d, "vllm"); !cache.empty()) add(w, {"--kv-cache-dtype", cache});
  if (e.prefix_caching != plain.prefix_caching)
    add(w, {e.prefix_caching ? "--enable-prefix-caching" : "--no-enable-prefix-caching"});
  if (e.chunked_prefill != plain.chunked_prefill)
    add(w, {e.chunked_prefill ? "--enable-chunked-prefill" : "--no-enable-chunked-prefill"});
  if (e.async_scheduling != plain.async_scheduling)
    add(w, {e.async_scheduling ? "--async-scheduling" : "--no-async-scheduling"});
  if (e.block_size != plain.block_size && e.block_size > 0) add(w, {"--block-size", std::to_string(e.block_size)});
  if (e.stream_interval != plain.stream_interval) add(w, {"--stream-interval", std::to_string(e.stream_interval)});
  if (e.kv_offload > Bytes(0)) add(w, {"--kv-offloading-size", text_of(e.kv_offload / kGibibyte * l.gpus())});
  if (const auto& a = l.d.adapters) {
    add(w, {"--enable-lora", "--max-loras", std::to_string(a->slots), "--max-lora-rank", std::to_string(vllm_rank(*a)),
            "--max-cpu-loras", std::to_string(std::max(a->in_host, a->slots))});
  }
  if (!e.graphs.enabled && plain.graphs.enabled) add(w, {"--enforce-eager"});
  const auto told = [&](std::string_view key) { return l.has_flag("vllm", key); };
  if (e.graphs.enabled && e.graphs.max_batch != plain.graphs.max_batch && told("cuda_graphs.max_batch"))
    add(w, {"--max-cudagraph-capture-size", std::to_string(e.graphs.max_batch)});
  if (e.fused_all_reduce != plain.fused_all_reduce && told("fused_all_reduce"))
    add(w, {"--compilation-config",
            fmt::format(R"({{"pass_config":{{"{}":{}}}}})",
                        is_before(l.d, "vllm", "0.13.0") ? "enable_fi_allreduce_fusion" : "fuse_allreduce_rms",
                        e.fused_all_reduce)});
  if (!e.own_all_reduce && plain.own_all_reduce) add(w, {"--disable-custom-all-reduce"});
  if (e.prompt_must_fit != plain.prompt_must_fit && told("prompt_must_fit"))
    add(w, {e.prompt_must_fit ? "--scheduler-reserve-full-isl" : "--no-scheduler-reserve-full-isl"});
  if (e.watermark != plain.watermark && told("watermark")) add(w, {"--watermark", fmt::format("{:g}", e.watermark)});
  if (e.preemption != plain.preemption && told("preemption")) add(w, {"--preemption-mode", e.preemption});
  if (l.serving.policy == "priority" && told("policy: priority")) add(w, {"--scheduling-policy", "priority"});
}

/// Suffix drafts need a package that the image lacks (vllm/config/speculative.py and
/// docs/features/speculative_decoding/suffix.md).
void add_vllm_speculation(const Launch& l, LaunchProcess& p) {
  const SpeculationSpec& s = l.speculation;
  Words& w = p.words;
  if (!s.active()) return;
  if (s.method == Method::kSuffix) p.setup = {"pip", "install", "arctic-inference==0.1.1"};
  add(w, {"--speculative-config.method", std::string(roofcast::name_of(s.method)),
          "--speculative-config.num_speculative_tokens", std::to_string(s.num_speculative_tokens)});
  if (s.method == Method::kNgram) add(w, {"--speculative-config.prompt_lookup_max", "4"});
  if (const std::string weights = drafter(s, l.from); !weights.empty()) add(w, {"--speculative-config.model", weights});
}

bool exchanges_all_to_all(const Deployment& d) {
  return d.sharding.attention_dp > 1 && d.engine.expert_exchange == ExpertExchange::kAllToAll;
}

/// Attention-DP ranks are data-parallel ranks of the server. A rank that exceeds a node is distributed by Ray before
/// 0.12, and by vLLM's own executor since.
void add_vllm_nodes(const Launch& l, LaunchProcess& p) {
  const Sharding& s = l.d.sharding;
  if (s.dcp > 1) add(p.words, {"--decode-context-parallel-size", std::to_string(s.dcp)});
  if (s.attention_dp > 1) add(p.words, {"--data-parallel-size", std::to_string(s.attention_dp)});
  if (p.nodes == 1) return;
  if (s.attention_dp > 1) {
    const std::string local = std::to_string(s.attention_dp / p.nodes);
    add(p.words, {"--data-parallel-size-local", local, "--data-parallel-address", "$HEAD_ADDRESS",
                  "--data-parallel-rpc-port", "13345"});
    p.further_words = {"--data-parallel-start-rank", "$((NODE_RANK * " + local + "))", "--headless"};
  } else if (is_before(l.d, "vllm", "0.12.0")) {
    add(p.words, {"--distributed-executor-backend", "ray"});
    p.head_first = {"ray", "start", "--head", "--port=6379"};
    p.others = {"ray", "start", "--block", "--address=$HEAD_ADDRESS:6379"};
  } else {
    add(p.words, {"--nnodes", std::to_string(p.nodes), "--node-rank", "$NODE_RANK", "--master-addr", "$HEAD_ADDRESS"});
    p.further_words = {"--headless"};
  }
}

void vllm(const Launch& l, LaunchProcess& p) {
  const Sharding& s = l.d.sharding;
  if (amd(l.d)) p.environment.emplace_back("VLLM_ROCM_USE_AITER", l.d.engine.aiter ? "1" : "0");  // off by default
  if (l.role != Role::kWhole) {
    p.environment.emplace_back("VLLM_NIXL_SIDE_CHANNEL_HOST", "$(hostname -i)");
    p.environment.emplace_back("VLLM_NIXL_SIDE_CHANNEL_PORT", "5600");
  }
  p.image = amd(l.d) ? "rocm/vllm" : "vllm/vllm-openai:v" + l.d.engine.version;
  p.words = {"vllm", "serve", l.weights.name, "--tensor-parallel-size", std::to_string(s.tp)};
  if (s.pp > 1) add(p.words, {"--pipeline-parallel-size", std::to_string(s.pp)});
  add_vllm_nodes(l, p);
  if (s.ep > 1) add(p.words, {"--enable-expert-parallel"});
  if (exchanges_all_to_all(l.d)) {
    const char* mode = l.role == Role::kPrefill ? "deepep_high_throughput" : "deepep_low_latency";
    add(p.words, {"--all2all-backend", mode});
    if (l.d.engine.expert_overlap != ExpertOverlap::kNone) add(p.words, {"--enable-dbo"});
  }
  if (const int copies = s.expert_copies(); copies > 0)
    add(p.words, {"--enable-eplb", "--eplb-config", fmt::format(R"({{"num_redundant_experts":{}}})", copies)});
  add_vllm_settings(l, p.words);
  // vLLM refuses --api-server-count with --headless (vllm/entrypoints/cli/serve.py).
  if (const int servers = l.d.engine.front_ends(s); servers != l.plain.front_ends(s))
    add(p.first_words, {"--api-server-count", std::to_string(servers)});
  add_vllm_speculation(l, p);
  add(p.words, {"--port", std::to_string(p.port)});
  if (l.role == Role::kWhole) return;
  add(p.words, {"--kv-transfer-config",
                fmt::format(R"({{"kv_connector":"NixlConnector","kv_role":"{}","kv_load_failure_policy":"fail"}})",
                            l.role == Role::kPrefill ? "kv_producer" : "kv_consumer")});
}

// --- SGLang --------------------------------------------------------------------------------------------------------

void add_sglang_speculation(const Launch& l, Words& w) {
  const SpeculationSpec& s = l.speculation;
  if (!s.active()) return;
  const char* algorithm = s.method == Method::kNgram        ? "NGRAM"
                          : s.method == Method::kDraftModel ? "STANDALONE"
                          : s.method == Method::kEagle3     ? "EAGLE3"
                                                            : "EAGLE";  // MTP runs as EAGLE without weights of its own
  add(w, {"--speculative-algorithm", algorithm});
  if (const std::string weights = drafter(s, l.from); !weights.empty())
    add(w, {"--speculative-draft-model-path", weights});
  if (s.method != Method::kNgram)
    add(w, {"--speculative-num-steps", std::to_string(s.num_speculative_tokens), "--speculative-eagle-topk",
            std::to_string(std::max(s.tree_width, 1))});
  add(w, {"--speculative-num-draft-tokens", std::to_string(s.query_len())});
}

/// The merged modules of products. Those of routed experts have the names of a dense feed-forward block
/// (python/sglang/srt/utils/common.py, SUPPORTED_LORA_TARGET_MODULES; lora/utils.py, where FusedMoE has gate_up_proj
/// and down_proj; pull/14105).
Words sglang_modules(const AdapterSpec& a) {
  Words modules;
  const auto add_new = [&](std::initializer_list<std::string> names) {
    for (const std::string& name : names) {
      if (std::find(modules.begin(), modules.end(), name) == modules.end()) modules.push_back(name);
    }
  };
  for (const std::string& target : a.targets) {
    if (target == "qkv_proj") {
      add_new({"q_proj", "k_proj", "v_proj"});
    } else if (target == "gate_up_proj" || target == "experts_gate_up") {
      add_new({"gate_proj", "up_proj"});
    } else {
      add_new({target == "experts_down" ? "down_proj" : target});
    }
  }
  return modules;
}

/// Chunk size per attention-DP rank. SGLang requires whole pages ("chunked_prefill_size must be divisible by
/// page_size", python/sglang/srt/server_args.py, after dividing the flag's value by the ranks), so it is rounded down:
/// a longer chunk might exceed the forecast's memory.
int sglang_chunk(const EngineSpec& e) {
  const int page = std::max(1, e.block_size);
  return std::max(page, e.max_num_batched_tokens / page * page);
}

void add_sglang_settings(const Launch& l, Words& w) {
  const EngineSpec &e = l.d.engine, &plain = l.plain;
  const std::int64_t copies = l.d.sharding.attention_dp;  // both for all ranks; SGLang divides them
  add(w, {"--max-running-requests", std::to_string(copies * e.max_num_seqs)});
  if (e.chunked_prefill) {
    add(w, {"--chunked-prefill-size", std::to_string(copies * sglang_chunk(e))});
  } else {
    add(w, {"--chunked-prefill-size", "-1", "--max-prefill-tokens", std::to_string(copies * e.max_num_batched_tokens)});
  }
  const auto told = [&](std::string_view key) { return l.has_flag("sglang", key); };
  if (e.kv_offload > Bytes(0) && told("kv_offload"))  // of a rank
    add(w, {"--enable-hierarchical-cache", "--hicache-size",
            std::to_string(std::max(1, static_cast<int>(e.kv_offload.base() / 1e9)))});
  if (e.state_memory_ratio != plain.state_memory_ratio && told("state_memory_ratio"))
    add(w, {"--mamba-full-memory-ratio", fmt::format("{:g}", e.state_memory_ratio)});
  if (e.scheduler == "mixed_chunk" && plain.scheduler != e.scheduler) add(w, {"--enable-mixed-chunk"});
  if (!e.own_all_reduce && plain.own_all_reduce) add(w, {"--disable-custom-all-reduce"});
  if (l.serving.max_queue > 0 && told("max_queue"))
    add(w, {"--max-queued-requests", std::to_string(l.serving.max_queue)});
  if (l.serving.policy == "priority" && told("policy: priority"))
    add(w, {"--enable-priority-scheduling", "--schedule-low-priority-values-first"});
  if (static_share(l.d) > 0) add(w, {"--mem-fraction-static", text_of(static_share(l.d))});
  if (e.max_model_len > 0) add(w, {"--context-length", std::to_string(e.max_model_len)});
  if (l.weights.made_while_loading) add(w, {"--quantization", "fp8"});
  if (const std::string cache = kv_cache_word(l.d, "sglang"); !cache.empty()) add(w, {"--kv-cache-dtype", cache});
  if (!e.prefix_caching && plain.prefix_caching) add(w, {"--disable-radix-cache"});
  if (!e.async_scheduling && plain.async_scheduling) add(w, {"--disable-overlap-schedule"});
  if (e.block_size != plain.block_size && e.block_size > 0) add(w, {"--page-size", std::to_string(e.block_size)});
  if (e.stream_interval != plain.stream_interval) add(w, {"--stream-interval", std::to_string(e.stream_interval)});
  if (const int servers = e.front_ends(l.d.sharding); servers != plain.front_ends(l.d.sharding))
    add(w, {"--tokenizer-worker-num", std::to_string(servers), "--detokenizer-worker-num", std::to_string(servers)});
  if (e.receive_interval != plain.receive_interval)
    add(w, {"--scheduler-recv-interval", std::to_string(e.receive_interval)});
  if (const auto& a = l.d.adapters) {
    add(w, {"--enable-lora", "--max-loras-per-batch", std::to_string(a->slots), "--max-lora-rank",
            std::to_string(a->slot_rank), "--max-loaded-loras", std::to_string(std::max(a->in_host, a->slots)),
            "--lora-target-modules"});
    for (const std::string& module : sglang_modules(*a)) w.push_back(module);
  }
  if (e.attention_dp_balance && copies > 1)
    add(w, {"--enable-prefill-delayer", "--prefill-delayer-max-delay-passes",
            std::to_string(std::max(1, e.prefill_wait_steps))});
  if (!e.graphs.enabled && plain.graphs.enabled) add(w, {"--disable-cuda-graph"});
  if (e.graphs.enabled && e.graphs.max_batch != plain.graphs.max_batch)
    add(w, {"--cuda-graph-max-bs", std::to_string(e.graphs.max_batch)});
  if (e.fused_all_reduce && !plain.fused_all_reduce) add(w, {"--enable-flashinfer-allreduce-fusion"});
}

void sglang(const Launch& l, LaunchProcess& p) {
  const Sharding& s = l.d.sharding;
  if (amd(l.d)) p.environment.emplace_back("SGLANG_USE_AITER", l.d.engine.aiter ? "1" : "0");
  p.image = amd(l.d) ? "rocm/sgl-dev" : "lmsysorg/sglang:v" + l.d.engine.version;
  // SGLang includes attention-DP in --tp-size.
  p.words = {"python3",
             "-m",
             "sglang.launch_server",
             "--model-path",
             l.weights.name,
             "--tp-size",
             std::to_string(s.tp * s.attention_dp)};
  if (s.pp > 1) add(p.words, {"--pp-size", std::to_string(s.pp)});
  if (s.attention_dp > 1) add(p.words, {"--dp-size", std::to_string(s.attention_dp), "--enable-dp-attention"});
  if (s.ep > 1) add(p.words, {"--ep-size", std::to_string(s.ep)});
  if (exchanges_all_to_all(l.d)) {
    add(p.words, {"--moe-a2a-backend", "deepep"});
    const ExpertOverlap overlap = l.d.engine.expert_overlap;
    if (overlap == ExpertOverlap::kSingleBatch) add(p.words, {"--enable-single-batch-overlap"});
    if (overlap == ExpertOverlap::kTwoBatch || overlap == ExpertOverlap::kDualBatch)
      add(p.words, {"--enable-two-batch-overlap"});
  }
  if (const int copies = s.expert_copies(); copies > 0)
    add(p.words, {"--enable-eplb", "--ep-num-redundant-experts", std::to_string(copies)});
  if (p.nodes > 1)
    add(p.words,
        {"--nnodes", std::to_string(p.nodes), "--node-rank", "$NODE_RANK", "--dist-init-addr", "$HEAD_ADDRESS:5000"});
  add_sglang_settings(l, p.words);
  add_sglang_speculation(l, p.words);
  add(p.words, {"--host", "0.0.0.0", "--port", std::to_string(p.port)});
  if (l.role == Role::kWhole) return;
  add(p.words, {"--disaggregation-mode", name_of(l.role), "--disaggregation-transfer-backend", "nixl"});
  if (l.role == Role::kPrefill) add(p.words, {"--disaggregation-bootstrap-port", std::to_string(kBootstrapPort)});
}

// --- TensorRT-LLM --------------------------------------------------------------------------------------------------

/// Releases before 1.2 know EAGLE-3 as a kind of EAGLE, and the drafter as a folder (llm_args.py,
/// EagleDecodingConfig, speculative_model_dir).
std::string trtllm_speculation(const Launch& l) {
  const SpeculationSpec& s = l.speculation;
  if (!s.active()) return "";
  const bool older = is_before(l.d, "trtllm", "1.2.0");
  const char* type = s.method == Method::kNgram ? "NGram"
                     : s.method == Method::kDraftModel
                         ? (is_before(l.d, "trtllm", "1.1.0") ? "DraftTarget" : "Draft_Target")
                     : s.method == Method::kMtp ? "MTP"
                     : older                    ? "Eagle"
                                                : "Eagle3";
  std::string out = fmt::format("speculative_config:\n  decoding_type: {}\n", type);
  out += s.method == Method::kMtp ? fmt::format("  num_nextn_predict_layers: {}\n", s.num_speculative_tokens)
                                  : fmt::format("  max_draft_len: {}\n", s.num_speculative_tokens);
  if (s.tree_width > 1)
    out += fmt::format("  use_dynamic_tree: true\n  dynamic_tree_max_topK: {}\n  max_total_draft_tokens: {}\n",
                       s.tree_width, s.query_len() - 1);
  if (const std::string weights = drafter(s, l.from); !weights.empty())
    out += fmt::format("  {}: {}\n", older ? "speculative_model_dir" : "speculative_model",
                       weights == "$DRAFTER" ? "DRAFTER" : yaml_text(weights));
  return out;
}

/// Options without a command-line flag, and the memory fraction: kv_cache_config in this file replaces all cache flags
/// (llm_args.py, update_llm_args_with_extra_dict). The release's defaults are graphs up to 128 sequences without
/// padding, and no chunked prefill (CudaGraphConfig, enable_chunked_prefill).
std::string trtllm_options(const Launch& l) {
  const EngineSpec &e = l.d.engine, &plain = l.plain;
  const auto told = [&](std::string_view key) { return l.has_flag("trtllm", key); };
  std::string out;
  if (l.d.sharding.attention_dp > 1) {
    out += "enable_attention_dp: true\n";
    if (e.attention_dp_balance)
      out += fmt::format("attention_dp_config: {{enable_balance: true, timeout_iters: {}, batching_wait_iters: {}}}\n",
                         std::max(1, e.prefill_wait_steps), e.prefill_batch_steps);
  }
  if (!e.graphs.enabled) {
    out += "cuda_graph_config: null\n";
  } else if (!e.graphs.padded_sizes.empty() && e.graphs.padded_sizes != plain.graphs.padded_sizes) {
    out += fmt::format("cuda_graph_config: {{enable_padding: true, batch_sizes: [{}]}}\n",
                       fmt::join(e.graphs.padded_sizes, ", "));
  } else {
    out += fmt::format("cuda_graph_config: {{enable_padding: true, max_batch_size: {}}}\n",
                       std::min(e.graphs.max_batch, e.max_num_seqs));
  }
  if (e.chunked_prefill) out += "enable_chunked_prefill: true\n";
  const std::string cache = kv_cache_word(l.d, "trtllm");
  std::string more;
  if (e.block_size != plain.block_size && e.block_size > 0 && told("block_size"))
    more += fmt::format(", tokens_per_block: {}", e.block_size);
  if (e.kv_offload > Bytes(0)) more += fmt::format(", host_cache_size: {:.0f}", e.kv_offload.base());  // of a rank
  out += fmt::format("kv_cache_config: {{{}enable_block_reuse: {}, free_gpu_memory_fraction: {}{}}}\n",
                     cache.empty() ? "" : fmt::format("dtype: {}, ", cache), e.prefix_caching,
                     text_of(share_of_free(l.d)), more);
  if (e.postprocess_workers != plain.postprocess_workers)
    out += fmt::format("num_postprocess_workers: {}\n", e.postprocess_workers);
  if (e.prefill_wait_steps != plain.prefill_wait_steps && told("prefill_wait_steps"))
    out += fmt::format("batch_wait_timeout_iters: {}\n", e.prefill_wait_steps);
  if (e.prefill_wait_ratio != plain.prefill_wait_ratio && told("prefill_wait_ratio"))
    out += fmt::format("batch_wait_max_tokens_ratio: {:g}\n", e.prefill_wait_ratio);
  if (!e.own_all_reduce && plain.own_all_reduce) out += "allreduce_strategy: NCCL\n";
  if (e.stream_interval > 1) out += fmt::format("stream_interval: {}\n", e.stream_interval);
  if (const auto& a = l.d.adapters)
    out += fmt::format("lora_config: {{max_loras: {}, max_lora_rank: {}, max_cpu_loras: {}}}\n", a->slots, a->slot_rank,
                       std::max(a->in_host, a->slots));
  out += trtllm_speculation(l);
  const bool serial = l.role == Role::kPrefill || !e.async_scheduling;  // prefill workers have no overlap scheduler
  if (serial) out += "disable_overlap_scheduler: true\n";
  if (l.role != Role::kWhole)
    out += fmt::format("cache_transceiver_config: {{backend: NIXL, max_tokens_in_buffer: {}}}\n",
                       (l.longest_prompt + 1023) / 1024 * 1024);
  return out;
}

void trtllm(const Launch& l, LaunchProcess& p) {
  const Sharding& s = l.d.sharding;
  p.image = "nvcr.io/nvidia/tensorrt-llm/release:" + l.d.engine.version;
  if (l.d.engine.graphs.dependent_launch != l.plain.graphs.dependent_launch)
    p.environment.emplace_back("TRTLLM_ENABLE_PDL", l.d.engine.graphs.dependent_launch ? "1" : "0");
  p.words = {"trtllm-serve", l.weights.name, "--backend",
             "pytorch",      "--tp_size",    std::to_string(s.tp * s.attention_dp)};
  if (s.pp > 1) add(p.words, {"--pp_size", std::to_string(s.pp)});
  if (s.ep > 1) add(p.words, {"--ep_size", std::to_string(s.ep)});
  if (p.nodes > 1) {
    p.prefix =
        fmt::format("mpirun -n {} --npernode {} --hostfile hostfile trtllm-llmapi-launch ", l.gpus(), p.gpus_per_node);
    add(p.words, {"--gpus_per_node", std::to_string(p.gpus_per_node)});
  }
  add(p.words, {"--max_batch_size", std::to_string(l.d.engine.max_num_seqs), "--max_num_tokens",
                std::to_string(l.d.engine.max_num_batched_tokens)});
  if (l.d.engine.max_model_len > 0) add(p.words, {"--max_seq_len", std::to_string(l.d.engine.max_model_len)});
  add(p.words, {"--host", "0.0.0.0", "--port", std::to_string(p.port)});
  const std::string file = l.role == Role::kWhole ? "extra.yaml" : fmt::format("{}.yaml", name_of(l.role));
  p.files.push_back({file, trtllm_options(l)});
  add(p.words, {"--extra_llm_api_options", file});
}

// --- llama.cpp -----------------------------------------------------------------------------------------------------

/// The draft model. Builds since April 2026 have no --draft-max, and draft only if a type is given
/// (github.com/ggml-org/llama.cpp/pull/22397 and pull/22964).
void add_llama_cpp_drafts(const Launch& l, Words& words) {
  const std::string tokens = std::to_string(l.speculation.num_speculative_tokens);
  const std::string& version = l.d.engine.version;
  const bool older = !version.empty() && compare_versions(version, "9265") < 0;
  if (!older) add(words, {"--spec-type", "draft-simple"});
  add(words, {"--model-draft", "DRAFTER.gguf", older ? "--draft-max" : "--spec-draft-n-max", tokens});
}

/// The server allocates the memory of all slots at start; --ctx-size is their total. In a unified cache a slot takes
/// what it needs; separate caches have ctx-size / parallel tokens each (src/llama-context.cpp, n_ctx_seq).
void llama_cpp(const Launch& l, LaunchProcess& p) {
  const EngineSpec& e = l.d.engine;
  const double context = std::max(1.0, served_context(l.d).asked);
  const bool unified = e.block_size > 0;
  const int room = static_cast<int>(std::min(1e6, l.d.memory.max_batch(context, e.block_size))),
            slots = unified ? e.max_num_seqs : std::max(1, std::min(e.max_num_seqs, room));
  const double cells =
      unified ? std::min(slots * context, std::floor(l.d.memory.max_context(e.block_size))) : slots * context;
  p.image = "ghcr.io/ggml-org/llama.cpp:server-cuda";
  p.words = {"llama-server",
             "--model",
             l.weights.name,
             "--n-gpu-layers",
             "999",
             "--parallel",
             std::to_string(slots),
             "--ctx-size",
             fmt::format("{:.0f}", cells),
             "--batch-size",
             std::to_string(e.max_num_batched_tokens),
             "--flash-attn",
             "on"};
  if (unified && slots > 1) add(p.words, {"--kv-unified"});
  if (l.d.sharding.tp > 1) add(p.words, {"--split-mode", "tensor"});
  if (l.d.sharding.tp == 1 && l.d.sharding.pp > 1) add(p.words, {"--split-mode", "layer"});
  if (const std::string cache = kv_cache_word(l.d, "llama-cpp"); !cache.empty())
    add(p.words, {"--cache-type-k", cache, "--cache-type-v", cache});
  if (l.speculation.active()) add_llama_cpp_drafts(l, p.words);
  add(p.words, {"--host", "0.0.0.0", "--port", std::to_string(p.port)});
}

// --- the fleet -----------------------------------------------------------------------------------------------------

LaunchProcess process_of(const Launch& l, const std::string& engine, int copies) {
  LaunchProcess p{.name = name_of(l.role), .copies = copies, .nodes = l.nodes(), .gpus_per_node = l.gpus_per_node()};
  p.port = l.port();
  p.environment = weight_only_environment(l.d, engine);
  if (engine == "vllm") vllm(l, p);
  if (engine == "sglang") sglang(l, p);
  if (engine == "trtllm") trtllm(l, p);
  if (engine == "llama-cpp") {
    if (p.nodes > 1) throw ConfigError("--emit: llama-server runs on one node");
    llama_cpp(l, p);
  }
  return p;
}

/// The engine's own router, which sends requests to both roles.
LaunchProcess router_of(const std::string& engine, const std::string& version, int prefill, int decode) {
  LaunchProcess p{.name = "router"};
  if (engine == "trtllm") {
    std::string yaml = "hostname: 0.0.0.0\nport: 8000\nbackend: pytorch\n";
    for (const auto& [role, count] : {std::pair{Role::kPrefill, prefill}, {Role::kDecode, decode}}) {
      yaml += fmt::format("{}:\n  num_instances: {}\n  urls:\n",
                          role == Role::kPrefill ? "context_servers" : "generation_servers", count);
      for (int i = 1; i <= count; ++i)
        yaml +=
            fmt::format("    - \"{}-{}:{}\"\n", name_of(role), i, role == Role::kPrefill ? kPrefillPort : kDecodePort);
    }
    p.image = "nvcr.io/nvidia/tensorrt-llm/release:" + version;
    p.files.push_back({"disagg_config.yaml", yaml});
    p.words = {"trtllm-serve", "disaggregated", "-c", "disagg_config.yaml"};
    return p;
  }
  const bool sgl = engine == "sglang";
  p.image = sgl ? "lmsysorg/sglang:v" + version : "vllm/vllm-router";
  p.words = sgl ? Words{"python3", "-m", "sglang_router.launch_router", "--pd-disaggregation"}
                : Words{"vllm-router", "--vllm-pd-disaggregation"};
  for (int i = 1; i <= prefill; ++i) {
    add(p.words, {"--prefill", fmt::format("http://prefill-{}:{}", i, kPrefillPort)});
    if (sgl) add(p.words, {std::to_string(kBootstrapPort)});
  }
  for (int i = 1; i <= decode; ++i) add(p.words, {"--decode", fmt::format("http://decode-{}:{}", i, kDecodePort)});
  add(p.words, {"--host", "0.0.0.0", "--port", std::to_string(p.port)});
  return p;
}

/// Describes the forecast's routing rule if it is not round robin.
std::string balancer_text(const ServingOptions& serving) {
  const std::span<const RouterKind> kinds = routers();
  const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.name == serving.router; });
  return serving.router == "round_robin" || kind == kinds.end()
             ? "behind a load balancer"
             : fmt::format("behind a load balancer that picks as '{}' does: {}", serving.router, kind->help);
}

/// Comments on what the command of this process cannot express, for a whole deployment or one role.
void comment_settings(LaunchPlan& plan, const Launch& l, const std::string& engine) {
  for (const std::string& line : settings_not_set(l.d, l.plain, l.serving, engine)) {
    const std::string text = l.role == Role::kWhole ? line : fmt::format("{}: {}", name_of(l.role), line);
    plan.comments.push_back(text);
  }
  if (engine == "sglang" && l.d.engine.kv_offload > Bytes(0) && l.d.engine.kv_offload <= planned(l.d))
    plan.comments.emplace_back("SGLang refuses to start where the host's cache is not larger than the GPU's");
  const EngineSpec& e = l.d.engine;
  if (const int chunk = sglang_chunk(e); engine == "sglang" && e.chunked_prefill && chunk != e.max_num_batched_tokens)
    plan.comments.push_back(fmt::format(
        "{}chunks of {} tokens, not the forecast's {}: they must be a multiple of SGLang's pages of {} tokens",
        l.role == Role::kWhole ? "" : fmt::format("{}: ", name_of(l.role)), chunk, e.max_num_batched_tokens,
        e.block_size));
}

/// Before 1.0, TensorRT-LLM renames options in nearly every release: use_cuda_graph and cuda_graph_padding_enabled
/// became cuda_graph_config (github.com/NVIDIA/TensorRT-LLM/pull/5014), in which padding_enabled became enable_padding
/// (pull/6003).
void check_options_known(const Deployment& d, const std::string& engine) {
  if (engine == "trtllm" && is_before(d, "trtllm", "1.0.0"))
    throw ConfigError(
        fmt::format("--emit: options of TensorRT-LLM are known from 1.0 on, not of {}", d.engine.version));
}

/// Names and versions of files, which may be a stranger's, become words of a shell, in which `$` is a variable's.
void check_word(const char* what, const std::string& word) {
  const bool plain = word.find_first_of("$`\"\\\n\t") == std::string::npos && without_controls(word) == word;
  if (!plain || word.starts_with('-'))
    throw ConfigError(fmt::format("--emit: the {} '{}' is no word for a command", what, word));
}

std::string plural(int count, const char* what) { return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s"); }

}  // namespace

void check_launch_engine(const std::string& engine) {
  if (std::find(kEngines.begin(), kEngines.end(), engine) != kEngines.end()) return;
  throw ConfigError(fmt::format("--emit: must be vllm, sglang, trtllm or llama-cpp, got '{}'", engine));
}

LaunchPlan launch_plan(const PlannedDeployment& p, const std::string& engine, const Checkpoints& from) {
  check_launch_engine(engine);
  check_options_known(*p.candidate.scenario.deployment, engine);
  check_word("checkpoint", from.model);
  check_word("drafter", from.drafter);
  check_word("version", p.candidate.scenario.deployment->engine.version);
  const ServingOptions& serving = p.candidate.scenario.serving;
  const bool by_tokens = p.candidate.scenario.deployment->sharding.dcp > 1 ||
                         (p.candidate.disaggregated() && p.candidate.prefill().sharding.dcp > 1);
  if (by_tokens && engine != "vllm")
    throw ConfigError(fmt::format("--emit: how {} shares a cache by tokens (dcp) is not known", engine));
  LaunchPlan plan;
  const Deployment& decode = *p.candidate.scenario.deployment;
  plan.gpu_resource = amd(decode) ? "amd.com/gpu" : "nvidia.com/gpu";
  plan.comments.push_back(fmt::format("planned for {}", engine_name(decode.engine)));
  if (!from.note.empty()) plan.comments.push_back(from.note);
  ServedWeights served = served_weights(decode, engine, from);
  if (p.candidate.disaggregated() && served.made_while_loading)
    served = served_weights(p.candidate.prefill(), engine, from);
  plan.comments.insert(plan.comments.end(), served.comments.begin(), served.comments.end());
  if (served.local) plan.weights.push_back(served.name);
  if (const ServedContext context = served_context(decode); engine == "vllm" && context.pool_binds())
    plan.comments.push_back(context_text(decode, context));
  const SpeculationSpec& drafts = p.candidate.scenario.serving.speculation;
  comment_speculation(plan, drafts, engine, from);
  const SpeculationSpec used_drafts = can_draft(drafts, engine) ? drafts : SpeculationSpec{};
  if (!p.candidate.disaggregated()) {
    const int replicas = p.replicas + p.spare;
    plan.comments.push_back(fmt::format("{} on {} {}{}", plural(replicas, "replica"), decode.sharding.gpus(),
                                        decode.gpu.name, replicas == 1 ? "" : " each, " + balancer_text(serving)));
    const Launch launch{.d = decode,
                        .plain = plain_release(decode, engine),
                        .weights = served,
                        .from = from,
                        .serving = serving,
                        .speculation = used_drafts};
    comment_settings(plan, launch, engine);
    plan.processes.push_back(process_of(launch, engine, p.replicas + p.spare));
    return plan;
  }
  if (engine == "llama-cpp") throw ConfigError("--emit: llama-server has no separate prefill workers");
  const Deployment& prefill = p.candidate.prefill();
  const int longest = p.candidate.scenario.workload ? p.candidate.scenario.workload->prompt_tokens.longest() : 8192;
  const Fleet all = p.paid();
  plan.comments.push_back(fmt::format("{} on {} {} each, on hosts prefill-1 ...",
                                      plural(all.prefill_replicas, "prefill worker"), prefill.sharding.gpus(),
                                      prefill.gpu.name));
  plan.comments.push_back(fmt::format("{} on {} {} each, on hosts decode-1 ...", plural(all.replicas, "decode worker"),
                                      decode.sharding.gpus(), decode.gpu.name));
  Launch launch{.d = prefill,
                .plain = plain_release(prefill, engine),
                .weights = served,
                .from = from,
                .role = Role::kPrefill,
                .serving = serving,
                .longest_prompt = longest};
  // vLLM also transfers the drafter's cache, so both roles need its layers.
  if (engine == "vllm") launch.speculation = used_drafts;
  comment_settings(plan, launch, engine);
  plan.processes.push_back(process_of(launch, engine, all.prefill_replicas));
  const Launch decoding{.d = decode,
                        .plain = plain_release(decode, engine),
                        .weights = served,
                        .from = from,
                        .role = Role::kDecode,
                        .serving = serving,
                        .longest_prompt = longest,
                        .speculation = used_drafts};
  comment_settings(plan, decoding, engine);
  plan.processes.push_back(process_of(decoding, engine, all.replicas));
  plan.processes.push_back(router_of(engine, decode.engine.version, all.prefill_replicas, all.replicas));
  return plan;
}

std::string launch_command(const PlannedDeployment& p, const std::string& engine, const Checkpoints& from,
                           const std::string& form) {
  const LaunchPlan plan = launch_plan(p, engine, from);
  if (form == "shell") return as_shell(plan);
  if (form == "compose") return as_compose(plan);
  if (form == "kubernetes") return as_kubernetes(plan);
  throw ConfigError(fmt::format("--emit-as: must be shell, compose or kubernetes, got '{}'", form));
}

}  // namespace roofcast::reports
