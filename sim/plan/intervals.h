#pragma once
// Errors of predicted times: residuals of each operator family on shapes left out of the fit.

#include <array>

#include "sim/plan/estimate.h"
#include "sim/plan/system_spread.h"
#include "sim/step/operator_family.h"

namespace roofcast {

/// Relative standard deviations of a step's time by operator family; the last entry is everything else (host, front
/// end), with 25 %. Errors within a family are the same in every layer, so they add linearly. All 0 for the ideal
/// roofline.
using FamilySpreads = std::array<double, kOperatorFamilies + 1>;
FamilySpreads family_spreads(const StepBreakdown& step, const Deployment& deployment, Seconds total);

/// The spread of the whole step: errors of different families are independent.
double relative_spread(const StepBreakdown& step, const Deployment& deployment, Seconds total);

/// 5 and 95 % quantiles of a lognormal factor, as logarithms.
LogSpread kernel_spread(double relative_spread);

/// 90 % interval: time x exp(low) to time x exp(high).
Interval interval_of(Seconds time, const LogSpread& spread);

/// Adds `more`, scaled by `times`, to `sum`, line by line.
void merge(StepBreakdown& sum, const StepBreakdown& more, double times);

}  // namespace roofcast
