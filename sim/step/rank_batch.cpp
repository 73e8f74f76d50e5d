#include "sim/step/rank_batch.h"

#include <algorithm>
#include <cmath>

#include "sim/model/sharding.h"

namespace roofcast {
namespace {

/// How a pipeline of pp stages splits a batch: k micro-batches keep k stages busy.
int micro_batches(const Sharding& sharding, int parts) { return std::max(1, std::min(sharding.pp, parts)); }

struct Chunks {
  double tokens = 0, longest = 0, rows = 0;
  PrefillChunk front{};  ///< the longest that the last chunk of a prompt follows
};

Chunks sum_of(std::span<const PrefillChunk> chunks) {
  Chunks sum;
  for (const PrefillChunk& chunk : chunks) {
    sum.tokens += chunk.tokens;
    sum.longest = std::max<double>(sum.longest, chunk.tokens);
    sum.rows += chunk.last ? 1 : 0;
    if (chunk.last && chunk.ahead > sum.front.tokens)
      sum.front = {
          .tokens = chunk.ahead, .context_before = std::max(0, chunk.context_before - chunk.ahead), .last = false};
  }
  return sum;
}

/// How a step with this many prompt tokens passes the stages: the fraction `own` of its time, plus the fraction `front`
/// of the time of the previous chunk, for which stages wait if no other micro-batch fills them.
struct Passage {
  double own = 0, front = 0;
};
Passage passage(double tokens, const Chunks& chunks, const Sharding& sharding, double micro) {
  if (chunks.front.tokens <= tokens) return {.own = 1.0 / micro};
  return {.own = 1.0 / sharding.pp, .front = 1.0 / micro - 1.0 / sharding.pp};
}
double micro_tokens(double tokens, const Chunks& chunks, const Sharding& sharding, double micro) {
  const Passage share = passage(tokens, chunks, sharding, micro);
  return tokens * share.own + chunks.front.tokens * share.front;
}

/// Prompt tokens of a rank if the assignment of prompts is unknown; a prompt stays on one rank.
double even_tokens(const Chunks& all, const Sharding& sharding) {
  return std::max(sharding.attention_dp > 1 ? all.longest : 0.0, all.tokens / sharding.attention_dp);
}

}  // namespace

double micro_batches(const StepBatch& batch, const Sharding& sharding) {
  if (sharding.pp <= 1) return 1;
  const auto goes_on = [](const PrefillChunk& chunk) { return !chunk.last; };
  if (batch.followed || std::any_of(batch.prefills.begin(), batch.prefills.end(), goes_on)) return sharding.pp;
  const double ranks = sharding.attention_dp, each = std::ceil(batch.decodes / ranks);
  int chunks = static_cast<int>(std::ceil(static_cast<double>(batch.prefills.size()) / ranks));
  for (const RankLoad& rank : batch.ranks) chunks = std::max(chunks, rank.prefills);
  return micro_batches(sharding, static_cast<int>(each) + chunks);
}

RankBatch rank_batch(const StepBatch& batch, const Sharding& sharding) {
  const double ranks = sharding.attention_dp, micro = micro_batches(batch, sharding);
  const Chunks all = sum_of(batch.prefills);
  RankBatch most;
  most.group_tokens =
      static_cast<double>(batch.decodes) * batch.query_len / micro + micro_tokens(all.tokens, all, sharding, micro);
  if (batch.ranks.empty()) {
    most.decodes = std::ceil(std::ceil(batch.decodes / ranks) / micro);
    most.tokens = most.decodes * batch.query_len + micro_tokens(even_tokens(all, sharding), all, sharding, micro);
    most.prompts = std::ceil(static_cast<double>(batch.prefills.size()) / ranks);
    most.logit_rows = most.decodes * batch.query_len + std::ceil(all.rows / ranks / micro);
    return most;
  }
  std::size_t first = 0;
  for (const RankLoad& rank : batch.ranks) {
    const auto count = static_cast<std::size_t>(rank.prefills);
    const Chunks own = sum_of(batch.prefills.subspan(first, count));
    const double decodes = std::ceil(rank.decodes / micro);
    most.decodes = std::max(most.decodes, decodes);
    most.tokens = std::max(most.tokens, decodes * batch.query_len + micro_tokens(own.tokens, own, sharding, micro));
    most.prompts = std::max<double>(most.prompts, rank.prefills);
    most.logit_rows = std::max(most.logit_rows, decodes * batch.query_len + std::ceil(own.rows / micro));
    first += count;
  }
  return most;
}

RankMixers even_mixers(const StepBatch& batch, const RankBatch& rank, const Sharding& sharding) {
  const double micro = micro_batches(batch, sharding);
  const Chunks all = sum_of(batch.prefills);
  const double mine = even_tokens(all, sharding);
  const Passage share = passage(mine, all, sharding, micro);
  return {.decodes = rank.decodes,
          .mean_context = batch.decodes > 0 ? batch.decode_context / batch.decodes : 0.0,
          .prefills = batch.prefills,
          .prefill_share =
              all.tokens > 0 ? mine * share.own / all.tokens / static_cast<double>(batch.prefills.size()) : 0.0,
          .front = all.front,
          .front_share = share.front};
}

RankMixers rank_mixers(const StepBatch& batch, std::size_t rank, std::size_t first_chunk, const Sharding& sharding) {
  const RankLoad& load = batch.ranks[rank];
  const double micro = micro_batches(batch, sharding);
  const auto prefills = batch.prefills.subspan(first_chunk, static_cast<std::size_t>(load.prefills));
  const Chunks own = sum_of(prefills);
  const Passage share = passage(own.tokens, own, sharding, micro);
  return {.decodes = std::ceil(load.decodes / micro),
          .mean_context = load.decodes > 0 ? load.decode_context / load.decodes : 0.0,
          .prefills = prefills,
          .prefill_share = load.prefills > 0 ? share.own / load.prefills : 0.0,
          .front = own.front,
          .front_share = share.front};
}

std::size_t fullest_cache(std::span<const RankLoad> ranks) {
  const auto less = [](const RankLoad& a, const RankLoad& b) {
    return a.decode_context != b.decode_context ? a.decode_context < b.decode_context : a.decodes < b.decodes;
  };
  return static_cast<std::size_t>(std::max_element(ranks.begin(), ranks.end(), less) - ranks.begin());
}

/// Caches grow in proportion to their sequences. A rank with more sequences catches up with the one with the fullest
/// cache after steps = (context of the fullest - its own) / (query_len (its sequences - those of the fullest)).
std::int64_t steps_to_other_rank(std::span<const RankLoad> ranks, int query_len, std::int64_t limit) {
  if (ranks.empty()) return limit;
  const RankLoad& fullest = ranks[fullest_cache(ranks)];
  double steps = static_cast<double>(limit);
  for (const RankLoad& rank : ranks) {
    if (rank.decodes <= fullest.decodes) continue;
    const double behind = fullest.decode_context - rank.decode_context;
    steps = std::min(steps, std::ceil(behind / (static_cast<double>(rank.decodes - fullest.decodes) * query_len)));
  }
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(steps));
}

}  // namespace roofcast
