#pragma once
// Clients as ServeGen publishes them (Xiang et al., NSDI 2026; github.com/alibaba/ServeGen, data/): for each client the
// rate and the spread of its gaps window by window, and how long its prompts and answers are over the day.

#include <string>
#include <vector>

#include "sim/serve/workload.h"

namespace roofcast {

/// Lengths as a table of probabilities.
struct LengthTable {
  std::vector<int> tokens;         ///< rising
  std::vector<double> cumulative;  ///< up to and with each of them; the last is 1

  int draw(Random& random) const;
  double mean() const;
};

/// Lengths that change: windows of any length, repeated. The first window's lengths also hold before its start.
struct LengthsByTime {
  Seconds period{};
  std::vector<Seconds> start;               ///< of each window, rising, less than the period
  std::vector<LengthTable> prompt, output;  ///< by window

  std::size_t at(Seconds arrival) const;
};

/// The clients of a folder, as many as it has pairs of `chunk-N-trace.csv` (a window's start in s, its requests/s,
/// the coefficient of variation of its gaps, Gamma | Weibull | Exponential, the law's shape and scale; no header) and
/// `chunk-N-dataset.json` ({start in s: {input_tokens, output_tokens: "{tokens: probability, ..}"}}). A client without
/// requests is left out; a window without lengths has those of the nearest one that has. Rates are multiplied by
/// `rate_scale`. Throws ConfigError at the place in the file.
std::vector<WorkloadSpec> read_servegen(const std::string& folder, double rate_scale);

}  // namespace roofcast
