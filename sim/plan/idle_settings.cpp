#include "sim/plan/idle_settings.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "hw/rooflines.h"
#include "sim/model/mixer_model.h"
#include "sim/plan/client.h"
#include "sim/plan/launch_recipe.h"
#include "sim/plan/rules.h"
#include "sim/serve/scheduler.h"
#include "sim/serve/traces.h"
#include "sim/step/deployment.h"
#include "sim/step/step_host.h"

namespace roofcast {

bool writes(const ConfigTree& scenario, std::string_view dotted_key) {
  ConfigTree at = scenario;
  for (const std::string& key : split(dotted_key, '.')) {
    const ConfigTree* next = at ? at->find(key) : nullptr;
    if (next == nullptr) return false;
    at = *next;
  }
  return at && at->kind != ConfigNode::Kind::kNull;
}

namespace {

bool has_latents(const ModelSpec& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const LayerKind& layer) { return facts_of(layer.mixer).cache == TokenCache::kLatent; });
}

bool blocks_in_fp8(const Precision& p) {
  return p.weights == Dtype::kFp8Block || p.attention_weights == Dtype::kFp8Block ||
         p.expert_weights == Dtype::kFp8Block;
}

bool shares_prefixes(const WorkloadSpec& w) {
  return w.shared_prefix_tokens > 0 || w.turns > 1 || !w.clients.empty() ||
         w.arrivals.process == ArrivalSpec::Process::kTrace;
}

bool of_a_trace(const Scenario& s) {
  return s.workload && s.workload->clients.empty() && s.workload->arrivals.process == ArrivalSpec::Process::kTrace;
}
/// Mean time in which all requests of an open process arrive, s; 0: unknown.
double span_of(const WorkloadSpec& w) {
  return w.clients.empty() && w.arrivals.rate > PerSecond(0) ? static_cast<double>(w.requests) / w.arrivals.rate.base()
                                                             : 0;
}
constexpr double kSurely = 2;  // a limit is unreachable if it exceeds the other one by this factor

/// A setting, and when it has no effect.
struct Rule {
  std::string_view key, why;
  bool (*idle)(const Scenario&);
};

bool one_gpu(const Scenario& s) { return s.deployment->sharding.tp == 1; }
bool not_amd(const Scenario& s) { return traits_of(s.deployment->gpu.architecture).matrix_units != MatrixUnits::kMfma; }
bool no_collectives(const Scenario& s) { return s.deployment->sharding.gpus() == 1; }
bool one_rank(const Scenario& s) { return s.deployment->sharding.attention_dp == 1; }
bool no_experts(const Scenario& s) { return !has_experts(s.deployment->model); }
bool no_fp8_latents(const Scenario& s) {
  const Deployment& d = *s.deployment;
  return !has_latents(d.model) || d.gpu.architecture != Architecture::kBlackwell ||
         element_bits(d.precision.kv_cache) > 8;
}
bool no_indexer(const Scenario& s) { return !has_indexed_latents(s.deployment->model); }
bool no_blocks(const Scenario& s) {
  return s.deployment->gpu.architecture != Architecture::kBlackwell || !blocks_in_fp8(s.deployment->precision);
}
bool nothing_shared(const Scenario& s) { return s.workload && !shares_prefixes(*s.workload); }
bool always_there(const Scenario& s) { return !s.serving.fleet.active(); }
bool together(const Scenario& s) { return !s.serving.disaggregation; }
bool one_replica(const Scenario& s) {
  const auto& apart = s.serving.disaggregation;
  return s.serving.replicas == 1 && (!apart || apart->prefill_replicas == 1) && !s.serving.fleet.autoscaling &&
         !s.serving.fleet.prefill_autoscaling;
}
bool by_rooflines(const Scenario& s) {
  const Deployment& d = *s.deployment;
  return d.roofline() != nullptr || by_roofline(d.gpu.architecture);
}
/// Roofline limits in cycles depend on the clock and the number of SMs.
bool no_cycles(const Scenario& s) {
  const RooflineBackend* own = s.deployment->roofline();
  if (own == nullptr) return true;
  return !own->counts_cycles(s.deployment->precision.weights);
}
bool no_host_copies(const Scenario& s) {
  const EngineSpec& engine = s.deployment->engine;
  return no_collectives(s) && together(s) && always_there(s) && engine.kv_offload <= Bytes(0) &&
         engine.preemption != "swap";
}
bool one_node(const Scenario& s) {
  const Deployment& d = *s.deployment;
  return together(s) && always_there(s) && d.sharding.gpus() <= d.gpu.node.gpus_per_node;
}
/// Whether no traffic crosses the spine, or it is as wide as the NICs below it. Traffic crosses it within a replica of
/// either role, and between the roles if one leaf does not hold all replicas of both.
bool below_one_leaf(const Scenario& s) {
  const auto fit = [](const Deployment& on, double gpus) {
    const NodeSpec& node = on.gpu.node;
    return node.leaf_gpus == 0 || node.oversubscription <= 1.0 || gpus <= node.leaf_gpus;
  };
  const Deployment& d = *s.deployment;
  if (!fit(d, d.sharding.gpus())) return false;
  const auto& apart = s.serving.disaggregation;
  if (!apart) return true;
  const Deployment& prefill = *apart->prefill;
  if (!fit(prefill, prefill.sharding.gpus())) return false;
  const double all = 1.0 * d.sharding.gpus() * most_replicas(s.serving, false) +
                     1.0 * prefill.sharding.gpus() * most_replicas(s.serving, true);
  return apart->bandwidth > BytesPerSecond(0) || (fit(d, all) && fit(prefill, all));
}
bool one_priority(const Scenario& s) {
  return s.workload && s.workload->priorities.size() < 2 && s.workload->clients.empty();
}

