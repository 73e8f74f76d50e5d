#include "sim/step/rank_batch.h"

#include <algorithm>
#include <cmath>

namespace roofcast {
namespace {

/// How a pipeline of pp stages cuts a batch: k micro-batches keep k stages busy.
int micro_batches(const Sharding& sharding, int parts) { return std::max(1, std::min(sharding.pp, parts)); }

}  // namespace

RankBatch rank_batch(const StepBatch& batch, const Sharding& sharding) {
  const double ranks = sharding.attention_dp;
  const int parts = static_cast<int>(std::ceil(batch.decodes / ranks)) + static_cast<int>(batch.prefills.size());
  const double micro = micro_batches(sharding, parts);
  RankBatch rank;
  rank.decodes = std::ceil(std::ceil(batch.decodes / ranks) / micro);
  rank.mean_context = batch.decodes > 0 ? batch.decode_context / batch.decodes : 0.0;
  double total = 0, longest = 0, rows = 0;
  for (const PrefillChunk& chunk : batch.prefills) {
    total += chunk.tokens;
    longest = std::max<double>(longest, chunk.tokens);
    rows += chunk.last ? 1 : 0;
  }
  // A prompt stays on one rank; a pipeline can cut it into chunks.
  const double even = std::max(ranks > 1 ? longest : 0.0, total / ranks);
  rank.prefill_tokens = std::max(even, batch.rank_prefill_tokens) / micro;
  rank.group_tokens = (static_cast<double>(batch.decodes) * batch.query_len + total) / micro;
  rank.logit_rows = rank.decodes * batch.query_len + std::ceil(rows / ranks / micro);
  return rank;
}

double prefill_share(const StepBatch& batch, const RankBatch& rank) {
  double tokens = 0;
  for (const PrefillChunk& chunk : batch.prefills) tokens += chunk.tokens;
  return tokens > 0 ? rank.prefill_tokens / tokens / static_cast<double>(batch.prefills.size()) : 0.0;
}

}  // namespace roofcast
