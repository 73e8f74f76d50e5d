#include "sim/plan/token_bill.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/model/mixer_model.h"
#include "sim/plan/prices.h"
#include "sim/step/deployment.h"

namespace roofcast {

namespace {

/// Time per token and sequence of a step with `batch` decoding sequences.
double decode_time(StepModel& model, const SpeculationSpec& drafts, const StepBatch& batch) {
  StepBatch step = batch;
  step.query_len = drafts.query_len();
  double seconds = model.time(step).base();
  if (!drafts.active()) return seconds;
  seconds += drafts.draft_time.base();
  if (drafts.draft) seconds += draft_cost(*make_model_pricer(drafts.draft), drafts, batch).time.base();
  return seconds / AcceptanceLaw(drafts).mean_tokens();
}

/// Mean number of sequences per prompt.
double sequences_of(const WorkloadSpec& w, const ServingMetrics& m) {
  if (w.clients.empty() || m.clients.size() != w.clients.size()) return w.samples.generated;
  double sequences = 0;
  for (std::size_t i = 0; i < w.clients.size(); ++i)
    sequences += static_cast<double>(m.clients[i].completed) * w.clients[i].samples.generated;
  return sequences / static_cast<double>(m.completed);
}

/// Mean number of decoding sequences per replica, by Little's law over the gaps between tokens; without queueing and
/// prefill.
double decoding_on_each(const ServingMetrics& m, double replicas) {
  const double seconds = m.itl_ms.count() * m.itl_ms.mean() / 1e3;
  return seconds / m.duration.base() / std::max(1.0, replicas);
}

/// Number of visible tokens beyond which an indexer selects, which runs another kernel; 0: no indexer.
double chosen_tokens(const ModelSpec& model) {
  double most = 0;
  for (const LayerKind& kind : model.layers) most = std::max(most, facts_of(kind.mixer).chosen_tokens);
  return most;
}

}  // namespace

/// Both steps must run the same kernels: if cached tokens would bring the chunk beyond the selected ones, both are
/// beyond, so that the extra cost of that kernel for the chunk's own tokens cancels.
double cached_token_seconds(StepModel& model, int chunk) {
  const Deployment& d = model.deployment();
  const int ranks = d.sharding.attention_dp;
  const auto gpu_seconds = [&](int before) { return model.gpu_time_alone(chunk, before).base(); };
  const double read = (d.memory.layout.sequence_bytes(chunk) / d.gpu.memory_bandwidth).base();
  const double chosen = chosen_tokens(d.model);
  const int first = chosen >= chunk && chosen < 2.0 * chunk ? static_cast<int>(chosen) + 1 - chunk : 0;
  return std::max(read, gpu_seconds(first + chunk) - gpu_seconds(first)) / chunk / ranks;
}

TokenTimes token_times(const std::shared_ptr<const Deployment>& deployment, const SpeculationSpec& speculation,
                       double prompt, double output, double decoding) {
  const Deployment& d = *deployment;
  StepModel model(deployment);
  const int chunk = std::max(1, std::min(d.engine.max_num_batched_tokens, static_cast<int>(std::lround(prompt))));
  const int ranks = d.sharding.attention_dp;
  const std::vector<PrefillChunk> chunks(static_cast<std::size_t>(ranks), {chunk, 0, true});
  const int batch = std::max(1, std::min(d.max_sequences(), static_cast<int>(std::lround(decoding))));
  const StepBatch step{.decodes = batch, .decode_context = batch * (prompt + output / 2), .prefills = {}};
  const double input = model.time({.decodes = 0, .decode_context = 0, .prefills = chunks}).base() / chunk / ranks;
  return {.input = input,
          .cached_input = std::min(input, cached_token_seconds(model, chunk)),
          .output = decode_time(model, speculation, step) / batch};
}

TokenCounts token_counts(const ServingMetrics& m) {
  return {.input = std::max(0.0, m.input_tokens - m.cached_tokens),
          .cached_input = m.cached_tokens,
          .output = m.output_tokens,
          .dropped_output = m.dropped_sample_tokens};
}

TokenBill split_bill(double usd, const TokenCounts& tokens, const TokenTimes& times) {
  const double in = times.input * tokens.input + times.cached_input * tokens.cached_input,
               out = times.output * (tokens.output + tokens.dropped_output);
  return split_bill(usd, tokens, times, in + out > 0 ? in / (in + out) : 0);
}

TokenBill split_bill(double usd, const TokenCounts& tokens, const TokenTimes& times, double input_share) {
  TokenBill bill{.input_share = input_share};
  const double in = times.input * tokens.input + times.cached_input * tokens.cached_input;
  const double usd_per_second = in > 0 ? usd * input_share / in : 0;
  bill.usd_per_million_input = usd_per_second * times.input * 1e6;
  bill.usd_per_million_cached_input = usd_per_second * times.cached_input * 1e6;
  if (tokens.output > 0) bill.usd_per_million_output = usd * (1 - input_share) / tokens.output * 1e6;
  if (tokens.all() > 0) bill.usd_per_million_total = usd / tokens.all() * 1e6;
  return bill;
}

TokenBill token_bill(double usd, const ServingMetrics& m, const Scenario& s, int replicas, int prefill_replicas) {
  if (m.completed == 0 || m.duration <= Seconds(0)) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();  // no token, so no price of one
    return {.usd_per_million_input = kNone,
            .usd_per_million_cached_input = kNone,
            .usd_per_million_output = kNone,
            .usd_per_million_total = kNone};
  }
  const double requests = static_cast<double>(m.completed);
  const TokenCounts tokens = token_counts(m);
  const double sequences = requests * std::max(1.0, sequences_of(*s.workload, m));
  const TokenTimes times =
      token_times(s.deployment, s.serving.speculation, m.input_tokens / requests,
                  (tokens.output + tokens.dropped_output) / sequences, decoding_on_each(m, paid_replicas(m, replicas)));
  const auto& apart = s.serving.disaggregation;
  if (!apart) return split_bill(usd, tokens, times);
  const Bill bill = cheapest_bill(*s.deployment, apart->prefill.get(), paid_spans(m, replicas, prefill_replicas));
  return split_bill(usd, tokens, times, bill.usd() > 0 ? bill.prefill.usd / bill.usd() : 0);
}

}  // namespace roofcast
