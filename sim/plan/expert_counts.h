#pragma once
// How unevenly measured tokens chose experts.

#include "base/csv.h"

namespace roofcast {

struct ModelSpec;

inline constexpr double kMostSkew = 4.0;

/// The skew of the popularity law under which experts differ as much as in a table of `expert` (from 0), `tokens` and,
/// of several layers, `layer`: the mean over its layers. An expert without a row has no token. What counts differ by
/// chance is left out. Throws ConfigError for a model without routed experts, an expert that it does not have, one that
/// is named twice, layers without tokens or with too few to tell a skew from chance, and a skew of kMostSkew or more.
double skew_of_counts(const CsvTable& counts, const ModelSpec& model);

}  // namespace roofcast
