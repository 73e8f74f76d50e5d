#pragma once
// Client traces in the format of ServeGen (Xiang et al., NSDI 2026; github.com/alibaba/ServeGen, data/): per client,
// the rate and the distribution of gaps in each time window, and how prompt and output lengths change over the day.

#include <string>
#include <vector>

#include "sim/serve/workload.h"

namespace roofcast {

/// A discrete distribution of lengths.
struct LengthTable {
  std::vector<int> tokens;         ///< ascending
  std::vector<double> cumulative;  ///< P(length <= tokens[i]); the last is 1

  int draw(Random& random) const;
  double mean() const;
};

/// Lengths that change over time: windows of any duration, repeated. Lengths of the first window also hold before it.
struct LengthsByTime {
  Seconds period{};
  std::vector<Seconds> start;               ///< start of each window, ascending, less than the period
  std::vector<LengthTable> prompt, output;  ///< per window

  std::size_t at(Seconds arrival) const;
};

/// Reads the clients of a folder, one per pair of `chunk-N-trace.csv` (window start in s, requests/s, coefficient of
/// variation of the gaps, Gamma | Weibull | Exponential, shape, scale; no header) and `chunk-N-dataset.json` ({start in
/// s: {input_tokens, output_tokens: "{tokens: probability, ..}"}}). Clients without requests are left out. A window
/// without lengths takes those of the nearest window. Rates are multiplied by `rate_scale`. Throws ConfigError with the
/// position in the file.
std::vector<WorkloadSpec> read_servegen(const std::string& folder, double rate_scale);

}  // namespace roofcast