bool read_whole(const Scenario& s) {
  return s.deployment->model.encoder_only || s.deployment->model.attends_to_encoder();
}

/// Whether the setting equals the model's query heads per KV head, or heads do not share a cache.
bool shares_heads_anyway(const Scenario& s) {
  const int asked = s.deployment->engine.shared_query_heads;
  const auto alike = [&](const LayerKind& layer) {
    const double group = facts_of(layer.mixer).query_group;
    return group == 0 || asked == 0 || group == asked;
  };
  return std::all_of(s.deployment->model.layers.begin(), s.deployment->model.layers.end(), alike);
}

/// Whether the scenario names the format of a checkpoint that is in block fp8.
bool in_blocks_already(const Scenario& s) {
  const Precision &now = s.deployment->precision, &own = s.deployment->model.precision;
  return own.weights == Dtype::kFp8Block && now.weights == own.weights && now.expert_weights == own.expert_weights &&
         now.attention_weights == own.attention_weights;
}

bool no_graphs(const Scenario& s) { return !s.deployment->engine.graphs.enabled; }

/// Whether no layer caches keys and values.
bool keeps_no_tokens(const Scenario& s) {
  const ModelSpec& model = s.deployment->model;
  return std::none_of(model.layers.begin(), model.layers.end(),
                      [](const LayerKind& layer) { return facts_of(layer.mixer).cache != TokenCache::kNothing; });
}

bool no_cache(const Scenario& s) { return !s.deployment->engine.kv_cache; }

/// No weights have scales.
bool no_groups(const Scenario& s) {
  const Precision& p = s.deployment->precision;
  return std::min({element_bits(p.weights), element_bits(p.attention_weights), element_bits(p.expert_weights)}) > 8;
}

/// Nothing of one request is found by another, nor is it longer for what they share, and no router looks at that.
bool finds_no_prefixes(const Scenario& s) {
  return !s.deployment->engine.prefix_caching && s.workload && s.workload->turns == 1 && one_replica(s);
}

bool same_all_day(const Scenario& s) {
  return s.workload && !s.workload->clients.empty() &&
         std::all_of(s.workload->clients.begin(), s.workload->clients.end(),
                     [](const WorkloadSpec& client) { return client.arrivals.profile.empty() && !client.by_time; });
}

