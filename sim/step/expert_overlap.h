#pragma once
// Overlap of expert dispatch and combine with other work of the same layers: of the other half batch, or of the same
// one.

#include <algorithm>
#include <array>

#include "sim/model/stage.h"
#include "sim/step/rank_batch.h"

namespace roofcast {

/// Seconds of one pass through the layers by stage, without attention.
struct StageSeconds {
  std::array<double, kStages> of{};
  double dispatch_alone = 0, combine_alone = 0;  ///< seconds if dispatch or combine may use all SMs
  double sm_share = 0;                           ///< fraction of the SMs that dispatch and combine occupy
  double operator[](Stage stage) const { return of[static_cast<std::size_t>(stage)]; }
};

/// Time of the layers with routed experts as a function of the seconds x of attention. `share` is the part of x in a
/// slot:
///   fixed + sum over slots of max(work + share x, exchange)
struct OverlappedLayers {
  struct Slot {
    double work = 0, attention_share = 0, exchange = 0;
    double seconds(double attention) const { return std::max(work + attention_share * attention, exchange); }
  };
  double fixed = 0, attention_share = 0;  ///< seconds outside of all slots, and the part of x outside of them
  std::array<Slot, 4> slots{};
  double compute = 0, exchange = 0;  ///< seconds of all stages except attention, dispatch and combine;
                                     ///< seconds of dispatch and combine
  int batches = 1;                   ///< micro-batches of the step

  double seconds(double attention) const;
  /// The part of dispatch and combine that is not hidden, in seconds.
  double exposed(double attention) const {
    return exchange > 0 ? std::max(0.0, seconds(attention) - compute - attention) / exchange : 0.0;
  }
  /// Only the fraction `routed` of the attention is in layers with routed experts; the rest is outside of the slots.
  void attend_also_outside(double routed);
  /// Sum of max(before + seconds(x), floor) over n steps in which x starts at `attention` and grows by `slope`.
  double series(double before, double attention, double slope, double n, double floor) const;
};

/// SMs that combine results while the others still run experts, under single_batch; 0: all (SGLang,
/// single_batch_overlap.py, compute_overlap_args).
double combining_sms(const Deployment& deployment);

/// Whether any step may overlap: `expert_overlap` is set, and attention-DP ranks exchange tokens by all-to-all.
bool may_overlap(const Deployment& deployment);

/// Number of micro-batches of a step; 0: no overlap.
/// - two_batch (SGLang, two_batch_overlap.py): each active rank has at least two prompts and nothing else, or two
/// decoding sequences and nothing else
/// - dual_batch (vLLM, config/parallel.py): each rank has 32 decoding tokens, or 512 in total where one has prompts
/// - single_batch (SGLang, single_batch_overlap.py): steps that only decode
int overlapped_batches(const StepBatch& batch, const Deployment& deployment);

/// The schedule of an overlapped step, from the seconds of one micro-batch. Source: docs/equations-moe.md#overlap.
OverlappedLayers overlapped_layers(const StageSeconds& one, bool prompts, const Deployment& deployment);

/// Sum of first + slope i over i in [0, n).
inline double series(double first, double slope, double n) { return n * first + slope * n * (n - 1.0) / 2.0; }
/// The same of max(first + slope i, floor), slope >= 0.
double series_from_below(double first, double slope, double n, double floor);  ///< first < floor
inline double floored_series(double first, double slope, double n, double floor) {
  return first >= floor ? series(first, slope, n) : series_from_below(first, slope, n, floor);
}

}  // namespace roofcast
