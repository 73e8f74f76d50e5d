#include "sim/plan/search/load_bounds.h"

#include <algorithm>
#include <limits>

#include "sim/plan/search/load_test.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

constexpr double kSlack = 0.9;

Seconds prefill_time(StepPricer& pricer, int tokens, int before) {
  const std::vector<PrefillChunk> chunk{{tokens, before, true}};
  return pricer.cost({.decodes = 0, .decode_context = 0, .prefills = chunk}).time;
}

/// In chunks of at most 512 tokens, which have the least attention.
double pieces_time(StepPricer& pricer, int tokens) {
  std::vector<PrefillChunk> chunks;
  for (int left = tokens; left > 0; left -= 512) chunks.push_back({std::min(left, 512), 0, false});
  return pricer.cost({.decodes = 0, .decode_context = 0, .prefills = chunks}).time.base();
}

/// Sizes from 1 to `most`: powers of two, midpoints, and the end.
std::vector<int> sizes_up_to(int most) {
  std::vector<int> out;
  for (int size = 1; size < most; size *= 2) {
    out.push_back(size);
    if (size >= 8 && size + size / 2 < most) out.push_back(size + size / 2);
  }
  out.push_back(most);
  return out;
}

/// The smallest time of one prompt token.
double prompt_time(const Deployment& d, StepPricer& pricer) {
  double least = std::numeric_limits<double>::infinity();
  const int budget = std::min(d.engine.max_num_batched_tokens * d.sharding.attention_dp, 1 << 20);
  for (int tokens : sizes_up_to(budget)) {
    if (tokens < 64 && tokens < budget) continue;
    least = std::min(least, pieces_time(pricer, tokens) / tokens);
  }
  return least;
}

/// The smallest time per output token, without drafting.
double output_time(const Deployment& d, const SpeculationSpec& speculation, StepPricer& pricer) {
  const double tokens = AcceptanceLaw(speculation).mean_tokens();
  double least = std::numeric_limits<double>::infinity();
  for (int batch : sizes_up_to(std::min(d.max_sequences(), 1 << 16))) {
    const Seconds step = pricer
                             .cost({.decodes = batch,
                                    .decode_context = static_cast<double>(batch),
                                    .query_len = speculation.query_len(),
                                    .prefills = {}})
                             .time;
    least = std::min(least, step.base() / (batch * tokens));
  }
  return least;
}

bool unbounded(const Scenario& s, const Deployment& d) {
  const WorkloadSpec& w = *s.workload;
  return w.turns > 1 || w.arrivals.process == ArrivalSpec::Process::kTrace || !d.engine.kv_cache;
}

double new_prompt_tokens(const WorkloadSpec& w) {
  return std::max(0.0, w.prompt_tokens.mean() - w.shared_prefix_tokens);
}

/// Tokens that every request must prefill: its prompt if all have one length and nothing is shared, else one.
int certain_prompt(const WorkloadSpec& w) {
  const std::optional<int> length = w.prompt_tokens.constant();
  return length && w.shared_prefix_tokens == 0 && w.prefix_groups <= 1 ? *length : 1;
}

/// The chunks of a prompt that is prefilled alone.
int alone_chunk(const Deployment& d, int prompt) {
  return std::max(1, std::min(d.engine.max_num_batched_tokens * d.sharding.attention_dp, prompt));
}

/// The front end plus the prefill of a prompt alone; of its first token if prompts differ or are shared.
Seconds least_ttft(const Scenario& s, const Deployment& d, StepPricer& pricer, double slack) {
  const int prompt = certain_prompt(*s.workload), step = alone_chunk(d, prompt);
  Seconds ttft{};
  for (int done = 0; done < prompt; done += step)
    ttft += prefill_time(pricer, std::min(step, prompt - done), done) * slack;
  if (d.fidelity == Fidelity::kIdeal) return ttft;
  const HostCosts& host = d.engine.host;
  return ttft + (host.request_latency + host.request_time + host.prompt_token_time * prompt) * slack;
}

/// The attention time of a whole prompt beyond that of the chunks in prompt_time().
double attention_time(const Scenario& s, const Deployment& d, StepPricer& pricer) {
  const int prompt = certain_prompt(*s.workload), step = alone_chunk(d, prompt);
  double more = 0;
  for (int done = 0; done < prompt; done += step) {
    const int tokens = std::min(step, prompt - done);
    more += prefill_time(pricer, tokens, done).base() - pieces_time(pricer, tokens);
  }
  return std::max(0.0, more);
}

}  // namespace

Seconds least_tpot(const SpeculationSpec& speculation, int context, StepPricer& pricer) {
  const Seconds step = pricer
                           .cost({.decodes = 1,
                                  .decode_context = static_cast<double>(context),
                                  .query_len = speculation.query_len(),
                                  .prefills = {}})
                           .time;
  return step / (1.0 + (speculation.active() ? speculation.num_speculative_tokens : 0));
}

LoadBounds load_bounds(const Scenario& s, StepPricer& pricer) {
  LoadBounds bounds{.requests_per_s = std::numeric_limits<double>::infinity()};
  const Deployment& d = *s.deployment;
  if (unbounded(s, d)) return bounds;
  const double seconds =
      std::max(new_prompt_tokens(*s.workload) * prompt_time(d, pricer),
               (s.workload->output_tokens.mean() - 1.0) * output_time(d, s.serving.speculation, pricer));
  if (seconds > 0) bounds.requests_per_s = 1.0 / (seconds * kSlack);
  bounds.tpot = least_tpot(s.serving.speculation, 1, pricer) * kSlack;
  bounds.ttft = least_ttft(s, d, pricer, kSlack);
  return bounds;
}

LoadBounds prefill_bounds(const Scenario& s, const Deployment& worker, StepPricer& pricer) {
  LoadBounds bounds{.requests_per_s = std::numeric_limits<double>::infinity()};
  if (unbounded(s, worker)) return bounds;
  const double seconds =
      new_prompt_tokens(*s.workload) * prompt_time(worker, pricer) + attention_time(s, worker, pricer);
  if (seconds > 0) bounds.requests_per_s = 1.0 / (seconds * kPrefillSlack);
  bounds.ttft = least_ttft(s, worker, pricer, kPrefillSlack);
  return bounds;
}

bool may_hold(const LoadBounds& bounds, const std::vector<Objective>& objectives) {
  for (const Objective& o : objectives) {
    if (o.metric == LatencyMetric::kTtft && bounds.ttft > o.limit) return false;
    if (o.metric == LatencyMetric::kTpot && bounds.tpot > o.limit) return false;
    if (o.metric == LatencyMetric::kE2el && bounds.ttft > o.limit) return false;
  }
  return true;
}

}  // namespace roofcast