constexpr std::array kRules{
    Rule{"precision.expert_weights", "the model has no routed experts", no_experts},
    Rule{"precision.group_size", "no weights have scales by group", no_groups},
    Rule{"precision.activations", "16-bit weights are multiplied in 16 bit",
         [](const Scenario& s) {
           const Precision& p = s.deployment->precision;
           return element_bits(p.activations) < 16 &&
                  std::min({element_bits(p.weights), element_bits(p.attention_weights),
                            element_bits(p.expert_weights)}) >= 16;
         }},
    Rule{"precision.static_activations", "activations are not quantized",
         [](const Scenario& s) { return element_bits(s.deployment->precision.activations) > 8; }},
    Rule{"workload.distinct_prompts", "the engine keeps no prefixes (engine.prefix_caching)", finds_no_prefixes},
    Rule{"workload.shared_prefix_tokens", "the engine keeps no prefixes (engine.prefix_caching)", finds_no_prefixes},
    Rule{"workload.start", "the clients' load is the same all day", same_all_day},
    Rule{"model.num_key_value_heads", "latent attention caches one latent for all heads",
         [](const Scenario& s) { return has_latents(s.deployment->model); }},
    Rule{"precision.kv_cache", "no layer of the model keeps keys and values", keeps_no_tokens},
    Rule{"engine.host.worker_time", "one GPU serves a replica", no_collectives},
    Rule{"engine.host.scatter", "on the ideal roofline the host takes no time",
         [](const Scenario& s) { return s.deployment->fidelity == Fidelity::kIdeal; }},
    Rule{"engine.cuda_graphs.dependent_launch", "CUDA graphs are off", no_graphs},
    Rule{"engine.cuda_graphs.dependent_launch", "no gap between the kernels of a graph is counted (host.graph_gap)",
         [](const Scenario& s) {
           const EngineSpec& engine = s.deployment->engine;
           return engine.graphs.enabled && engine.host.graph_gap <= Seconds(0);
         }},
    Rule{"engine.cuda_graphs.plain_prefill", "no prompts run in CUDA graphs (prefill_tokens 0)",
         [](const Scenario& s) { return s.deployment->engine.graphs.prefill_tokens == 0; }},
    Rule{"engine.cuda_graphs.plain_prefill", "all layers of this model run in such graphs",
         [](const Scenario& s) {
           return s.deployment->engine.graphs.prefill_tokens > 0 && has_plain_prefill(*s.deployment);
         }},
    Rule{"precision.weights", "the model's own weights are fp8 in blocks already", in_blocks_already},
    Rule{"engine.shared_query_heads", "query heads that share a cache are decoded together either way",
         shares_heads_anyway},
    Rule{"engine.top_p_by", "sampling is greedy (engine.sampling)",
         [](const Scenario& s) { return !s.deployment->engine.samples_top_p; }},
    Rule{"engine.prefill_wait_ratio", "prefill_wait_steps is 0",
         [](const Scenario& s) { return s.deployment->engine.prefill_wait_steps == 0; }},
    Rule{"engine.prefill_wait_steps", "prefill_wait_ratio is 0, and attention_dp_balance is off",
         [](const Scenario& s) {
           const EngineSpec& engine = s.deployment->engine;
           return engine.prefill_wait_ratio <= 0 && !engine.attention_dp_balance;
         }},
    Rule{"engine.block_size", "there is no KV cache", no_cache},
    Rule{"engine.preemption", "there is no KV cache", no_cache},
    Rule{"engine.mtp_drafts", "the scenario names the drafts, or none are made by multi-token prediction",
         [](const Scenario& s) {
           const SpeculationSpec& drafts = s.serving.speculation;
           return drafts.method != SpeculationSpec::Method::kMtp ||
                  drafts.num_speculative_tokens != s.deployment->engine.mtp_drafts;
         }},
    Rule{"engine.victim", "there is no KV cache", no_cache},
    Rule{"engine.attention_kernel", "the ideal roofline assumes a kernel that splits the context",
         [](const Scenario& s) {
           const std::string& kernel = s.deployment->engine.attention_kernel;
           return s.deployment->fidelity == Fidelity::kIdeal && (kernel == "flash_split" || kernel == "flash3");
         }},
    Rule{"engine.cuda_graphs.enabled", "LLM.int8() runs without CUDA graphs",
         [](const Scenario& s) { return s.deployment->precision.outlier_fraction > 0; }},
    Rule{"engine.scheduler", "a worker prefills or decodes, never both, while memory suffices",
         [](const Scenario& s) {
           return s.serving.disaggregation && s.deployment->engine.scheduler.starts_with("prefill_");
         }},
    Rule{"engine.fused_all_reduce", "nothing is reduced across GPUs (tp 1)", one_gpu},
    Rule{"engine.aiter", "AITER exists only for AMD's GPUs", not_amd},
    Rule{"engine.own_all_reduce", "nothing is reduced across GPUs (tp 1)", one_gpu},
    Rule{"engine.collective_memory", "there are no collectives on one GPU", no_collectives},
    Rule{"engine.host.rank_skew", "there are no collectives on one GPU", no_collectives},
    Rule{"engine.attention_dp_balance", "there is one attention-DP rank", one_rank},
    Rule{"engine.prefill_batch_steps", "attention_dp_balance is off",
         [](const Scenario& s) { return !s.deployment->engine.attention_dp_balance; }},
    Rule{"engine.rank_choice", "there is one attention-DP rank", one_rank},
    Rule{"routing.redundant_experts", "experts are not spread over GPUs (ep 1)",
         [](const Scenario& s) { return s.deployment->sharding.ep == 1; }},
    Rule{"engine.moe_kernel", "the model has no routed experts", no_experts},
    Rule{"engine.expanded_experts", "the model has no routed experts", no_experts},
    Rule{"engine.keeps_expert_buffers", "the model has no routed experts", no_experts},
    Rule{"engine.expert_exchange", "the model has no routed experts", no_experts},
    Rule{"engine.expert_overlap", "attention-DP ranks exchange no tokens by all-to-all",
         [](const Scenario& s) {
           return s.deployment->sharding.attention_dp == 1 ||
                  s.deployment->engine.expert_exchange != ExpertExchange::kAllToAll;
         }},
    Rule{"routing", "the model has no routed experts", no_experts},
    Rule{"engine.fp8_latent_prompts", "there is no latent attention to a cache of 8 bit on Blackwell", no_fp8_latents},
    Rule{"engine.scaled_latents", "this model has no indexer over latents", no_indexer},
    Rule{"engine.sparse_attention", "this model has no indexer over latents", no_indexer},
    Rule{"engine.state_memory_ratio", "the model has no layers with a state",
         [](const Scenario& s) { return s.deployment->memory.layout.state_per_sequence <= Bytes(0); }},
    Rule{"engine.block_products", "no product is in block fp8 on Blackwell", no_blocks},
    Rule{"engine.rows_quantized_at_once", "no product is in block fp8 on Blackwell", no_blocks},
    Rule{"engine.copied_cache", "only copies of keys and values per head are priced, and the model caches none",
         [](const Scenario& s) {
           return std::none_of(
               s.deployment->model.layers.begin(), s.deployment->model.layers.end(),
               [](const LayerKind& layer) { return facts_of(layer.mixer).cache == TokenCache::kHeads; });
         }},
    Rule{"engine.compiled_quantization", "no activation scales are static",
         [](const Scenario& s) { return !s.deployment->precision.static_activations; }},
    Rule{"engine.kv_tiers", "no prompts of this workload share a prefix", nothing_shared},
    Rule{"engine.kv_tiers",
         "some layers of the model do not keep every token, and tiers keep no prefixes of such models",
         [](const Scenario& s) {
           const CacheLayout& layout = s.deployment->memory.layout;
           return layout.state_per_sequence > Bytes(0) ||
                  std::any_of(layout.groups.begin(), layout.groups.end(), [](const auto& g) { return g.window > 0; });
         }},
    Rule{"adapters.disk_bandwidth", "all adapters are in host memory ('host' is not below 'count')",
         [](const Scenario& s) {
           const auto& a = s.deployment->adapters;
           return a && a->in_host >= a->count;
         }},
    Rule{"engine.kv_offload", "no prompts of this workload share a prefix", nothing_shared},
    Rule{"engine.state_checkpoints", "the model has no layers with a state",
         [](const Scenario& s) { return s.deployment->memory.layout.state_per_sequence <= Bytes(0); }},
    Rule{"engine.batch_wait", "the scheduler batches continuously",
         [](const Scenario& s) { return make_scheduler(s.deployment->engine.scheduler)->continuous(); }},
    Rule{"engine.prefix_caching", "no prompts of this workload share a prefix", nothing_shared},
    Rule{"engine.scheduler_launches", "async_scheduling is off, or does not work with these drafts",
         [](const Scenario& s) { return !s.deployment->engine.plans_ahead(); }},
    Rule{"engine.async_drafts", "the scenario has no drafts, or async_scheduling is off",
         [](const Scenario& s) { return !s.serving.speculation.active() || !s.deployment->engine.async_scheduling; }},
    Rule{"engine.reserve_output_ratio", "the scheduler reserves nothing",
         [](const Scenario& s) {
           return !make_scheduler(s.deployment->engine.scheduler)->reserved_output(s.deployment->engine, false);
         }},
    Rule{"engine.prefix_caching", "the encoder reads whole prompts, and engines do not share its output", read_whole},
    Rule{"engine.chunked_prefill", "the encoder reads whole prompts", read_whole},
    Rule{"engine.kv_offload", "the encoder reads whole prompts, and engines do not share its output", read_whole},
    Rule{"engine.kv_tiers", "the encoder reads whole prompts, and engines do not share its output", read_whole},
    Rule{"engine.start_time", "the number of replicas is constant", always_there},
    Rule{"engine.cache_transfer", "prompts and outputs are computed on the same replicas", together},
    Rule{"engine.handover_time", "prompts and outputs are computed on the same replicas", together},
    Rule{"gpu.shared_memory_per_sm", "no kernel is priced by it", [](const Scenario&) { return true; }},
    Rule{"gpu.l2_cache", "kernels are priced by rooflines", by_rooflines},
    Rule{"gpu.sm_count", "kernels are priced by rooflines",
         [](const Scenario& s) { return by_rooflines(s) && no_cycles(s); }},
    Rule{"gpu.boost_clock", "no constants are transferred, and no roofline counts cycles",
         [](const Scenario& s) { return s.deployment->carried_over_from().empty() && no_cycles(s); }},
    Rule{"gpu.node.nvlink_bandwidth", "there are no collectives on one GPU", no_collectives},
    Rule{"gpu.node.fabric_bandwidth", "there are no collectives on one GPU", no_collectives},
    Rule{"gpu.node.nvlink_domain", "there are no collectives on one GPU", no_collectives},
    Rule{"gpu.node.fabric_domain", "there are no collectives on one GPU", no_collectives},
    Rule{"gpu.node.peer_to_peer", "there are no collectives on one GPU", no_collectives},
    Rule{"gpu.efficiency.without_aiter", "the engine runs AITER's kernels",
         [](const Scenario& s) { return s.deployment->engine.aiter; }},
    Rule{"gpu.node.pcie_bandwidth", "nothing is copied to or from the host", no_host_copies},
    Rule{"gpu.node.nic_bandwidth", "no traffic leaves a node", one_node},
    Rule{"gpu.node.leaf_gpus", "no traffic passes the spine, or the spine is as wide as the NICs", below_one_leaf},
    Rule{"gpu.node.oversubscription", "no traffic passes the spine", below_one_leaf},
    Rule{"router", "there is one replica", one_replica},
    Rule{"policy", "all requests have one priority",
         [](const Scenario& s) { return s.serving.policy == "priority" && one_priority(s); }},
    Rule{"policy", "there is one kind of clients",
         [](const Scenario& s) { return s.serving.policy == "fair" && s.workload && s.workload->clients.size() < 2; }},
    Rule{"workload.priorities", "the queue's 'policy' is not 'priority'",
         [](const Scenario& s) { return s.serving.policy != "priority"; }},
    Rule{"workload.arrivals.think_time", "a session has one turn ('turns')",
         [](const Scenario& s) {
           return s.workload && s.workload->arrivals.rate > PerSecond(0) && s.workload->turns == 1;
         }},
    Rule{"workload.arrivals.think_time.distribution",
         "under a 'rate' the next turn goes to the session that waited longest, and only the mean of the pauses counts",
         [](const Scenario& s) {
           return s.workload && s.workload->arrivals.rate > PerSecond(0) && s.workload->arrivals.pauses.has_value() &&
                  s.workload->turns > 1;
         }},
    Rule{"workload.duration", "all 'requests' have arrived before",
         [](const Scenario& s) {
           if (!s.workload || !s.workload->duration) return false;
           const double span = span_of(*s.workload);
           return span > 0 && span * kSurely < s.workload->duration->base();
         }},
    Rule{"workload.requests", "'duration' ends before so many arrive",
         [](const Scenario& s) {
           if (!s.workload || !s.workload->duration) return false;
           return span_of(*s.workload) > kSurely * s.workload->duration->base();
         }},
    Rule{"workload.requests", "the trace has fewer",
         [](const Scenario& s) {
           if (!of_a_trace(s) || !s.workload->arrivals.trace) return false;
           const ArrivalSpec& arrivals = s.workload->arrivals;
           return s.workload->requests >= static_cast<std::int64_t>(arrivals.trace->rows.size()) * arrivals.loop;
         }},
    Rule{"workload.prompt_tokens", "the requests of a trace have their own lengths", of_a_trace},
    Rule{"workload.output_tokens", "the requests of a trace have their own lengths", of_a_trace},
    Rule{"workload.prefix_groups", "'shared_prefix_tokens' is 0",
         [](const Scenario& s) { return s.workload && s.workload->shared_prefix_tokens == 0; }},
};

