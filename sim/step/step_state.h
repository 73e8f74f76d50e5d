#pragma once
// What a StepModel keeps, and which parts a step has.

#include <memory>
#include <vector>

#include "sim/step/step_host.h"
#include "sim/step/step_parts.h"

namespace roofcast {

/// A step of the fullest rank.
struct StepTotal {
  OperatorSum sum{.seconds = 0};
  HostTime host;
  RankBatch rank;
  Seconds time() const { return Seconds(std::max(sum.seconds, host.least(sum.launches)) + host.before); }
};

/// Attention heads of one GPU in `layers` layers; `width` is that of a key and a value.
struct TiledHeads {
  double layers, heads, width, window;
};

struct StepModel::State {
  explicit State(std::shared_ptr<const Deployment> deployment);

  StepTotal total(const StepBatch& batch);
  /// Of everything that does not depend on contexts.
  StepTotal without_mixers(const StepBatch& batch);

  /// Calls add(part, share, starts) for each part that depends on contexts: `share` of its time and `starts` of its
  /// launches belong to the step.
  template <class Add>
  void for_each_mixer_part(const StepBatch& batch, const StepTotal& step, const Add& add) const {
    if (batch.decodes > 0) {
      add(DecodePart{step.rank.decodes, batch.query_len, step.rank.mean_context, least_decode_seconds(batch, step.rank),
                     step.host.gap},
          1.0, 1.0);
    }
    // Chunks start together, and a rank has its share of them.
    const std::size_t chunks = batch.prefills.size();
    const double share = prefill_share(batch, step.rank);
    for (const PrefillChunk& chunk : batch.prefills) {
      add(PrefillPart{chunks, static_cast<double>(chunk.tokens), static_cast<double>(chunk.context_before)}, share,
          1.0 / static_cast<double>(chunks));
    }
  }

  std::shared_ptr<const Deployment> deployment;
  StepHost host;
  StepParts parts;
  std::vector<TiledHeads> tiles;  ///< empty: decode beside prefill takes no longer than alone

 private:
  double least_decode_seconds(const StepBatch& batch, const RankBatch& rank) const;
};

}  // namespace roofcast
