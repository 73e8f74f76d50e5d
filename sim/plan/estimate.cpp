#include "sim/plan/estimate.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hw/kernels/moe.h"
#include "sim/model/feed_forward_model.h"
#include "sim/plan/acceptance.h"
#include "sim/plan/intervals.h"
#include "sim/plan/power.h"
#include "sim/plan/prefill_sums.h"
#include "sim/plan/prices.h"
#include "sim/plan/token_bill.h"
#include "sim/serve/scheduler.h"
#include "sim/step/memory_sum.h"
#include "sim/step/region.h"
#include "sim/step/streaming.h"

namespace roofcast {
namespace {

/// Tokens of a sequence at its end, or at the priced decode step if that is longer.
double longest(const EstimateRequest& r) {
  return std::max(static_cast<double>(r.prompt_tokens) + r.output_tokens, static_cast<double>(r.context.value_or(0)));
}

/// Activation bytes of a step that prefills `sequences` sequences of `prompt` tokens.
Bytes activations_of(const Deployment& d, double sequences, double prompt) {
  return d.activations(std::min<double>(d.engine.max_num_batched_tokens, sequences * prompt), sequences, prompt);
}

/// The number of sequences, or tokens of one, that fit: at most `most`, the limit by the cache alone; fewer if
/// activations exceed the memory plan.
template <class Fits>
double most_that_fit(double most, Fits fits) {
  if (most >= 1e9 || most < 1 || fits(most)) return most;
  double low = 0, high = most;
  while (high - low > 1) {
    const double middle = std::floor((low + high) / 2);
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

EstimateMemory memory_of(const Deployment& d, const EstimateRequest& r) {
  const MemoryPlan& plan = d.memory;
  const double tokens = longest(r), block = d.fidelity == Fidelity::kIdeal ? 1 : std::max(1, d.engine.block_size);
  // The ideal fidelity has no blocks, so a window does not hold partly covered blocks.
  const auto cached = [&](const CacheLayout& layout, double all) {
    if (d.fidelity == Fidelity::kIdeal) return layout.sequence_bytes(all);
    return d.engine.block_size > 0 ? layout.paged_bytes(all, block)
                                   : layout.sequence_bytes(std::max(all, region_tokens(d)));
  };
  const double sequences = std::ceil(static_cast<double>(r.batch) / d.sharding.attention_dp);
  EstimateMemory m{.weights = plan.weights,
                   .cache_per_token = plan.layout.bytes_per_token(),
                   .state_per_sequence = plan.layout.state_per_sequence,
                   .cache = d.engine.kv_cache ? cached(plan.layout, tokens) * sequences : Bytes(0),
                   .activations = activations_of(d, sequences, r.prompt_tokens),
                   .capacity = plan.capacity,
                   .reason = {}};
  const CacheLayout pooled = d.engine.kv_cache ? plan.pooled() : CacheLayout{};
  const auto fits = [&](double n, double prompt, double all) {
    const Bytes buffers = std::max(Bytes(0), activations_of(d, n, prompt) - plan.activations);
    return cached(pooled, all) * n + buffers <= plan.cache;
  };
  if (!plan.infeasible) {
    m.max_batch = d.sharding.attention_dp * most_that_fit(plan.max_batch(tokens, block),
                                                          [&](double n) { return fits(n, r.prompt_tokens, tokens); });
    m.max_context = most_that_fit(plan.max_context(block), [&](double n) { return fits(1, n, n); });
    if (d.fidelity != Fidelity::kIdeal && d.engine.block_size == 0 && d.engine.kv_cache)
      m.max_context = std::min(m.max_context, region_tokens(d));
  }
  m.fits = !plan.infeasible && fits(sequences, r.prompt_tokens, tokens);
  if (plan.infeasible) {
    m.reason = plan.infeasible->reason;
  } else if (!m.fits) {
    const Bytes buffers = std::max(Bytes(0), m.activations - plan.activations);
    m.reason = fmt::format("{} sequences of {:.0f} tokens do not fit {}: {}; {:.0f} sequences fit", r.batch, tokens,
                           d.gpu.name, memory_sum(d, plan, cached(pooled, tokens) * sequences, buffers), m.max_batch);
  }
  return m;
}

/// New tokens of a rank in one prefill step. An engine that does not chunk prompts takes as many whole prompts as fit
/// its token budget, and at least one.
std::int64_t step_tokens(const Deployment& d, const EstimateRequest& r, std::int64_t total) {
  if (d.fidelity == Fidelity::kIdeal) return total;
  const std::int64_t budget = d.engine.max_num_batched_tokens, prompt = r.prompt_tokens;
  if (d.engine.chunked_prefill) return budget;
  const std::int64_t tokens = make_scheduler(d.engine.scheduler)->uncut_tokens(budget);
  return std::min(total, std::max<std::int64_t>(1, tokens / prompt) * prompt);
}

/// All media of a rank's prompts, encoded before its first step.
std::vector<EncoderWork> encoded_first(const EstimateRequest& r, int ranks) {
  std::vector<EncoderWork> media = r.media;
  for (EncoderWork& work : media) work.items *= std::ceil(static_cast<double>(r.batch) / ranks);
  return media;
}

/// The steps that prefill `batch` equal prompts within the token budget, and their total. Attention-DP ranks take
/// prompts in turn and run in parallel, each with its own budget. All steps before a rank's last prompt are those of
/// any larger batch: `known` keeps the sum of those that fill the budget.
PrefillSum prefill_all(StepModel& model, const EstimateRequest& r, PrefillSums* known = nullptr) {
  const Deployment& d = model.deployment();
  const int ranks = std::min(r.batch, d.sharding.attention_dp), rounds = (r.batch + ranks - 1) / ranks;
  const std::int64_t total = std::int64_t{rounds} * r.prompt_tokens;
  const std::int64_t budget = step_tokens(d, r, total);
  const PrefillSums::Prompts prompts{r.prompt_tokens, ranks, budget};
  const bool alike = known != nullptr && r.media.empty() && budget % r.prompt_tokens != 0;
  const std::int64_t kept = alike ? (total - r.prompt_tokens) / budget * budget : 0;
  PrefillSum out = kept > 0 ? known->longest(prompts, kept) : PrefillSum{};
  const std::int64_t from = out.done;
  auto& [sum, steps, done] = out;
  while (done < total) {
    std::vector<PrefillChunk> chunks;
    std::int64_t left = std::min(budget, total - done);
    while (left > 0) {
      const int before = static_cast<int>(done % r.prompt_tokens);
      const int tokens = static_cast<int>(std::min<std::int64_t>(left, r.prompt_tokens - before));
      const std::int64_t ahead = d.sharding.pp > 1 && steps > 0 ? budget : std::min<std::int64_t>(before, budget);
      const bool last_round = done / r.prompt_tokens == rounds - 1;
      chunks.insert(chunks.end(), static_cast<std::size_t>(last_round ? r.batch - (rounds - 1) * ranks : ranks),
                    {tokens, before, before + tokens == r.prompt_tokens, static_cast<int>(ahead)});
      left -= tokens;
      done += tokens;
    }
    // In a large batch equal steps repeat: the last one represents the rest.
    const bool repeats = budget % r.prompt_tokens == 0 && total - done >= budget;
    double times = repeats ? 1.0 + std::floor(static_cast<double>(total - done) / static_cast<double>(budget)) : 1.0;
    if (repeats && d.sharding.pp > 1 && (total - done) % budget == 0) times -= 1.0;  // nothing follows the last
    if (repeats) done += static_cast<std::int64_t>(times - 1.0) * budget;
    std::vector<EncoderWork> media;
    if (steps == 0) media = encoded_first(r, ranks);
    const StepBatch step{.prefills = chunks, .encodes = media, .followed = done < total};
    merge(sum, model.breakdown(step), times);
    steps += times;
    if (done == kept) known->keep(prompts, from, out);
  }
  return out;
}

/// Generation without a KV cache: every token is a prefill of the whole sequence so far.
Seconds naive_generation(StepModel& model, const EstimateRequest& r) {
  Seconds total{};
  constexpr int kPoints = 32;  // trapezoidal rule over the output, because the cost is smooth in the length
  const int last = std::max(r.output_tokens - 1, 1), points = std::min(kPoints, last);
  for (int i = 0; i < points; ++i) {
    const int length = r.prompt_tokens + 1 + static_cast<int>((i + 0.5) * last / points);
    const std::vector<PrefillChunk> chunks(static_cast<std::size_t>(r.batch), PrefillChunk{length, 0, true});
    total += model.time({.decodes = 0, .decode_context = 0, .prefills = chunks}) * (static_cast<double>(last) / points);
  }
  return total;
}

/// Replaces the decode step by a round of speculation: drafting and verification.
void add_speculation(StepModel& model, Estimate& e, int context) {
  const EstimateRequest& r = e.request;
  e.speculation = speculate(model, r.speculation, r.batch, context);
  e.decode = model.breakdown({.decodes = r.batch,
                              .decode_context = static_cast<double>(context) * r.batch,
                              .query_len = r.speculation.query_len(),
                              .prefills = {}});
  const SpeculationEstimate& s = *e.speculation;
  add_drafts(e.decode, r.speculation, s.draft);
  e.tpot = s.step() / s.tokens_per_step;
  if (r.speculation.draft && facts_of(r.speculation.method).own_cache) {
    StepModel draft(r.speculation.draft);
    merge(e.prefill, prefill_all(draft, r).sum, 1.0);
  }
}

/// Time from sending a batch to its last first token. n equal prompts pass two machines in series, the front end and
/// the GPU, in a + b + (n - 1) max(a, b) (Johnson 1954): prefill hides the front end's work except for the first
/// prompt, unless the front end is slower. A front end of several servers receives that many prompts at a time.
Seconds through_front_end(const Deployment& d, const EstimateRequest& r, Seconds prefill) {
  const HostCosts& host = d.engine.host;
  const Seconds intake = intake_time(d.engine, r.prompt_tokens);
  const Seconds each = prefill / static_cast<double>(r.batch);
  const Seconds between = intake / static_cast<double>(d.engine.front_ends(d.sharding));
  return host.request_latency + intake + each + std::max(between, each) * (r.batch - 1.0);
}

std::optional<ExpertBalance> balance_of(const Deployment& d, const EstimateRequest& r) {
  if (d.sharding.ep <= 1) return std::nullopt;
  Routing routing = d.routing;
  const double tokens = static_cast<double>(r.batch) * r.speculation.query_len();
  for (const LayerKind& kind : d.model.layers) {
    const FeedForwardFacts facts = facts_of(kind.feed_forward);
    if (facts.experts <= 0) continue;
    const auto fullest = [&] { return max_rank_load(tokens, facts.top_k, facts.experts, d.sharding.ep, routing); };
    ExpertBalance balance{.as_drawn = fullest()};
    routing.redundant = d.sharding.expert_copies();
    balance.placed = fullest();
    return balance;
  }
  return std::nullopt;
}

/// Passes of a diffusion model until its first tokens are final, in addition to those priced as its prefill.
double first_passes(const Deployment& d, const EstimateRequest& r) {
  if (!r.speculation.diffuses()) return 0;
  const int block = std::min(r.output_tokens, 1 + r.speculation.num_speculative_tokens);
  const double passes = std::ceil(block / AcceptanceLaw(r.speculation).mean_tokens());
  return d.engine.kv_cache ? passes : passes - 1;
}

/// Without a KV cache each pass of a diffusion model computes prompt and answer completely (LLaDA, arXiv:2502.09992).
/// The first pass counts as its prefill.
void add_whole_passes(StepModel& model, Estimate& e) {
  const EstimateRequest& r = e.request;
  const std::vector<PrefillChunk> chunks(static_cast<std::size_t>(r.batch),
                                         PrefillChunk{r.prompt_tokens + r.output_tokens, 0, true});
  e.decode = model.breakdown({.decodes = 0, .decode_context = 0, .prefills = chunks});
  e.tpot = e.decode.time / AcceptanceLaw(r.speculation).mean_tokens();
  e.prefill = e.decode;
  e.prefill_steps = 1;
}

/// The decode step, and the mean time of a token over the output.
void add_decode(StepModel& model, Estimate& e, int context) {
  const EstimateRequest& r = e.request;
  const std::int64_t gaps = std::max(r.output_tokens - 1, 1);
  if (r.speculation.diffuses() && !model.deployment().engine.kv_cache) return add_whole_passes(model, e);
  if (model.deployment().engine.kv_cache) {
    e.decode =
        model.breakdown({.decodes = r.batch, .decode_context = static_cast<double>(context) * r.batch, .prefills = {}});
    e.tpot =
        r.context
            ? e.decode.time
            : model.decode_run({.decodes = r.batch, .decode_context = (r.prompt_tokens + 1.0) * r.batch}, gaps).time /
                  static_cast<double>(gaps);
  } else {
    const std::vector<PrefillChunk> chunks(static_cast<std::size_t>(r.batch), PrefillChunk{context, 0, true});
    e.decode = model.breakdown({.decodes = 0, .decode_context = 0, .prefills = chunks});
    e.tpot = r.context ? e.decode.time : naive_generation(model, r) / static_cast<double>(gaps);
  }
  if (r.speculation.active() && model.deployment().engine.kv_cache) add_speculation(model, e, context);
}

/// Splits the bill of the batch between prefill and decode in proportion to time.
void add_token_prices(StepModel& model, Estimate& e) {
  const EstimateRequest& r = e.request;
  const double batch = r.batch, decoding = e.tpot.base() * std::max(r.output_tokens - 1, 1);
  const int chunk = std::min(r.prompt_tokens, model.deployment().engine.max_num_batched_tokens);
  const double input = e.prefill.time.base() / (batch * r.prompt_tokens);
  const TokenTimes times{.input = input,
                         .cached_input = std::min(input, cached_token_seconds(model, chunk)),
                         .output = decoding / (batch * r.output_tokens)};
  const TokenCounts tokens{.input = batch * r.prompt_tokens, .cached_input = 0, .output = batch * r.output_tokens};
  const double usd = e.cost.usd_per_hour / 3600.0 / r.replicas * e.request_latency.base();
  const TokenBill bill = split_bill(usd, tokens, times);
  e.cost.usd_per_million_input_tokens = bill.usd_per_million_input;
  e.cost.usd_per_million_cached_input_tokens = bill.usd_per_million_cached_input;
  e.cost.usd_per_million_output_tokens = bill.usd_per_million_output;
  e.cost.usd_per_million_total_tokens = bill.usd_per_million_total;
}

void add_cost(StepModel& model, Estimate& e) {
  const Deployment& d = model.deployment();
  const EstimateRequest& r = e.request;
  e.cost.usd_per_hour = cheapest_bill(d, r.replicas).usd_per_hour();
  add_token_prices(model, e);
  const Utilization prefill = drawn_by(d, e.prefill.time, e.prefill.flops, e.prefill.bytes);
  const Utilization decode = drawn_by(d, e.decode.time, e.decode.flops, e.decode.bytes);
  const Joules joules = power_of(d.gpu, prefill) * e.prefill.time;
  const Joules decoding = power_of(d.gpu, decode) * (e.tpot * static_cast<double>(std::max(r.output_tokens - 1, 1)));
  e.cost.joules_per_output_token =
      (joules.value + decoding.value) * d.sharding.gpus() / (static_cast<double>(r.batch) * r.output_tokens);
}

/// Positions of an encoder-decoder, past which it cannot go.
void check_positions(const Deployment& d, const EstimateRequest& r) {
  if (const std::string why = beyond_positions(d.model, r.prompt_tokens, r.output_tokens); !why.empty())
    throw ConfigError(why);
}

/// Limits the cost of an estimate: prefill is priced step by step, and a step sequence by sequence.
void check_size(const Deployment& d, const EstimateRequest& r) {
  constexpr double kMostTokens = 1e10, kMostSteps = 2.5e5;
  const double tokens = static_cast<double>(r.batch) * r.prompt_tokens;
  const double budget = static_cast<double>(step_tokens(d, r, static_cast<std::int64_t>(tokens))) *
                        (d.fidelity == Fidelity::kIdeal ? 1 : d.sharding.attention_dp);
  if (tokens > kMostTokens || tokens / budget > kMostSteps)
    throw ConfigError(
        fmt::format("{} prompts of {} tokens take {:.0f} prefill steps; at most {:.0f} steps and {:.0e} "
                    "tokens are estimated",
                    r.batch, r.prompt_tokens, std::ceil(tokens / budget), kMostSteps, kMostTokens));
}

}  // namespace

double processed_tokens(double prompt_tokens, double output_tokens, bool kv_cache) {
  if (kv_cache) return prompt_tokens + output_tokens;
  return output_tokens * prompt_tokens + output_tokens * (output_tokens - 1.0) / 2.0;
}

Estimate estimate(const std::shared_ptr<const Deployment>& deployment, const EstimateRequest& r) {
  StepModel model(deployment);
  return estimate(model, r);
}

namespace {

Estimate estimate_with(StepModel& model, const EstimateRequest& asked, PrefillSums* sums) {
  const Deployment& d = model.deployment();
  Estimate e;
  e.request = asked;
  if (d.fidelity != Fidelity::kIdeal) e.request.batch = std::clamp(asked.batch, 1, std::max(1, d.max_sequences()));
  e.waiting = asked.batch - e.request.batch;
  const EstimateRequest& r = e.request;
  check_size(d, r);
  check_positions(d, r);
  e.memory = memory_of(d, r);
  PrefillSum prefill = prefill_all(model, r, sums);
  e.prefill = std::move(prefill.sum);
  e.prefill_steps = prefill.steps;
  add_decode(model, e, r.context.value_or(r.prompt_tokens + r.output_tokens / 2));
  e.ttft = d.fidelity == Fidelity::kIdeal ? e.prefill.time : through_front_end(d, r, e.prefill.time);
  e.front_end = e.ttft - e.prefill.time;
  const double passes = first_passes(d, r);
  e.ttft += e.decode.time * passes;
  // Tokens delivered with the first one: one, or a block of a diffusion model.
  const int first = r.speculation.diffuses() ? 1 + r.speculation.num_speculative_tokens : 1;
  e.request_latency = e.ttft + e.tpot * static_cast<double>(std::max(r.output_tokens - first, 0));
  StepBreakdown until_first = e.prefill;
  if (passes > 0) merge(until_first, e.decode, passes);
  const LoadRegime regime = load_regime(d, 1, r.batch, longest(r));
  const SystemSpread system =
      system_spread(d, regime, host_spreads(e.decode, e.prefill, e.decode, e.front_end, e.ttft));
  e.ttft_interval = interval_of(e.ttft, together(kernel_spread(relative_spread(until_first, d, e.ttft)), system.ttft));
  LogSpread decoding = kernel_spread(relative_spread(e.decode, d, e.decode.time));
  if (d.fidelity != Fidelity::kIdeal) decoding = together(decoding, acceptance_spread(r.speculation));
  e.tpot_interval = interval_of(e.tpot, together(decoding, system.tpot));
  e.expert_balance = balance_of(d, r);
  const double tokens_per_step = r.speculation.active() ? AcceptanceLaw(r.speculation).mean_tokens() : 1.0;
  e.output_tokens_per_s = r.replicas * r.batch * tokens_per_step / e.decode.time.base();
  e.request_tokens_per_s = static_cast<double>(r.replicas) * r.batch * r.output_tokens / e.request_latency.base();
  add_cost(model, e);
  return e;
}

}  // namespace

Estimate estimate(StepModel& model, const EstimateRequest& asked) { return estimate_with(model, asked, nullptr); }

Estimate estimate(StepModel& model, const EstimateRequest& asked, PrefillSums& sums) {
  return estimate_with(model, asked, &sums);
}

}  // namespace roofcast
