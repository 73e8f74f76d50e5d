#include "sim/step/engine_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/config_library.h"
#include "base/text.h"
#include "hw/kernel_rules.h"
#include "hw/kernels/gemm/gemm_kernel.h"
#include "hw/rooflines.h"
#include "sim/step/engine_settings.h"
#include "sim/step/setting_visitors.h"

namespace roofcast {
namespace {

constexpr Range kWhole{0.0, 16777216.0}, kCount{1.0, 16777216.0};

template <class Visitor>
void visit_host(const Visitor& visit, HostCosts& host) {
  visit("step_time", host.step_time);
  visit("sequence_time", host.sequence_time);
  visit("scheduler_time", host.scheduler_time);
  visit("scheduler_sequence_time", host.scheduler_sequence_time);
  visit("worker_time", host.worker_time);
  visit("prefill_step_time", host.prefill_step_time);
  visit("launch_time", host.launch_time);
  visit("request_time", host.request_time);
  visit("request_latency", host.request_latency);
  visit("token_time", host.token_time);
  visit("prompt_token_time", host.prompt_token_time);
  visit("graph_gap", host.graph_gap);
  visit("rank_skew", host.rank_skew);
  visit("scatter", host.scatter, Range{0.0, 2.0});
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
template <class Visitor>
void visit_graphs(const Visitor& visit, GraphSettings& graphs) {
  visit("enabled", graphs.enabled);
  visit("max_batch", graphs.max_batch, Range{0, 1 << 20});
  visit.special(
      "prefill_tokens",
      [&](ConfigReader& in) {
        const bool any_step = in.has("prefill_tokens") && in.text("prefill_tokens") == "max_batch";
        graphs.prefill_tokens =
            any_step ? graphs.max_batch : small_integer(in, "prefill_tokens", graphs.prefill_tokens, 0);
      },
      [&] { return graphs.prefill_tokens; });
  visit("plain_prefill", graphs.plain_prefill);
  visit("dependent_launch", graphs.dependent_launch);
  visit.special(
      "padded_sizes",
      [&](ConfigReader& in) {
        for (double size : in.numbers("padded_sizes", {1.0, 1 << 20})) {
          if (size != std::floor(size))
            throw ConfigError(in.location_of("padded_sizes"),
                              fmt::format("'padded_sizes' must be whole numbers, got {}", size));
          graphs.padded_sizes.push_back(static_cast<int>(size));
        }
        std::sort(graphs.padded_sizes.begin(), graphs.padded_sizes.end());
      },
      [&] { return fmt::format("{}", fmt::join(graphs.padded_sizes, " ")); });
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
                  .architecture = architecture.empty() ? std::nullopt
                                                       : std::optional(parse_architecture(
                                                             architecture, entry.location_of("architecture"))),
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
      throw ConfigError(tree->location,
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

constexpr std::array<std::string_view, 2> kExchanges{"all_gather", "all_to_all"}, kSampling{"greedy", "top_p"},
    kTopP{"select", "sort"}, kSparse{"flashmla", "trtllm"}, kProducts{"deep_gemm", "flashinfer"},
    kPreemptions{"recompute", "swap"}, kVictims{"newest", "fewest_outputs"}, kRankChoices{"fewest", "in_turn"};
constexpr std::array<std::string_view, 3> kAsyncDrafts{"none", "layers", "all"},
    kMemoryRules{"share_of_total", "share_of_free", "static_share"}, kCheckpoints{"none", "blocks", "ends"},
    kTransfers{"after_prefill", "by_chunk", "by_layer"};
constexpr std::array<std::string_view, 4> kOverlaps{"none", "single_batch", "two_batch", "dual_batch"};
constexpr std::array<std::string_view, 7> kAttention{"flash",  "flash_split", "naive", "flash_unsplit",
                                                     "flash1", "flash2",      "flash3"};

template <class Visitor>
void visit_batching(const Visitor& visit, EngineSpec& e) {
  visit("scheduler", e.scheduler);
  if constexpr (Visitor::kReads) e.by_gpu = parse_by_gpu(visit.in);
  visit("max_num_seqs", e.max_num_seqs, kCount);
  visit("max_num_batched_tokens", e.max_num_batched_tokens, kCount);
  visit("launch_speed", e.launch_speed, Range{0.05, 20.0});
  visit("chunked_prefill", e.chunked_prefill);
  visit("batch_wait", e.batch_wait);
  visit("stream_interval", e.stream_interval, kCount);
  visit("async_scheduling", e.async_scheduling);
  visit.choice("async_drafts", e.async_drafts, kAsyncDrafts);
  visit("async_pipelines", e.async_pipelines);
  visit("scheduler_launches", e.scheduler_launches);
  visit("prefill_wait_ratio", e.prefill_wait_ratio, kFraction);
  visit("prefill_wait_steps", e.prefill_wait_steps, kWhole);
  visit("attention_dp_balance", e.attention_dp_balance);
  visit("prefill_batch_steps", e.prefill_batch_steps, kWhole);
  visit.choice("rank_choice", e.rank_choice, kRankChoices);
  visit("receive_interval", e.receive_interval, kCount);
  visit("postprocess_workers", e.postprocess_workers, kWhole);
  visit.special(
      "api_servers",
      [&](ConfigReader& in) {
        const std::string servers = in.text("api_servers", "1");
        if (servers != "per_rank" && servers.find_first_not_of("0123456789") != std::string::npos)
          in.fail("api_servers", "'api_servers' must be a whole number, or per_rank: one per attention-DP rank");
        e.api_servers = servers == "per_rank" ? 0 : small_integer(in, "api_servers", e.api_servers, 1);
      },
      [&] { return e.api_servers > 0 ? std::to_string(e.api_servers) : std::string("per_rank"); });
}

std::string names_of_tiers(const EngineSpec& e) {
  std::string out;
  for (const KvTier& tier : e.kv_tiers)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", tier.name, SettingWriter::text_of(tier.capacity));
  return out;
}

template <class Visitor>
void visit_cache(const Visitor& visit, EngineSpec& e) {
  visit("block_size", e.block_size, kWhole);
  visit("max_model_len", e.max_model_len, kWhole);
  visit.choice("memory_rule", e.memory_rule, kMemoryRules);
  if (Visitor::kReads && e.memory_rule == MemoryRule::kStaticShare) e.gpu_memory_utilization = 0.0;
  visit("gpu_memory_utilization", e.gpu_memory_utilization, Range{0.01, 1.0});
  visit("state_memory_ratio", e.state_memory_ratio, Range{0.0, 100.0});
  visit("reserved_memory", e.reserved_memory);
  visit("compiled", e.compiled);
  visit("keeps_expert_buffers", e.keeps_expert_buffers);
  visit("collective_memory", e.collective_memory);
  visit("watermark", e.watermark, Range{0.0, 0.5});
  visit("prompt_must_fit", e.prompt_must_fit);
  visit("reserve_output_ratio", e.reserve_output_ratio, kFraction);
  visit.choice("preemption", e.preemption, kPreemptions);
  visit.choice("victim", e.victim, kVictims);
  visit("mtp_drafts", e.mtp_drafts, kWhole);
  visit.choice("state_checkpoints", e.state_checkpoints, kCheckpoints);
  visit("kv_cache", e.kv_cache);
  visit("scaled_latents", e.scaled_latents);
  visit("fp8_latent_prompts", e.fp8_latent_prompts);
  visit("prefix_caching", e.prefix_caching);
  visit("kv_offload", e.kv_offload);
  visit.special(
      "kv_tiers", [&](ConfigReader& in) { e.kv_tiers = parse_kv_tiers(in); }, [&] { return names_of_tiers(e); });
}

template <class Visitor>
void visit_kernels(const Visitor& visit, EngineSpec& e) {
  visit.choice("sampling", e.samples_top_p, kSampling);
  visit.choice("top_p_by", e.sorts_for_top_p, kTopP);
  visit.choice("moe_kernel", e.moe_kernel, requested_experts_names());
  visit("expanded_experts", e.expanded_experts);
  visit.special(
      "block_products",
      [&](ConfigReader& in) {
        e.block_products = in.choice("block_products", kProducts, 0) == 0 ? nullptr : &trtllm_gen_gemm();
      },
      [&] { return std::string(kProducts[e.block_products == nullptr ? 0 : 1]); });
  visit("rows_quantized_at_once", e.rows_quantized_at_once, kWhole);
  visit.choice("attention_kernel", e.attention_kernel, kAttention);
  visit.choice("sparse_attention", e.sparse_attention, kSparse);
  visit("shared_query_heads", e.shared_query_heads, kWhole);
  visit("aiter", e.aiter);
  visit("own_all_reduce", e.own_all_reduce);
  visit("fused_all_reduce", e.fused_all_reduce);
  visit("compiled_quantization", e.compiled_quantization);
  visit("fused_elementwise", e.fused_elementwise);
  visit("merged_projections", e.merged_projections);
  visit("copied_cache", e.copied_cache);
  visit.choice("expert_exchange", e.expert_exchange, kExchanges);
  visit.choice("expert_overlap", e.expert_overlap, kOverlaps);
}

template <class Visitor>
void visit_start_and_handover(const Visitor& visit, EngineSpec& e) {
  visit("start_time", e.start_time);
  visit.choice("cache_transfer", e.cache_transfer, kTransfers);
  visit("handover_time", e.handover_time);
}

void check_settings(const ConfigReader& in, const EngineSpec& e) {
  if (e.batch_wait < Seconds(0)) in.fail("batch_wait", "must be at least 0");
  if (e.kv_offload < Bytes(0)) in.fail("kv_offload", "must be at least 0");
  if (e.kv_offload > kMostHostMemory) in.fail("kv_offload", "must be at most 1000 TB per GPU");
  if (e.kv_offload > Bytes(0) && !e.prefix_caching)
    in.fail("kv_offload", "keeps prefix blocks that leave the GPU; it needs 'prefix_caching: true'");
  if (!e.kv_tiers.empty() && !e.prefix_caching)
    in.fail("kv_tiers", "keep prefix blocks; they need 'prefix_caching: true'");
}

/// A set of kernels with their own models, or a library that is priced by roofline efficiencies (configs/rooflines).
void parse_set(ConfigReader& in, EngineSpec& e) {
  const std::string name = in.text("kernels");
  const SourceLocation location = in.location_of("kernels");
  std::vector<std::string> valid = kernel_sets();
  if (std::find(valid.begin(), valid.end(), name) != valid.end()) {
    e.kernels = name;
    return;
  }
  const std::vector<std::string> own = names_of("rooflines");
  if (std::find(own.begin(), own.end(), name) == own.end()) {
    valid.insert(valid.end(), own.begin(), own.end());
    throw ConfigError(location, unknown_name("set of kernels", name, valid));
  }
  e.rooflines = load_rooflines(name, location);
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
  const SettingReader reader{in};
  visit_batching(reader, e);
  visit_cache(reader, e);
  visit_kernels(reader, e);
  if (auto graphs = in.optional_child("cuda_graphs")) {
    visit_graphs(SettingReader{*graphs}, e.graphs);
    graphs->finish();
  }
  if (auto host = in.optional_child("host")) {
    visit_host(SettingReader{*host}, e.host);
    host->finish();
  }
  e.front_end = in.text("front_end_name", "");
  if (const ConfigTree front_end = in.tree("front_end")) {
    take_front_end(e.host, front_end);
    e.front_end = front_end->kind == ConfigNode::Kind::kScalar ? front_end->scalar : "own";
  }
  visit_start_and_handover(reader, e);
  check_settings(in, e);
  in.finish();
  const std::vector<GpuDefaults> by_gpu = e.by_gpu;
  GpuSpec largest;
  largest.memory_capacity = Bytes(1e18);
  e.settle(largest, {.tp = 1 << 20});
  e.by_gpu = by_gpu;
  return e;
}

std::vector<EngineSetting> settings_of(EngineSpec e) {
  std::vector<EngineSetting> out{{"kernels", e.rooflines ? "own" : e.kernels}}, host;
  const SettingWriter writer{out};
  visit_batching(writer, e);
  visit_cache(writer, e);
  visit_kernels(writer, e);
  visit_graphs(SettingWriter{out, "cuda_graphs."}, e.graphs);
  visit_host(SettingWriter{host}, e.host);
  std::string costs;
  for (const EngineSetting& cost : host) costs += cost.text + " ";
  writer.put("host", costs);
  writer("front_end", e.front_end);
  visit_start_and_handover(writer, e);
  return out;
}

}  // namespace roofcast
