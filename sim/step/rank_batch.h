#pragma once
// How a batch is distributed over attention-DP ranks and pipeline stages.

#include "sim/step/step_model.h"

namespace roofcast {

/// The load of attention-DP ranks in one micro-batch. Each number is the maximum over the ranks.
struct RankBatch {
  double decodes = 0;       ///< decoding sequences
  double tokens = 0;        ///< tokens of decoding sequences and chunks
  double prompts = 0;       ///< prefill chunks
  double logit_rows = 0;    ///< rows that are sampled
  double group_tokens = 0;  ///< tokens of all ranks together
};
RankBatch rank_batch(const StepBatch& batch, const Sharding& sharding);
/// Number of micro-batches of a step in a pipeline of pp stages: at most the number of sequences and chunks of a rank.
/// While a chunk is not the last of its prompt, the next chunk follows it into the stage that it leaves (vLLM's
/// scheduler counts a chunk as computed when it is sent; SGLang, chunked pipeline parallelism). So do prompts that wait
/// for tokens of the next step (StepBatch::followed). One step then leaves the pipeline every pp-th of its time. The
/// last one passes all stages, no faster than the chunk ahead of it allows. Chunks that take t_1 .. t_C alone take (t_1
/// + .. + t_C) / pp + (1 - 1 / pp) max t together: the makespan of a permutation flow shop whose jobs take equally long
/// on each machine (Pinedo, Scheduling, 5th ed., theorem 6.1.8).
double micro_batches(const StepBatch& batch, const Sharding& sharding);

/// Mixer work of one rank in one micro-batch.
struct RankMixers {
  double decodes = 0, mean_context = 0;
  std::span<const PrefillChunk> prefills{};
  double prefill_share = 0;  ///< fraction of the launch over all `prefills` for one of them
  double batches = 1;        ///< further micro-batches of the decodes
  PrefillChunk front{};      ///< the previous chunk; otherwise empty stages wait for it
  double front_share = 0;    ///< fraction of its time that they wait
};
/// The work of a rank if all ranks share a step evenly; `rank` is rank_batch() of the same step.
RankMixers even_mixers(const StepBatch& batch, const RankBatch& rank, const Sharding& sharding);
/// The work of one of batch.ranks, whose chunks begin at `first_chunk`.
RankMixers rank_mixers(const StepBatch& batch, std::size_t rank, std::size_t first_chunk, const Sharding& sharding);

/// The rank whose decode attention takes longest: the one with the largest caches, then with the most sequences.
std::size_t fullest_cache(std::span<const RankLoad> ranks);
/// Decode steps for which that rank stays the same, at most `limit`.
std::int64_t steps_to_other_rank(std::span<const RankLoad> ranks, int query_len, std::int64_t limit);

}  // namespace roofcast
