#pragma once
// Where a measured run comes from: a load generator's file, or scrapes of a live server.

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/measured/comparison.h"

namespace roofcast {

struct MeasuredSource {
  std::string bench;                   ///< a file of a load generator or of llama-bench; empty: `scrapes`
  std::optional<std::int64_t> run{};   ///< which of the runs in it, from 1
  std::vector<std::string> scrapes{};  ///< one, or before and after
  std::optional<Seconds> window{};     ///< that the scrapes cover
  Mark scenario{};                     ///< where the scenario stands, for messages
};

/// Reads the run and compares the scenario with it. Throws ConfigError for a file that cannot be read, for a run of
/// another shipped model than the scenario's, and for a scenario without a workload; only llama-bench needs none.
Comparison compare_with_source(const Scenario& scenario, const MeasuredSource& source);

}  // namespace roofcast
