#pragma once
// How a batch is spread over attention-DP ranks and pipeline stages.

#include "sim/step/step_model.h"

namespace roofcast {

/// What the fullest of the attention-DP ranks holds in one micro-batch.
struct RankBatch {
  double decodes = 0, mean_context = 0;
  double prefill_tokens = 0, logit_rows = 0;
  double group_tokens = 0;  ///< of all ranks together, in the micro-batch
  double tokens(int query_len) const { return decodes * query_len + prefill_tokens; }
};
RankBatch rank_batch(const StepBatch& batch, const Sharding& sharding);

/// The part of the launch over all chunks that one chunk takes on the fullest rank.
double prefill_share(const StepBatch& batch, const RankBatch& rank);

}  // namespace roofcast
