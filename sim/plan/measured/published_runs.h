#pragma once
// Published runs that nothing was fitted to, each with the scenario that describes it.

#include <string>
#include <vector>

#include "base/csv.h"
#include "sim/plan/measured/coverage.h"
#include "sim/plan/measured/serving_accuracy.h"

namespace roofcast {

/// Metrics that a table may contain, named as in `vllm bench serve`: milliseconds, output tokens per second.
inline constexpr const char* kPublishedMetrics[] = {"mean_ttft_ms", "median_ttft_ms", "mean_tpot_ms", "median_tpot_ms",
                                                    "output_throughput"};

struct PublishedRun {
  std::string group;  ///< engine profile and GPU
  std::string note;   ///< why it cannot be predicted; empty: it can
  std::string doubt;  ///< why its figures are not believed, and not scored; empty: they are
  std::string engine, gpu;
  std::vector<double> predictions;  ///< one per metric; empty with a note
  RunIntervals intervals;           ///< if requested
};

/// Whether the table has a column of scenarios (maps).
bool holds_scenarios(const CsvTable& table);

/// The scenario of a row, as input of `simulate`.
ConfigTree published_scenario(const CsvTable& table, std::size_t row);

/// Simulates the scenario of each row (YAML or JSON in one field), on all cores.
std::vector<PublishedRun> predict_published(const CsvTable& table, bool intervals = false);

/// Values inside their intervals: in total, by engine and by GPU.
std::vector<Covered> covered_published(const CsvTable& table, const std::vector<PublishedRun>& runs);

/// Errors by group, then over all rows.
std::vector<AccuracyLine> accuracy_of_published(const CsvTable& table, const std::vector<PublishedRun>& runs);

}  // namespace roofcast
