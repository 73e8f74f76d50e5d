#include "sim/step/expert_overlap.h"

#include <algorithm>
#include <cmath>

#include "sim/model/feed_forward_model.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

/// Work that shares the SMs with dispatch or combine. GEMMs avoid these SMs from start to end (SGLang,
/// operations_strategy.py, deep_gemm_num_sms; vLLM, v1/worker/gpu_ubatch_wrapper.py, VLLM_DBO_COMM_SMS). Nothing runs
/// next to the part of an exchange that uses all SMs.
OverlappedLayers::Slot slot(double work, double attention_share, double exchange, double alone, double sm_share) {
  const double slower = 1.0 / (1.0 - std::min(sm_share, 0.9));
  return {.work = work * slower + alone, .attention_share = attention_share * slower, .exchange = exchange};
}

/// The down projection (a third of gated experts) runs in one piece per local expert, and each piece is combined when
/// it is done. So one piece of the shorter of the two is not hidden.
double pipelined(double down, double combine, double pieces) {
  return std::max(down, combine) + std::min(down, combine) / pieces;
}

OverlappedLayers single_batch(const StageSeconds& s, const Deployment& d) {
  const bool blackwell = d.gpu.architecture == Architecture::kBlackwell;
  const double share = combining_sms(d) / d.gpu.sm_count, down = s[Stage::kExperts] / 3.0;
  double experts = 1.0;
  for (const LayerKind& kind : d.model.layers) experts = std::max(experts, facts_of(kind.feed_forward).experts);
  const double pieces = std::ceil((experts + d.sharding.expert_copies()) / d.sharding.ep);
  OverlappedLayers out;
  out.attention_share = 1.0;
  out.fixed = s[Stage::kEntry] + s[Stage::kCore] + s[Stage::kExperts] - down;
  const double beside = blackwell ? s[Stage::kShared] : 0.0;
  out.fixed += pipelined((down + beside) / (1.0 - share), s[Stage::kCombine], pieces);
  out.slots[0] =
      slot(blackwell ? 0.0 : s[Stage::kShared], 0.0, s[Stage::kDispatch], blackwell ? 0.0 : s.dispatch_alone, 0.0);
  return out;
}

/// Five stages, staggered by two: one half dispatches its tokens while its shared experts and the other half's
/// projections run, and combines them while the other half attends.
OverlappedLayers two_batch_decode(const StageSeconds& s) {
  OverlappedLayers out;
  out.fixed = 2.0 * s[Stage::kExperts];
  out.slots[0] = slot(2.0 * (s[Stage::kShared] + s[Stage::kEntry]), 0.0, 2.0 * s[Stage::kDispatch],
                      2.0 * s.dispatch_alone, s.sm_share);
  out.slots[1] = slot(2.0 * s[Stage::kCore], 1.0, 2.0 * s[Stage::kCombine], 2.0 * s.combine_alone, s.sm_share);
  return out;
}

OverlappedLayers::Slot during_dispatch(const StageSeconds& s, double work, double attention_share) {
  return slot(work, attention_share, s[Stage::kDispatch], s.dispatch_alone, s.sm_share);
}
OverlappedLayers::Slot during_combine(const StageSeconds& s, double work, double attention_share) {
  return slot(work, attention_share, s[Stage::kCombine], s.combine_alone, s.sm_share);
}

/// The halves alternate at each exchange.
OverlappedLayers two_batch_prefill(const StageSeconds& s) {
  const double before = s[Stage::kShared] + s[Stage::kEntry] + s[Stage::kCore], experts = s[Stage::kExperts];
  OverlappedLayers out;
  out.slots = {during_dispatch(s, before, 0.5), during_dispatch(s, experts, 0.0), during_combine(s, experts, 0.0),
               during_combine(s, before, 0.5)};
  return out;
}

/// The same order, but shared experts run during combine.
OverlappedLayers dual_batch(const StageSeconds& s) {
  const double before = s[Stage::kEntry] + s[Stage::kCore], shared = s[Stage::kShared], experts = s[Stage::kExperts];
  OverlappedLayers out;
  out.slots = {during_dispatch(s, before, 0.5), during_dispatch(s, experts, 0.0),
               during_combine(s, shared + experts, 0.0), during_combine(s, shared + before, 0.5)};
  return out;
}

/// Tokens of one rank.
struct RankTokens {
  double decodes = 0, prompts = 0;
};

