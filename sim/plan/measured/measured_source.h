#pragma once
// The source of a measured run: a load generator's file, or scrapes of a live server.

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/measured/comparison.h"

namespace roofcast {

struct MeasuredSource {
  std::string bench;                   ///< a file of a load generator or of llama-bench; empty: `scrapes`
  std::optional<std::int64_t> run{};   ///< number of the run in the file, from 1
  std::vector<std::string> scrapes{};  ///< one scrape, or one before and one after
  std::optional<Seconds> window{};     ///< time that the scrapes cover
  SourceLocation scenario{};           ///< source location of the scenario, for messages
};

/// Reads the run and compares the scenario with it. Throws ConfigError for an unreadable file, for a run of another
/// shipped model than the scenario's, and for a scenario without a workload (except with llama-bench).
Comparison compare_with_source(const Scenario& scenario, const MeasuredSource& source);

}  // namespace roofcast
