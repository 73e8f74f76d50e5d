#pragma once
// The exchange of experts beside other work of the same layers: that of another half of the batch, or of the same one.

#include <algorithm>
#include <array>

#include "sim/model/stage.h"
#include "sim/step/rank_batch.h"

namespace roofcast {

/// Seconds of one pass through the layers, by stage, without attention.
struct StageSeconds {
  std::array<double, kStages> of{};
  double dispatch_alone = 0, combine_alone = 0;  ///< seconds in which an exchange has all SMs
  double sm_share = 0;                           ///< share of the SMs that an exchange keeps while it runs
  double operator[](Stage stage) const { return of[static_cast<std::size_t>(stage)]; }
};

/// The layers with routed experts as a function of the seconds x that attention takes:
///   fixed + sum of max(work + share x, exchange) over the slots
struct OverlappedLayers {
  struct Slot {
    double work = 0, attention_share = 0, exchange = 0;
    double seconds(double attention) const { return std::max(work + attention_share * attention, exchange); }
  };
  double fixed = 0, attention_share = 0;  ///< seconds and share of the attention outside of all slots
  std::array<Slot, 4> slots{};
  double compute = 0, exchange = 0;  ///< seconds of all stages but attention and exchanges; of the exchanges
  int batches = 1;                   ///< batches that the step was cut into

  double seconds(double attention) const;
  /// The part of the exchange that nothing hides.
  double exposed(double attention) const {
    return exchange > 0 ? std::max(0.0, seconds(attention) - compute - attention) / exchange : 0.0;
  }
  /// The share `routed` of the attention is in layers with routed experts.
  void attend_also_outside(double routed);
  /// Sum of max(before + seconds(x), floor) over n steps in which x grows from `attention` by `slope` a step.
  double series(double before, double attention, double slope, double n, double floor) const;
};

/// SMs that send what comes back from the experts while others still run them, under single_batch; 0: all (SGLang,
/// single_batch_overlap.py, compute_overlap_args).
double combining_sms(const Deployment& deployment);

/// Batches into which all ranks cut a step; 0: nothing in it is overlapped.
/// - two_batch (SGLang, two_batch_overlap.py): each rank that works has at least two prompts and nothing else, or two
/// decoding sequences and nothing else
/// - dual_batch (vLLM, config/parallel.py): each rank has 32 decoding tokens, or 512 in all where one has prompts
/// - single_batch (SGLang, single_batch_overlap.py): steps of decode alone
int overlapped_batches(const StepBatch& batch, const Deployment& deployment);

/// The schedule of such a step, from the seconds of one of its batches. Source: docs/equations-moe.md#overlap.
OverlappedLayers overlapped_layers(const StageSeconds& one, bool prompts, const Deployment& deployment);

/// Sum of first + slope i over i in [0, n).
inline double series(double first, double slope, double n) { return n * first + slope * n * (n - 1.0) / 2.0; }
/// The same of max(first + slope i, floor), slope >= 0.
double series_from_below(double first, double slope, double n, double floor);  ///< first < floor
inline double floored_series(double first, double slope, double n, double floor) {
  return first >= floor ? series(first, slope, n) : series_from_below(first, slope, n, floor);
}

}  // namespace roofcast
