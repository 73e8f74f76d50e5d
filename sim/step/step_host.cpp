#include "sim/step/step_host.h"

#include <cmath>

#include "sim/model/mixer_model.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

/// Time to compute the mask of allowed tokens of one sequence with XGrammar on one core: below 40 us for JSON
/// (arXiv:2411.15100, figure 9). vLLM computes the masks of a step one after another
/// (vllm/v1/structured_output/__init__.py, grammar_bitmask), overlapping the GPU with asynchronous scheduling.
constexpr double kMaskSeconds = 40e-6;

/// The largest step with prefill that uses CUDA graphs. Graphs of plain_prefill exclude what SGLang's piecewise graphs
/// do (server_args.py, _handle_piecewise_cuda_graph, and the architectures listed in configs/model_config.py, 0.5.10):
/// multimodal models, attention-DP, linear attention, indexers; and latent attention, whose graphs end at 2048 tokens
/// there and are off in later releases.
int prefill_graph_tokens(const Deployment& d) {
  return d.engine.graphs.plain_prefill && !has_plain_prefill(d) ? 0 : d.engine.graphs.prefill_tokens;
}

}  // namespace

bool has_plain_prefill(const Deployment& d) {
  const auto plain = [](const LayerKind& kind) { return facts_of(kind.mixer).captured_prefill; };
  return !d.model.multimodal && d.sharding.attention_dp == 1 &&
         std::all_of(d.model.layers.begin(), d.model.layers.end(), plain);
}

StepHost::StepHost(const Deployment& deployment)
    : deployment_(deployment),
      ideal_(deployment.fidelity == Fidelity::kIdeal),
      prefill_graph_tokens_(prefill_graph_tokens(deployment)) {}

/// Graphs are captured at 1, 2, 4 and multiples of 8 (or the engine's own sizes); other sizes are padded up.
double StepHost::padded(double tokens, int largest) const {
  const GraphSettings& graphs = deployment_.engine.graphs;
  if (ideal_ || !graphs.enabled || tokens > largest) return tokens;
  if (!graphs.padded_sizes.empty()) {
    const auto at = std::lower_bound(graphs.padded_sizes.begin(), graphs.padded_sizes.end(), tokens);
    return at == graphs.padded_sizes.end() ? tokens : *at;
  }
  if (tokens <= 2) return std::ceil(tokens);
  if (tokens <= 4) return 4;
  return std::min<double>(std::ceil(tokens / 8) * 8, std::max<double>(largest, tokens));
}

double StepHost::padded_tokens(const StepBatch& batch, const RankBatch& rank) const {
  return batch.prefills.empty() ? padded(rank.decodes, deployment_.engine.graphs.max_batch) * batch.query_len
                                : padded(rank.tokens, prefill_graph_tokens_);
}

/// All ranks replay a graph, or none does: one rank without a graph makes the others run eagerly. Source: vLLM,
/// v1/worker/dp_utils.py (_post_process_cudagraph_mode: the minimum over ranks); SGLang,
/// managers/scheduler_dp_attn_mixin.py (can_cuda_graph of MLPSyncBatchInfo: the minimum); TensorRT-LLM,
/// _torch/pyexecutor/model_engine.py (all ranks generate only, and as many sequences each).
bool StepHost::runs_eager(const StepBatch& batch, const RankBatch& rank) const {
  const GraphSettings& graphs = deployment_.engine.graphs;
  const bool fits = batch.prefills.empty() ? rank.decodes <= graphs.max_batch : rank.tokens <= prefill_graph_tokens_;
  return !ideal_ && (!graphs.enabled || !fits);
}

/// The scheduler's own work for a step.
double StepHost::scheduler_seconds(double sequences) const {
  if (ideal_) return 0.0;
  const HostCosts& host = deployment_.engine.host;
  return (host.scheduler_time + host.scheduler_sequence_time * sequences).base() / deployment_.gpu.node.host_speed;
}

/// If one thread schedules and launches, eager prefill is prepared while launching.
double StepHost::host_seconds(double sequences, bool prefill, bool launching) const {
  if (ideal_) return 0.0;
  const HostCosts& host = deployment_.engine.host;
  const NodeSpec& node = deployment_.gpu.node;
  const double pace = launching && deployment_.engine.scheduler_launches ? launch_speed() : 1.0;
  const double workers = deployment_.sharding.gpus() > 1 ? host.worker_time.base() : 0.0;
  return (host.step_time.base() + workers + host.sequence_time.base() * sequences +
          (prefill ? host.prefill_step_time.base() / pace : 0.0)) /
         node.host_speed;
}

HostTime StepHost::time(const StepBatch& batch, const RankBatch& rank) const {
  const HostCosts& host = deployment_.engine.host;
  HostTime out;
  out.eager = runs_eager(batch, rank);
  if (out.eager) {
    out.kernel_launch = host.launch_time.base() / launching_pace();
  } else if (!ideal_) {
    if (!deployment_.engine.graphs.dependent_launch) out.gap = host.graph_gap.base();
    out.gap += deployment_.gpu.node.graph_gap.base();
  }
  const double sequences = rank.decodes + rank.prompts;
  out.before = host_seconds(sequences, !batch.prefills.empty(), out.eager);
  const EngineSpec& engine = deployment_.engine;
  // Plain decode, the baseline of a speed-up, does not wait.
  const bool plain = batch.query_len <= 1 && batch.prefills.empty();
  double& scheduling = (plain ? engine.async_scheduling : engine.plans_ahead()) ? out.meanwhile : out.before;
  if (deployment_.guided > 0 && !ideal_)
    scheduling += kMaskSeconds * deployment_.guided * sequences / deployment_.gpu.node.host_speed;
  scheduling += scheduler_seconds(sequences);
  return out;
}

}  // namespace roofcast
