#pragma once
// The state of a StepModel, and the total of a step.

#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/container_hash/hash.hpp>

#include "sim/step/expert_overlap.h"
#include "sim/step/prompt_encoding.h"
#include "sim/step/step_host.h"
#include "sim/step/step_parts.h"

namespace roofcast {

/// A step of the slowest rank, for which the others wait.
struct StepTotal {
  OperatorSum sum;
  HostTime host;
  RankBatch rank;
  RankMixers mixers;
  std::optional<OverlappedLayers> overlap;  ///< layers with routed experts; `sum` excludes them until ...
  double attention = 0;                     ///< ... the attention time is known, s
  double encoding = 0;                      ///< encoder time before the language model, s
  bool known() const { return sum.known(); }
  Seconds time() const { return Seconds(std::max(sum.seconds, host.least(sum.launches)) + host.before + encoding); }
};

/// Attention heads of one GPU in `layers` layers; `width` is that of a key plus a value.
struct TiledHeads {
  double layers, heads, width, window;
};

struct StepModel::State {
  explicit State(std::shared_ptr<const Deployment> deployment);

  StepTotal total(const StepBatch& batch);
  /// Everything that does not depend on the context. Cached until another batch is passed.
  const StepTotal& without_mixers(const StepBatch& batch);
  bool alike(const StepBatch& batch) const;  ///< without_mixers() depends only on the batch size
  /// Cost of `steps` decode steps that start with `first`, whose without_mixers() is `fixed`.
  StepCost decode_run(const StepBatch& first, const StepTotal& fixed, std::int64_t steps);
  template <class Add>
  double decode_seconds(const StepBatch& first, const StepTotal& fixed, double steps, const Add& add);

  /// Calls add(part, share, starts) for each part that depends on the context: `share` of its time and `starts` of its
  /// launches belong to the step.
  template <class Add>
  void for_each_mixer_part(const RankMixers& of, int query_len, double gap, const Add& add) const {
    if (of.decodes > 0) {
      const double least = least_decode_seconds(of, query_len) / of.batches;
      add(DecodePart{std::ceil(of.decodes / of.batches), query_len, of.mean_context, least, gap}, of.batches,
          of.batches);
    }
    // All chunks share one launch.
    const std::size_t chunks = of.prefills.size();
    for (const PrefillChunk& chunk : of.prefills) {
      add(PrefillPart{chunks, static_cast<double>(chunk.tokens), static_cast<double>(chunk.context_before)},
          of.prefill_share, of.batches / static_cast<double>(chunks));
    }
    if (of.front_share > 0)
      add(PrefillPart{1, static_cast<double>(of.front.tokens), static_cast<double>(of.front.context_before)},
          of.front_share, 0.0);
  }

  /// Empty without adapters.
  std::optional<AdapterPart> adapter_part(const StepBatch& batch, double tokens, const RankBatch& rank) const;

  void add_encoders(const StepBatch& batch, StepTotal& total);
  /// Adds eager kernels that run before the language model.
  void add_before(const OperatorSum& sum, StepTotal& total) const;

  std::shared_ptr<const Deployment> deployment;
  std::optional<AdapterHits> adapters;
  StepHost host;
  StepParts parts;
  PromptEncoding encoding;
  std::vector<TiledHeads> tiles;  ///< empty: decode next to prefill takes no longer than alone
  /// Of gpu_time_alone(), by the tokens and the context of the chunk.
  std::unordered_map<std::pair<int, int>, Seconds, boost::hash<std::pair<int, int>>> alone;
  double routed_share;  ///< fraction of the layers with attention that have routed experts

  /// Tokens of one micro-batch of a split step.
  TokenPart piece(const TokenPart& whole, double batches) const {
    return {std::ceil(whole.tokens / batches), std::ceil(whole.group_tokens / batches), whole.prompts};
  }

 private:
  StepTotal priced_without_mixers(const StepBatch& batch);
  double least_decode_seconds(const RankMixers& of, int query_len) const;
  void overlap(StepTotal& total, const TokenPart& tokens, int batches);
  OperatorSum mixers_sum(const RankMixers& of, int query_len, double gap);
  RankMixers slowest_mixers(const StepBatch& batch, const RankBatch& even, double gap);

  RememberedSums<StepTotal> decodes_;  ///< without_mixers() of steps of one token per sequence and nothing else
  StepTotal other_;                    ///< without_mixers() of the last other step
};

}  // namespace roofcast
