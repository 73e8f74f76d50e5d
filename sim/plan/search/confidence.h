#pragma once
// Confidence bounds of simulated statistics.

#include <cstdint>

#include "sim/plan/objectives.h"

namespace roofcast {

/// Upper end of the 95 % confidence interval of a statistic over n requests. For a percentile p: the order statistic of
/// rank n p + 1.96 sqrt(n p (1 - p)), because the number of values below the true percentile is binomial. For the mean:
/// mean + 1.96 s / sqrt(n). For ITL, n is also the number of requests, because gaps within a request are correlated.
/// Requests are taken as independent. Queueing correlates neighbours, which is why a plan's winner is run again with
/// other seeds.
Seconds upper_confidence(const Objective& objective, const ServingMetrics& metrics);

/// The rank of that order statistic as a fraction of n, for a percentile of n values.
double upper_rank(double percentile, double n);

/// Lower end of the 95 % confidence interval of a fraction of `requests` requests: Wilson's score interval (Wilson,
/// Journal of the American Statistical Association 22, 1927), which stays below 1 even if no request misses its limits.
double lower_confidence(double share, double requests);

/// Number of requests for intervals that end well within the sample: 20 values beyond the percentile (or outside of the
/// goodput), at least 400.
std::int64_t requests_needed(const std::vector<Objective>& objectives, double goodput = 0);

}  // namespace roofcast