/// Calls test(tokens) for each rank; whether it holds for all.
template <class Test>
bool all_ranks(const StepBatch& batch, const Sharding& sharding, const Test& test) {
  const double micro = micro_batches(batch, sharding);
  if (batch.ranks.empty()) {
    double prompts = 0;
    for (const PrefillChunk& chunk : batch.prefills) prompts += chunk.tokens;
    const double ranks = sharding.attention_dp * micro;
    return test(RankTokens{batch.decodes / ranks, prompts / ranks});
  }
  std::size_t first = 0;
  for (const RankLoad& rank : batch.ranks) {
    RankTokens tokens{.decodes = static_cast<double>(rank.decodes)};
    for (const PrefillChunk& chunk : batch.prefills.subspan(first, static_cast<std::size_t>(rank.prefills)))
      tokens.prompts += chunk.tokens;
    first += static_cast<std::size_t>(rank.prefills);
    if (!test(RankTokens{tokens.decodes / micro, tokens.prompts / micro})) return false;
  }
  return true;
}

}  // namespace

double combining_sms(const Deployment& d) {
  if (d.engine.expert_overlap != ExpertOverlap::kSingleBatch) return 0.0;
  return d.gpu.architecture == Architecture::kBlackwell ? 32.0 : 3.0;
}

double series_from_below(double first, double slope, double n, double floor) {
  if (slope <= 0.0) return n * floor;
  const double below = std::min(n, std::ceil((floor - first) / slope));
  return below * floor + series(first + slope * below, slope, n - below);
}

double OverlappedLayers::seconds(double attention) const {
  double sum = fixed + attention_share * attention;
  for (const Slot& slot : slots) sum += slot.seconds(attention);
  return sum;
}

void OverlappedLayers::attend_also_outside(double routed) {
  attention_share = attention_share * routed + 1.0 - routed;
  for (Slot& slot : slots) slot.attention_share *= routed;
}

/// The sum is linear between the steps in which a slot's work exceeds its exchange.
double OverlappedLayers::series(double before, double attention, double slope, double n, double floor) const {
  std::array<double, 5> ends{n, n, n, n, n};
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Slot& s = slots[i];
    const double grows = s.attention_share * slope;
    if (grows > 0)
      ends[i] = std::clamp(std::ceil((s.exchange - s.work - s.attention_share * attention) / grows), 0.0, n);
  }
  std::sort(ends.begin(), ends.end());
  double sum = 0, done = 0;
  for (const double end : ends) {
    if (end <= done) continue;
    const double first = before + seconds(attention + slope * done);
    const double next = end - done > 1 ? before + seconds(attention + slope * (done + 1)) - first : 0.0;
    sum += floored_series(first, std::max(next, 0.0), end - done, floor);
    done = end;
  }
  return sum;
}

bool may_overlap(const Deployment& d) {
  return d.engine.expert_overlap != ExpertOverlap::kNone && d.engine.expert_exchange == ExpertExchange::kAllToAll &&
         d.sharding.attention_dp > 1;
}

int overlapped_batches(const StepBatch& batch, const Deployment& d) {
  if (!may_overlap(d)) return 0;
  const bool prompts = !batch.prefills.empty();
  switch (d.engine.expert_overlap) {
    case ExpertOverlap::kNone:
      return 0;
    case ExpertOverlap::kSingleBatch:
      return prompts ? 0 : 1;
    case ExpertOverlap::kTwoBatch: {
      const auto alike = [&](const RankTokens& r) {
        if (r.decodes + r.prompts <= 0) return true;  // idle
        return prompts ? r.decodes <= 0 && r.prompts >= 2 : r.decodes >= 2;
      };
      return all_ranks(batch, d.sharding, alike) ? 2 : 0;
    }
    case ExpertOverlap::kDualBatch: {
      const double least = prompts ? 512 : 32;
      const auto enough = [&](const RankTokens& r) { return r.decodes * batch.query_len + r.prompts >= least; };
      return all_ranks(batch, d.sharding, enough) ? 2 : 0;
    }
  }
  return 0;
}

OverlappedLayers overlapped_layers(const StageSeconds& one, bool prompts, const Deployment& d) {
  OverlappedLayers out;
  if (d.engine.expert_overlap == ExpertOverlap::kSingleBatch) {
    out = single_batch(one, d);
  } else {
    const bool dual = d.engine.expert_overlap == ExpertOverlap::kDualBatch;
    out = dual ? dual_batch(one) : prompts ? two_batch_prefill(one) : two_batch_decode(one);
    out.batches = 2;
  }
  out.exchange = out.batches * (one[Stage::kDispatch] + one[Stage::kCombine]);
  out.compute = out.batches * (one[Stage::kEntry] + one[Stage::kCore] + one[Stage::kShared] + one[Stage::kExperts]);
  return out;
}

}  // namespace roofcast
