#pragma once
// What is known about the error of an operator's predicted time.

#include <cstddef>

#include "hw/efficiency.h"
#include "sim/model/operators.h"

namespace roofcast {

/// Operators whose errors are alike.
enum class OperatorFamily { kGemm, kAttentionPrefill, kAttentionDecode, kExperts, kState, kElementwise, kCollective };
inline constexpr std::size_t kOperatorFamilies = 7;

OperatorFamily family_of(const Work& work);

/// The fit behind this operator; null where the GPU has none and priors are used.
const FitRecord* record_of(const Work& work, const Efficiency& efficiency, const GpuSpec& gpu);

/// Relative standard deviation: the fit's discrepancy on shapes left out, or on shapes of another kernel; 0.3 without a
/// fit.
double discrepancy_of(const Work& work, const Efficiency& efficiency, const GpuSpec& gpu,
                      const RooflineBackend* roofline = nullptr);

}  // namespace roofcast
