#include "sim/step/engine_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/config_library.h"
#include "base/text.h"
#include "hw/kernel_rules.h"
#include "hw/kernels/gemm/gemm_kernel.h"
#include "hw/rooflines.h"

namespace roofcast {
namespace {

HostCosts parse_host(ConfigReader in) {
  const Seconds none{};
  HostCosts host{.step_time = in.time("step_time", none),
                 .sequence_time = in.time("sequence_time", none),
                 .scheduler_time = in.time("scheduler_time", none),
                 .scheduler_sequence_time = in.time("scheduler_sequence_time", none),
                 .worker_time = in.time("worker_time", none),
                 .prefill_step_time = in.time("prefill_step_time", none),
                 .launch_time = in.time("launch_time", none),
                 .request_time = in.time("request_time", none),
                 .request_latency = in.time("request_latency", none),
                 .token_time = in.time("token_time", none),
                 .prompt_token_time = in.time("prompt_token_time", none),
                 .graph_gap = in.time("graph_gap", none),
                 .rank_skew = in.time("rank_skew", none),
                 .scatter = in.number("scatter", 0.0, {0.0, 2.0})};
  in.finish();
  return host;
}

/// A name in configs/front-ends, a file or a map: the costs of the front end.
void take_front_end(HostCosts& host, const ConfigTree& value) {
  ConfigReader in(resolve_named("front-ends", value), "a front end");
  for (const char* key : {"name", "help", "source"}) in.ignore(key);
  host.request_time = in.time("request_time");
  host.request_latency = in.time("request_latency");
  host.token_time = in.time("token_time");
  host.prompt_token_time = in.time("prompt_token_time");
  in.finish();
}

int small_integer(ConfigReader& in, std::string_view key, int default_value, double low) {
  return static_cast<int>(in.integer(key, default_value, {low, 16777216.0}));
}

/// `prefill_tokens: max_batch`: the largest captured size limits the tokens of any step, as in vLLM.
GraphSettings parse_graphs(ConfigReader in) {
  GraphSettings graphs;
  graphs.enabled = in.boolean("enabled", true);
  graphs.max_batch = static_cast<int>(in.integer("max_batch", graphs.max_batch, {0, 1 << 20}));
  const bool any_step = in.has("prefill_tokens") && in.text("prefill_tokens") == "max_batch";
  graphs.prefill_tokens = any_step ? graphs.max_batch : small_integer(in, "prefill_tokens", graphs.prefill_tokens, 0);
  graphs.dependent_launch = in.boolean("dependent_launch", graphs.dependent_launch);
  graphs.plain_prefill = in.boolean("plain_prefill", graphs.plain_prefill);
  for (double size : in.numbers("padded_sizes", {1.0, 1 << 20})) {
    if (size != std::floor(size))
      throw ConfigError(in.mark_of("padded_sizes"), fmt::format("'padded_sizes' must be whole numbers, got {}", size));
    graphs.padded_sizes.push_back(static_cast<int>(size));
  }
  std::sort(graphs.padded_sizes.begin(), graphs.padded_sizes.end());
  in.finish();
  return graphs;
}

constexpr Bytes kMostHostMemory{1e15};  ///< per GPU; the total of a replica still fits in 64 bits

/// Settings that are given apply to every GPU.
std::vector<GpuDefaults> parse_by_gpu(ConfigReader& in) {
  const bool seqs = in.has("max_num_seqs"), tokens = in.has("max_num_batched_tokens"), speed = in.has("launch_speed"),
             fused = in.has("fused_all_reduce");
  const auto graphs = in.tree("cuda_graphs");
  const bool batch = graphs && graphs->find("max_batch") != nullptr;
  std::vector<GpuDefaults> entries;
  for (const ConfigTree& tree : in.list("by_gpu")) {
    ConfigReader entry(tree, "defaults by GPU");
    const std::string architecture = entry.text("architecture", "");
    GpuDefaults d{.below = entry.bytes("below", Bytes(0)),
                  .architecture = architecture.empty()
                                      ? std::nullopt
                                      : std::optional(parse_architecture(architecture, entry.mark_of("architecture"))),
                  .gpu = entry.text("gpu", ""),
                  .tp_below = small_integer(entry, "tp_below", 0, 0),
                  .max_num_seqs = small_integer(entry, "max_num_seqs", 0, 1),
                  .max_num_batched_tokens = small_integer(entry, "max_num_batched_tokens", 0, 1),
                  .graph_batch = small_integer(entry, "graph_batch", 0, 1),
                  .launch_speed = entry.number("launch_speed", 0.0, {0.05, 20.0}),
                  .fused_all_reduce = entry.boolean("fused_all_reduce", false)};
    entry.finish();
    if (d.max_num_seqs == 0 && d.max_num_batched_tokens == 0 && d.graph_batch == 0 && d.launch_speed == 0 &&
        !d.fused_all_reduce)
      throw ConfigError(tree->mark,
                        "an entry of 'by_gpu' sets at least one of max_num_seqs, max_num_batched_tokens, "
                        "graph_batch, launch_speed, fused_all_reduce");
    if (seqs) d.max_num_seqs = 0;
    if (tokens) d.max_num_batched_tokens = 0;
    if (batch) d.graph_batch = 0;
    if (speed) d.launch_speed = 0;
    if (fused) d.fused_all_reduce = false;
    entries.push_back(d);
  }
  return entries;
}

void parse_batching(ConfigReader& in, EngineSpec& e) {
  e.scheduler = in.text("scheduler", e.scheduler);
  e.by_gpu = parse_by_gpu(in);
  e.max_num_seqs = small_integer(in, "max_num_seqs", e.max_num_seqs, 1);
  e.max_num_batched_tokens = small_integer(in, "max_num_batched_tokens", e.max_num_batched_tokens, 1);
  e.launch_speed = in.number("launch_speed", e.launch_speed, {0.05, 20.0});
  e.chunked_prefill = in.boolean("chunked_prefill", e.chunked_prefill);
  e.batch_wait = in.time("batch_wait", e.batch_wait);
  if (e.batch_wait < Seconds(0)) in.fail("batch_wait", "must be at least 0");
  e.stream_interval = small_integer(in, "stream_interval", e.stream_interval, 1);
  e.async_scheduling = in.boolean("async_scheduling", e.async_scheduling);
  static constexpr std::array<std::string_view, 3> kAsyncDrafts{"none", "layers", "all"};
  e.async_drafts =
      static_cast<AsyncDrafts>(in.choice("async_drafts", kAsyncDrafts, static_cast<std::size_t>(e.async_drafts)));
  e.async_pipelines = in.boolean("async_pipelines", e.async_pipelines);
  e.scheduler_launches = in.boolean("scheduler_launches", e.scheduler_launches);
  e.prefill_wait_ratio = in.number("prefill_wait_ratio", e.prefill_wait_ratio, kFraction);
  e.prefill_wait_steps = small_integer(in, "prefill_wait_steps", e.prefill_wait_steps, 0);
  e.attention_dp_balance = in.boolean("attention_dp_balance", e.attention_dp_balance);
  e.prefill_batch_steps = small_integer(in, "prefill_batch_steps", e.prefill_batch_steps, 0);
  static constexpr std::array<std::string_view, 2> kRankChoices{"fewest", "in_turn"};
  e.rank_choice = static_cast<RankChoice>(in.choice("rank_choice", kRankChoices, 0));
  e.receive_interval = small_integer(in, "receive_interval", e.receive_interval, 1);
  e.postprocess_workers = small_integer(in, "postprocess_workers", e.postprocess_workers, 0);
  e.mtp_drafts = small_integer(in, "mtp_drafts", e.mtp_drafts, 0);
  const std::string servers = in.text("api_servers", "1");
  if (servers != "per_rank" && servers.find_first_not_of("0123456789") != std::string::npos)
    in.fail("api_servers", "'api_servers' must be a whole number, or per_rank: one for each copy of the attention");
  e.api_servers = servers == "per_rank" ? 0 : small_integer(in, "api_servers", e.api_servers, 1);
}

void parse_cache(ConfigReader& in, EngineSpec& e) {
  static constexpr std::array<std::string_view, 3> kRules{"share_of_total", "share_of_free", "static_share"};
  static constexpr std::array<std::string_view, 2> kPreemptions{"recompute", "swap"};
  static constexpr std::array<std::string_view, 3> kCheckpoints{"none", "blocks", "ends"};
  static constexpr std::array<std::string_view, 2> kVictims{"newest", "fewest_outputs"};
  e.block_size = small_integer(in, "block_size", e.block_size, 0);
  e.max_model_len = small_integer(in, "max_model_len", e.max_model_len, 0);
  e.memory_rule = static_cast<MemoryRule>(in.choice("memory_rule", kRules, 0));
  if (e.memory_rule == MemoryRule::kStaticShare) e.gpu_memory_utilization = 0.0;
  e.gpu_memory_utilization = in.number("gpu_memory_utilization", e.gpu_memory_utilization, {0.01, 1.0});
  e.state_memory_ratio = in.number("state_memory_ratio", e.state_memory_ratio, {0.0, 100.0});
  e.reserved_memory = in.bytes("reserved_memory", e.reserved_memory);
  e.compiled = in.boolean("compiled", e.compiled);
  e.keeps_expert_buffers = in.boolean("keeps_expert_buffers", e.keeps_expert_buffers);
  e.collective_memory = in.bytes("collective_memory", e.collective_memory);
  e.watermark = in.number("watermark", e.watermark, {0.0, 0.5});
  e.prompt_must_fit = in.boolean("prompt_must_fit", e.prompt_must_fit);
  e.reserve_output_ratio = in.number("reserve_output_ratio", e.reserve_output_ratio, kFraction);
  e.preemption = kPreemptions[in.choice("preemption", kPreemptions, 0)];
  e.victim = static_cast<Victim>(in.choice("victim", kVictims, 0));
  e.state_checkpoints = kCheckpoints[in.choice("state_checkpoints", kCheckpoints, 0)];
  e.kv_cache = in.boolean("kv_cache", e.kv_cache);
  e.scaled_latents = in.boolean("scaled_latents", e.scaled_latents);
  e.fp8_latent_prompts = in.boolean("fp8_latent_prompts", e.fp8_latent_prompts);
  e.prefix_caching = in.boolean("prefix_caching", e.prefix_caching);
  e.kv_offload = in.bytes("kv_offload", e.kv_offload);
  if (e.kv_offload < Bytes(0)) in.fail("kv_offload", "must be at least 0");
  if (e.kv_offload > kMostHostMemory) in.fail("kv_offload", "must be at most 1000 TB per GPU");
  if (e.kv_offload > Bytes(0) && !e.prefix_caching) {
    in.fail("kv_offload", "keeps prefix blocks that leave the GPU; it needs 'prefix_caching: true'");
  }
  e.kv_tiers = parse_kv_tiers(in);
  if (!e.kv_tiers.empty() && !e.prefix_caching)
    in.fail("kv_tiers", "keep prefix blocks; they need 'prefix_caching: true'");
}

void parse_kernels(ConfigReader& in, EngineSpec& e) {
  static constexpr std::array<std::string_view, 7> kAttention{"flash",  "flash_split", "naive", "flash_unsplit",
                                                              "flash1", "flash2",      "flash3"};
  static constexpr std::array<std::string_view, 2> kExchanges{"all_gather", "all_to_all"};
  static constexpr std::array<std::string_view, 2> kSampling{"greedy", "top_p"}, kTopP{"select", "sort"};
  static constexpr std::array<std::string_view, 2> kSparse{"flashmla", "trtllm"};
  static constexpr std::array<std::string_view, 2> kProductNames{"deep_gemm", "flashinfer"};
  e.samples_top_p = in.choice("sampling", kSampling, 0) == 1;
  e.sorts_for_top_p = in.choice("top_p_by", kTopP, 0) == 1;
  e.moe_kernel = static_cast<RequestedExperts>(in.choice("moe_kernel", requested_experts_names(), 0));
  e.expanded_experts = in.boolean("expanded_experts", e.expanded_experts);
  e.block_products = in.choice("block_products", kProductNames, 0) == 0 ? nullptr : &trtllm_gen_gemm();
  e.rows_quantized_at_once = small_integer(in, "rows_quantized_at_once", e.rows_quantized_at_once, 0);
  e.attention_kernel = kAttention[in.choice("attention_kernel", kAttention, 0)];
  e.sparse_attention = kSparse[in.choice("sparse_attention", kSparse, 0)];
  e.shared_query_heads = small_integer(in, "shared_query_heads", e.shared_query_heads, 0);
  e.aiter = in.boolean("aiter", e.aiter);
  e.own_all_reduce = in.boolean("own_all_reduce", e.own_all_reduce);
  e.fused_all_reduce = in.boolean("fused_all_reduce", e.fused_all_reduce);
  e.compiled_quantization = in.boolean("compiled_quantization", e.compiled_quantization);
  e.fused_elementwise = in.boolean("fused_elementwise", e.fused_elementwise);
  e.merged_projections = in.boolean("merged_projections", e.merged_projections);
  e.copied_cache = in.boolean("copied_cache", e.copied_cache);
  e.expert_exchange = static_cast<ExpertExchange>(in.choice("expert_exchange", kExchanges, 0));
  static constexpr std::array<std::string_view, 4> kOverlaps{"none", "single_batch", "two_batch", "dual_batch"};
  e.expert_overlap = static_cast<ExpertOverlap>(in.choice("expert_overlap", kOverlaps, 0));
}

/// A set of kernels with their own models, or a library that is priced by roofline efficiencies (configs/rooflines).
void parse_set(ConfigReader& in, EngineSpec& e) {
  const std::string name = in.text("kernels");
  const Mark mark = in.mark_of("kernels");
  std::vector<std::string> valid = kernel_sets();
  if (std::find(valid.begin(), valid.end(), name) != valid.end()) {
    e.kernels = name;
    return;
  }
  const std::vector<std::string> own = names_of("rooflines");
  if (std::find(own.begin(), own.end(), name) == own.end()) {
    valid.insert(valid.end(), own.begin(), own.end());
    throw ConfigError(mark, unknown_name("set of kernels", name, valid));
  }
  e.rooflines = load_rooflines(name, mark);
}

}  // namespace

void HostCosts::scale(double factor) {
  for (Seconds* time :
       {&step_time, &sequence_time, &scheduler_time, &scheduler_sequence_time, &worker_time, &prefill_step_time,
        &launch_time, &request_time, &request_latency, &token_time, &prompt_token_time})
    *time *= factor;
}

bool GpuDefaults::fits(const GpuSpec& found, int tp) const {
  const bool any = below <= Bytes(0) && !architecture && gpu.empty();
  const bool named = architecture == found.architecture || (!gpu.empty() && gpu == found.name);
  return (any || named || found.memory_capacity < below) && (tp_below == 0 || tp < tp_below);
}

void EngineSpec::settle(const GpuSpec& gpu, const Sharding& sharding) {
  const int copies = memory_rule == MemoryRule::kStaticShare ? sharding.attention_dp : 1;
  GpuDefaults first;
  const auto take = [](auto& setting, auto value) { setting = setting > 0 ? setting : value; };
  for (const GpuDefaults& d : by_gpu) {
    if (!d.fits(gpu, sharding.tp * copies)) continue;
    take(first.max_num_seqs, d.max_num_seqs);
    take(first.max_num_batched_tokens, d.max_num_batched_tokens);
    take(first.graph_batch, d.graph_batch);
    take(first.launch_speed, d.launch_speed);
    fused_all_reduce |= d.fused_all_reduce;
  }
  by_gpu.clear();
  if (first.max_num_seqs > 0) max_num_seqs = first.max_num_seqs;
  if (first.max_num_batched_tokens > 0) max_num_batched_tokens = std::max(1, first.max_num_batched_tokens / copies);
  if (first.graph_batch > 0) graphs.max_batch = first.graph_batch;
  if (first.launch_speed > 0) launch_speed = first.launch_speed;
  async_scheduling &= async_pipelines || sharding.pp == 1;
}

EngineSpec parse_engine_spec(ConfigReader in) {
  EngineSpec e;
  e.name = in.text("name");
  e.version = in.text("version", "");
  e.released = in.text("released", "");
  e.beyond_known = in.boolean("beyond_known", false);
  e.version_assumed = in.boolean("version_assumed", false);
  in.ignore("source");
  in.ignore("help");
  parse_set(in, e);
  parse_batching(in, e);
  parse_cache(in, e);
  parse_kernels(in, e);
  if (auto graphs = in.optional_child("cuda_graphs")) e.graphs = parse_graphs(std::move(*graphs));
  if (auto host = in.optional_child("host")) e.host = parse_host(std::move(*host));
  e.front_end = in.text("front_end_name", "");
  if (const ConfigTree front_end = in.tree("front_end")) {
    take_front_end(e.host, front_end);
    e.front_end = front_end->kind == ConfigNode::Kind::kScalar ? front_end->scalar : "own";
  }
  e.start_time = in.time("start_time", e.start_time);
  static constexpr std::array<std::string_view, 3> kTransfers{"after_prefill", "by_chunk", "by_layer"};
  e.cache_transfer = static_cast<CacheTransfer>(in.choice("cache_transfer", kTransfers, 0));
  e.handover_time = in.time("handover_time", e.handover_time);
  in.finish();
  const std::vector<GpuDefaults> by_gpu = e.by_gpu;
  GpuSpec largest;
  largest.memory_capacity = Bytes(1e18);
  e.settle(largest, {.tp = 1 << 20});
  e.by_gpu = by_gpu;
  return e;
}

}  // namespace roofcast
