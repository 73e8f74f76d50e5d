// What a measured run is predicted to show.

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "sim/plan/measured/measured_runs.h"
#include "sim/plan/shared_pricer.h"

namespace roofcast {
namespace {

double metric_value(const std::string& metric, const MeasuredRun& run, double output_tokens, double seconds) {
  const double per_second = output_tokens / seconds;
  if (metric == "output_tokens_per_s") return per_second;
  if (metric == "tokens_per_s_per_gpu") return per_second / run.deployment->sharding.gpus();
  return 0;
}

/// Steps of sequences that all say the same: every token meets the top_k experts of one.
std::unique_ptr<StepPricer> one_prompt_pricer(const Deployment& deployment) {
  auto same = std::make_shared<Deployment>(deployment);
  for (LayerKind& kind : same->model.layers) {
    if (auto* experts = std::get_if<ExpertFeedForward>(&kind.feed_forward)) experts->experts = experts->top_k;
  }
  return make_model_pricer(same);
}

/// One batch of equal requests, without a front end: what gptSessionBenchmark, generate() and their like time.
RunPrediction predict_static(const MeasuredRun& run, StepPricer& pricer) {
  const EngineSpec& engine = run.deployment->engine;
  const int isl = run.workload.prompt_tokens.longest(), osl = run.workload.output_tokens.longest();
  const double room = run.queues ? std::max(1.0, run.deployment->memory.max_batch(isl + osl, engine.block_size)) : 1e9;
  const int together = static_cast<int>(std::min<double>(std::min(run.batch, engine.max_num_seqs), room));
  double prefill = 0;
  for (std::int64_t done = 0, total = std::int64_t{together} * isl; done < total;) {
    std::vector<PrefillChunk> chunks;
    std::int64_t left = std::min<std::int64_t>(std::max(engine.max_num_batched_tokens, isl), total - done);
    while (left > 0) {
      const int before = static_cast<int>(done % isl),
                tokens = static_cast<int>(std::min<std::int64_t>(left, isl - before));
      chunks.push_back({tokens, before, before + tokens == isl});
      left -= tokens, done += tokens;
    }
    prefill += pricer.cost({.decodes = 0, .decode_context = 0, .prefills = chunks}).time.base();
  }
  const std::unique_ptr<StepPricer> same =
      run.one_prompt && !run.dense && together > 1 ? one_prompt_pricer(*run.deployment) : nullptr;
  StepPricer& decoding = same ? *same : pricer;
  const double decode = osl > 1 ? decoding.decode_run(together, (isl + 1.0) * together, 1, osl - 1).time.base() : 0.0;
  const double waves = std::ceil(static_cast<double>(run.batch) / together);
  const double seconds = waves * (prefill + decode);
  RunPrediction p{.ttft_ms = prefill * 1e3, .tpot_ms = osl > 1 ? decode / (osl - 1) * 1e3 : 0.0, .value = 0};
  p.value = run.metric == "ttft_ms"   ? p.ttft_ms
            : run.metric == "tpot_ms" ? p.tpot_ms
            : run.metric == "e2e_ms"  ? seconds * 1e3
                                      : metric_value(run.metric, run, static_cast<double>(osl) * run.batch, seconds);
  return p;
}

}  // namespace

RunPrediction predict_run(RunKind kind, const MeasuredRun& run, StepPricer& pricer) {
  SIM_CHECK(run.note.empty(), "a run with a note cannot be predicted");
  // The first token of a batch that queues is that of the part which is let in first.
  const bool at_once = !run.queues || run.metric == "ttft_ms";
  if (kind == RunKind::kStatic && at_once) return predict_static(run, pricer);
  ServingOptions options = run.serving;
  options.replicas = run.replicas;
  options.disaggregation = run.disaggregation;
  if (!run.speculation.acceptance.empty()) options.speculation = run.speculation;
  options.pricer = [&](const std::shared_ptr<const Deployment>& deployment) -> std::unique_ptr<StepPricer> {
    if (deployment != run.deployment) return make_model_pricer(deployment);
    return std::make_unique<SharedPricer>(pricer);
  };
  const ServingMetrics m = simulate(run.deployment, run.workload, options);
  RunPrediction p{.ttft_ms = m.ttft_ms.mean(), .tpot_ms = m.tpot_ms.mean(), .value = 0};
  if (run.metric == "ttft_ms") {
    p.value = p.ttft_ms;
  } else if (run.metric == "itl_ms") {
    p.value = m.itl_ms.mean();
  } else if (run.metric == "tpot_ms") {
    p.value = p.tpot_ms;
  } else if (run.metric == "e2e_ms") {
    p.value = m.duration.base() * 1e3;
  } else if (run.metric == "total_tokens_per_s") {
    p.value = (m.input_tokens + m.output_tokens) / m.duration.base();
  } else if (!run.metric.empty()) {
    p.value = metric_value(run.metric, run, m.output_tokens, m.duration.base());
  }
  return p;
}

}  // namespace roofcast
