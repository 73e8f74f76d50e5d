#pragma once
// Errors of predicted operator times.

#include "sim/model/operators.h"
#include "sim/step/operator_family.h"

namespace roofcast {

struct FitRecord;

OperatorFamily family_of(const Work& work);

/// The fit behind this operator; null if the GPU has none and priors are used.
const FitRecord* record_of(const Work& work, const Efficiency& efficiency, const GpuSpec& gpu);

/// Relative standard deviation of the predicted time: the residual of the fit on shapes left out, or on shapes of
/// another kernel; 0.3 without a fit.
double discrepancy_of(const Work& work, const Efficiency& efficiency, const GpuSpec& gpu,
                      const RooflineBackend* roofline = nullptr);

}  // namespace roofcast
