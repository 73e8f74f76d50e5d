#pragma once
// How a batch is spread over attention-DP ranks and pipeline stages.

#include "sim/step/step_model.h"

namespace roofcast {

/// The load of attention-DP ranks in one micro-batch. Each number is the largest of any rank.
struct RankBatch {
  double decodes = 0;       ///< sequences
  double tokens = 0;        ///< tokens of decoding sequences and chunks
  double prompts = 0;       ///< chunks
  double logit_rows = 0;    ///< tokens that are sampled from
  double group_tokens = 0;  ///< tokens of all ranks together
};
RankBatch rank_batch(const StepBatch& batch, const Sharding& sharding);
/// Micro-batches into which a pipeline of pp stages cuts a step: at most as many as a rank has sequences and chunks.
/// While a chunk is not the last of its prompt, the next one follows it into the stage that it leaves (vLLM's scheduler
/// counts a chunk as computed when it is sent; SGLang, chunked pipeline parallelism), and so do prompts that wait for
/// tokens of the next step alone (StepBatch::followed): one step leaves the pipeline each pp-th of its way. The last
/// one goes all the way, no faster than the chunk in front of it lets it: chunks that take t_1 .. t_C alone take (t_1 +
/// .. + t_C) / pp + (1 - 1 / pp) max t together, the time of a permutation flow shop whose jobs take equally long on
/// each machine (Pinedo, Scheduling, 5th ed., theorem 6.1.8).
double micro_batches(const StepBatch& batch, const Sharding& sharding);

/// The mixers' work of one rank in one micro-batch.
struct RankMixers {
  double decodes = 0, mean_context = 0;
  std::span<const PrefillChunk> prefills{};
  double prefill_share = 0;  ///< share of the launch over all `prefills` that one of them takes
  double batches = 1;        ///< batches into which the decodes are cut again
  PrefillChunk front{};      ///< the chunk in front; stages that nothing else fills wait for it
  double front_share = 0;    ///< share of its time that they wait
};
/// The work of a rank that shares a step evenly with the others; `rank` is rank_batch() of the same step.
RankMixers even_mixers(const StepBatch& batch, const RankBatch& rank, const Sharding& sharding);
/// The work of one of batch.ranks, whose chunks begin at `first_chunk`.
RankMixers rank_mixers(const StepBatch& batch, std::size_t rank, std::size_t first_chunk, const Sharding& sharding);

/// The rank whose decode attention takes longest: the one with the largest caches; of equal ones, with most sequences.
std::size_t fullest_cache(std::span<const RankLoad> ranks);
/// Decode steps for which that rank stays the same, at most `limit`.
std::int64_t steps_to_other_rank(std::span<const RankLoad> ranks, int query_len, std::int64_t limit);

}  // namespace roofcast