/// Why an enabled prefix cache is useless for prompts that share a prefix; empty: it is not.
std::string no_prefixes(const Scenario& s) {
  const Deployment& d = *s.deployment;
  if (!d.engine.prefix_caching || nothing_shared(s) || !s.workload) return "";
  if (!d.engine.kv_cache) return "there is no KV cache";
  if (d.engine.block_size == 0) return "sequences have contiguous caches (block_size 0), which cannot be shared";
  if (d.memory.layout.state_per_sequence <= Bytes(0)) return "";
  if (d.engine.state_checkpoints == "none")
    return "recurrent layers continue from a saved state, and " + d.engine.name +
           " saves none (engine.state_checkpoints)";
  if (d.engine.state_checkpoints == "blocks" && d.memory.state_block == 0)
    return "states are kept at blocks of attention, and no layer of the model has any";
  return "";
}

}  // namespace

namespace {

/// Adds cache tiers that are too small for a single prefix block.
void add_small_tiers(std::vector<std::string>& lines, const Scenario& read) {
  const EngineSpec& engine = read.deployment->engine;
  if (engine.block_size <= 0) return;
  const Bytes block = read.deployment->memory.layout.sequence_bytes(engine.block_size);
  const auto check = [&](const std::string& place, Bytes capacity) {
    if (capacity >= block) return;
    lines.push_back(
        fmt::format("{} keeps nothing here: a block of {} tokens takes {:.3g} MB per GPU, its room is "
                    "{:.3g} MB",
                    place, engine.block_size, block.base() / 1e6, capacity.base() / 1e6));
  };
  if (engine.kv_offload > Bytes(0)) check("engine.kv_offload", engine.kv_offload);
  for (const KvTier& tier : engine.kv_tiers) check(fmt::format("engine.kv_tiers: tier '{}'", tier.name), tier.capacity);
}

/// Adds guided decoding whose host work is hidden.
void add_hidden_masks(std::vector<std::string>& lines, const Scenario& read) {
  if (read.deployment->guided > 0 && read.deployment->engine.plans_ahead())
    lines.push_back(
        "workload.guided: the host fills the masks of a step's grammars while the GPU works "
        "(engine.async_scheduling); they take time where that is more than a step");
}

/// Adds a router that looks for prefixes of which there are none.
void add_blind_router(std::vector<std::string>& lines, const ConfigTree& scenario, const Scenario& read) {
  if (!writes(scenario, "router") || read.serving.router != "prefix_aware" || one_replica(read) || !read.workload)
    return;
  const auto& apart = read.serving.disaggregation;
  const Deployment& front = apart ? *apart->prefill : *read.deployment;
  const bool shared = shares_prefixes(*read.workload), kept = front.engine.prefix_caching;
  if (!shared || !kept)
    lines.push_back(fmt::format("router: prefix_aware routes as least_loaded does here: {}",
                                shared ? "the engine keeps no prefixes (engine.prefix_caching)"
                                       : "no prompts of this workload share a prefix"));
}

/// Adds a client date that changes neither the client nor the recipe.
void add_client_date(std::vector<std::string>& lines, const ConfigTree& scenario) {
  if (!writes(scenario, "workload.client_date")) return;
  const ConfigTree* client = (*scenario->find("workload"))->find("client");
  const ConfigTree* recipe = scenario->find("recipe");
  if (client == nullptr || !*client) {
    lines.emplace_back("workload.client_date changes nothing here: the workload names no client");
    return;
  }
  const bool asked =
      recipe != nullptr && *recipe && asks_for_day(find_launch_recipe((*recipe)->scalar, (*recipe)->location));
  if (!asked && !changes_by_day((*client)->scalar, (*client)->location))
    lines.push_back(fmt::format("workload.client_date changes nothing here: client '{}' is the same on all days",
                                (*client)->scalar));
}

/// A plan without objectives takes those of its workload; nothing else does.
void add_objectives(std::vector<std::string>& lines, const ConfigTree& scenario, const Scenario& read) {
  if (!writes(scenario, "workload.objectives")) return;
  const auto of_all = [](const Objective& o) { return o.client < 0; };
  if (writes(scenario, "objectives"))
    lines.emplace_back("workload.objectives changes nothing here: the scenario has its own 'objectives'");
  else if (std::none_of(read.objectives.begin(), read.objectives.end(), of_all))
    lines.emplace_back(
        "workload.objectives changes nothing here: plans take them; a run needs 'objectives' outside of "
        "the workload");
}

/// Adds peak rates of the GPU for formats that are not used.
void add_idle_rates(std::vector<std::string>& lines, const ConfigTree& scenario, const Scenario& read) {
  const Deployment& d = *read.deployment;
  const Precision& p = d.precision;
  std::vector<Dtype> used{Dtype::kBf16, Dtype::kFp16, p.activations, p.kv_cache};
  for (const Dtype weights : {p.weights, p.attention_weights, p.expert_weights, p.head, p.other}) {
    used.push_back(weights);
    if (const auto compute = d.gpu.compute_dtype(weights, p.activations)) used.push_back(*compute);
  }
  for (std::size_t i = 0; i < kDtypeCount; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    const std::string key = fmt::format("gpu.dense.{}", name_of(dtype));
    if (writes(scenario, key) && std::find(used.begin(), used.end(), dtype) == used.end())
      lines.push_back(fmt::format("{} changes nothing here: nothing is computed in {}", key, name_of(dtype)));
  }
}

}  // namespace

std::vector<std::string> idle_settings(const ConfigTree& scenario, const Scenario& read) {
  std::vector<std::string> lines;
  if (const std::string why = no_prefixes(read); !why.empty())
    lines.push_back("engine.prefix_caching finds nothing here: " + why);
  for (const Rule& rule : kRules) {
    if (writes(scenario, rule.key) && rule.idle(read))
      lines.push_back(fmt::format("{} changes nothing here: {}", rule.key, rule.why));
  }
  add_hidden_masks(lines, read);
  add_small_tiers(lines, read);
  add_blind_router(lines, scenario, read);
  add_client_date(lines, scenario);
  add_objectives(lines, scenario, read);
  add_idle_rates(lines, scenario, read);
  return lines;
}

}  // namespace roofcast
