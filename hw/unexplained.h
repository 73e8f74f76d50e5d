#pragma once
// What constants leave unexplained of work that they were not fitted to. Sources: docs/equations.md#intervals,
// docs/equations.md#gpus-without-measurements.

#include <cmath>

#include "hw/efficiency.h"

namespace roofcast {

/// Relative standard deviations that come on top of a fit's own, as independent of it.
struct Unexplained {
  double same_generation, other_generation;  ///< constants of another GPU
  double lent;                               ///< constants of another format or kernel of the same engine
};

/// The former two: what blind transfers between measured GPUs need for nine of ten rows to lie within their interval,
/// of all pairs of generations, each operator, GPU, engine and format counting alike; the last: the same where a
/// measured GPU's block is taken away, so that another stands for it.
template <class P>
inline constexpr Unexplained kUnexplained{0.05, 0.27, 0.0};
template <>
inline constexpr Unexplained kUnexplained<GemmParameters>{0.05, 0.2, 0.2};
template <>
inline constexpr Unexplained kUnexplained<PrefillParameters>{0.05, 0.28, 0.3};
template <>
inline constexpr Unexplained kUnexplained<DecodeParameters>{0.05, 0.38, 0.3};
template <>
inline constexpr Unexplained kUnexplained<LatentPrefillParameters>{0.1, 0.27, 0.35};
template <>
inline constexpr Unexplained kUnexplained<LatentDecodeParameters>{0.1, 0.75, 0.35};
template <>
inline constexpr Unexplained kUnexplained<MoeParameters>{0.05, 0.35, 0.5};
template <>
inline constexpr Unexplained kUnexplained<StateParameters>{0.1, 0.33, 0.0};
template <>
inline constexpr Unexplained kUnexplained<ConvolutionParameters>{0.1, 0.27, 0.0};
template <>
inline constexpr Unexplained kUnexplained<CustomAllReduceParameters>{0.05, 0.33, 0.0};

/// The fit whose constants price a format's work, and whether they are another format's or kernel's. Null: priors.
struct Evidence {
  const FitRecord* fit = nullptr;
  double lent = 0.0;  ///< Unexplained::lent where they are, else 0
  /// Relative standard deviation; of shapes that the constants' own kernel runs, or another one.
  double discrepancy(bool other_kernel) const {
    return fit != nullptr ? std::hypot(fit->discrepancy_of(other_kernel), lent) : kDiscrepancyOfPriors;
  }
};

/// The constants of `dtype`, else those of bf16.
template <class P>
Evidence evidence_of(const ByDtype<P>& blocks, Dtype dtype) {
  if (const Fitted<P>* fitted = blocks.find(dtype)) return {&fitted->record, 0.0};
  if (const Fitted<P>* fitted = blocks.find(Dtype::kBf16)) return {&fitted->record, kUnexplained<P>.lent};
  return {};
}
inline Evidence evidence_of(const MoeConstants& constants) {
  if (constants.fitted == nullptr) return {};
  return {&constants.fitted->record, constants.lent ? kUnexplained<MoeParameters>.lent : 0.0};
}

}  // namespace roofcast
