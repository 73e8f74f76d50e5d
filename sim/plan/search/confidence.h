#pragma once
// How sure a simulated percentile is.

#include <cstdint>

#include "sim/plan/objectives.h"

namespace roofcast {

/// Upper end of the 95 % confidence interval of a statistic over n requests. Of a percentile p: the order statistic of
/// rank n p + 1.96 sqrt(n p (1 - p)) (the number of values below the true percentile is binomial); of the mean:
/// mean + 1.96 s / sqrt(n). ITL has many values a request that hang together, so requests are counted for it too.
/// Requests are taken as independent: queueing makes neighbours alike, which is why a plan's winner is run again under
/// other seeds.
Seconds upper_confidence(const Objective& objective, const ServingMetrics& metrics);

/// The order statistic that this is of a percentile of n values, as a share of them.
double upper_rank(double percentile, double n);

/// Lower end of the 95 % confidence interval of a share of so many requests: Wilson's score interval (Wilson, Journal
/// of the American Statistical Association 22, 1927), which stays below 1 where all requests are within their limits.
double lower_confidence(double share, double requests);

/// Requests for an interval that ends within the sample with room: 20 values beyond the percentile (or outside the
/// goodput), 400 at least.
std::int64_t requests_needed(const std::vector<Objective>& objectives, double goodput = 0);

}  // namespace roofcast
