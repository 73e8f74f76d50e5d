#include "sim/plan/idle_settings.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "sim/model/mixer_model.h"
#include "sim/plan/rules.h"
#include "sim/serve/scheduler.h"

namespace roofcast {
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

/// A setting, and when it changes nothing.
struct Rule {
  std::string_view key, why;
  bool (*idle)(const Deployment&, const WorkloadSpec*);
};

bool one_gpu(const Deployment& d, const WorkloadSpec*) { return d.sharding.tp == 1; }
bool one_rank(const Deployment& d, const WorkloadSpec*) { return d.sharding.attention_dp == 1; }
bool no_experts(const Deployment& d, const WorkloadSpec*) { return !has_experts(d.model); }
bool no_latents(const Deployment& d, const WorkloadSpec*) { return !has_latents(d.model); }
bool no_indexer(const Deployment& d, const WorkloadSpec*) { return !has_indexed_latents(d.model); }
bool no_blocks(const Deployment& d, const WorkloadSpec*) {
  return d.gpu.architecture != Architecture::kBlackwell || !blocks_in_fp8(d.precision);
}
bool nothing_shared(const Deployment&, const WorkloadSpec* w) { return w != nullptr && !shares_prefixes(*w); }
bool not_async(const Deployment& d, const WorkloadSpec*) { return !d.engine.async_scheduling; }
bool reserves_nothing(const Deployment& d, const WorkloadSpec*) {
  return !make_scheduler(d.engine.scheduler)->reserved_output(d.engine, false);
}

constexpr std::array kRules{
    Rule{"fused_all_reduce", "nothing is reduced across GPUs (tp 1)", one_gpu},
    Rule{"own_all_reduce", "nothing is reduced across GPUs (tp 1)", one_gpu},
    Rule{"collective_memory", "there are no collectives on one GPU",
         [](const Deployment& d, const WorkloadSpec*) { return d.sharding.gpus() == 1; }},
    Rule{"attention_dp_balance", "there is one copy of the attention", one_rank},
    Rule{"moe_kernel", "the model has no routed experts", no_experts},
    Rule{"expanded_experts", "the model has no routed experts", no_experts},
    Rule{"keeps_expert_buffers", "the model has no routed experts", no_experts},
    Rule{"expert_exchange", "the model has no routed experts", no_experts},
    Rule{"fp8_latent_prompts", "the model has no latent attention", no_latents},
    Rule{"scaled_latents", "no indexer chooses among latents in this model", no_indexer},
    Rule{"sparse_attention", "no indexer chooses among latents in this model", no_indexer},
    Rule{"block_products", "no product is in block fp8 on Blackwell", no_blocks},
    Rule{"rows_quantized_at_once", "no product is in block fp8 on Blackwell", no_blocks},
    Rule{"kv_offload", "no prompts of this workload share a prefix", nothing_shared},
    Rule{"scheduler_launches", "async_scheduling is off", not_async},
    Rule{"reserve_output_ratio", "the scheduler reserves nothing", reserves_nothing},
};

}  // namespace

std::vector<std::string> idle_settings(const ConfigTree& scenario, const Scenario& read) {
  std::vector<std::string> lines;
  const ConfigTree* engine = scenario->find("engine");
  if (engine == nullptr || !*engine) return lines;
  const WorkloadSpec* workload = read.workload ? &*read.workload : nullptr;
  for (const Rule& rule : kRules) {
    const ConfigTree* written = (*engine)->find(rule.key);
    if (written == nullptr || !*written || (*written)->scalar == "false") continue;
    if (rule.idle(*read.deployment, workload))
      lines.push_back(fmt::format("engine.{} changes nothing here: {}", rule.key, rule.why));
  }
  return lines;
}

}  // namespace roofcast
