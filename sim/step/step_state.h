#pragma once
// What a StepModel keeps, and which parts a step has.

#include <memory>
#include <optional>
#include <vector>

#include "sim/step/step_host.h"
#include "sim/step/step_parts.h"

namespace roofcast {

/// A step of the slowest rank, for which the others wait.
struct StepTotal {
  OperatorSum sum{.seconds = 0};
  HostTime host;
  RankBatch rank;
  RankMixers mixers;
  double encoding = 0;  ///< seconds before the language model begins
  Seconds time() const { return Seconds(std::max(sum.seconds, host.least(sum.launches)) + host.before + encoding); }
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
  void for_each_mixer_part(const RankMixers& of, int query_len, double gap, const Add& add) const {
    if (of.decodes > 0) {
      const double least = least_decode_seconds(of, query_len);
      add(DecodePart{of.decodes, query_len, of.mean_context, least, gap}, 1.0, 1.0);
    }
    // Chunks start together.
    const std::size_t chunks = of.prefills.size();
    for (const PrefillChunk& chunk : of.prefills) {
      add(PrefillPart{chunks, static_cast<double>(chunk.tokens), static_cast<double>(chunk.context_before)},
          of.prefill_share, 1.0 / static_cast<double>(chunks));
    }
  }

  /// Nothing without adapters.
  std::optional<AdapterPart> adapter_part(const StepBatch& batch, double tokens, const RankBatch& rank) const;

  void add_encoders(const StepBatch& batch, StepTotal& total);

  std::shared_ptr<const Deployment> deployment;
  std::optional<AdapterHits> adapters;
  StepHost host;
  StepParts parts;
  std::vector<TiledHeads> tiles;  ///< empty: decode beside prefill takes no longer than alone

 private:
  double least_decode_seconds(const RankMixers& of, int query_len) const;
  OperatorSum mixers_sum(const RankMixers& of, int query_len, double gap);
  RankMixers slowest_mixers(const StepBatch& batch, double gap);
};

}  // namespace roofcast
