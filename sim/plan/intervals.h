#pragma once
// How far off a predicted time may be: the model discrepancy of each operator family, as left-out shapes showed it.

#include <array>

#include "sim/plan/estimate.h"
#include "sim/plan/system_spread.h"
#include "sim/step/operator_family.h"

namespace roofcast {

/// Relative standard deviations that the families give a step's time, and at the end what is no operator (host, front
/// end), which counts 25 %. Errors of one family are the same in every layer, so they add up linearly within it. 0 for
/// the ideal roofline.
using FamilySpreads = std::array<double, kOperatorFamilies + 1>;
FamilySpreads family_spreads(const StepBreakdown& step, const Deployment& deployment, Seconds total);

/// The spread of the step's time as a whole: families of operators err independently.
double relative_spread(const StepBreakdown& step, const Deployment& deployment, Seconds total);

/// 5 and 95 % quantiles of a lognormal factor.
LogSpread kernel_spread(double relative_spread);

/// 90 %: time x exp(low) to time x exp(high).
Interval interval_of(Seconds time, const LogSpread& spread);

/// `times` x `more` added to `sum`, line by line.
void merge(StepBreakdown& sum, const StepBreakdown& more, double times);

}  // namespace roofcast
