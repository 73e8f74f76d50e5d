#pragma once
// Skew of expert popularity from measured routing counts.

#include "base/csv.h"

namespace roofcast {

struct ModelSpec;

inline constexpr double kMostSkew = 4.0;

/// The skew of the popularity law that gives the same imbalance as a table of `expert` (from 0), `tokens` and, for
/// several layers, `layer`: the mean over layers. An expert without a row has no tokens. Variation due to chance is
/// subtracted. Throws ConfigError for a model without routed experts, for an expert that does not exist or is named
/// twice, for layers with too few tokens to separate skew from chance, and for a skew of kMostSkew or more.
double skew_of_counts(const CsvTable& counts, const ModelSpec& model);

}  // namespace roofcast
