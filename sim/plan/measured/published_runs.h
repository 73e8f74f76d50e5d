#pragma once
// Runs that others published, each with the scenario that describes it: predictions of what nothing was fitted to.

#include <string>
#include <vector>

#include "base/csv.h"
#include "sim/plan/measured/coverage.h"
#include "sim/plan/measured/serving_accuracy.h"

namespace roofcast {

/// What a table may hold of a run, in the words of `vllm bench serve`: milliseconds, output tokens a second.
inline constexpr const char* kPublishedMetrics[] = {"mean_ttft_ms", "median_ttft_ms", "mean_tpot_ms", "median_tpot_ms",
                                                    "output_throughput"};

struct PublishedRun {
  std::string group;  ///< engine profile and GPU
  std::string note;   ///< why it cannot be predicted; empty when it can
  std::string doubt;  ///< why its figures are not believed, and not scored; empty: they are
  std::string engine, gpu;
  std::vector<double> predictions;  ///< one a metric; empty with a note
  RunIntervals intervals;           ///< where they were asked for
};

/// Whether the table has a column of scenarios: maps, not words.
bool holds_scenarios(const CsvTable& table);

/// The scenario of a row, as `simulate` takes it.
ConfigTree published_scenario(const CsvTable& table, std::size_t row);

/// Simulates the scenario of each row, YAML or JSON in one field, on all cores.
std::vector<PublishedRun> predict_published(const CsvTable& table, bool intervals = false);

/// Values within their intervals, by all, engine and GPU.
std::vector<Covered> covered_published(const CsvTable& table, const std::vector<PublishedRun>& runs);

/// Errors by group, then over all rows.
std::vector<AccuracyLine> accuracy_of_published(const CsvTable& table, const std::vector<PublishedRun>& runs);

}  // namespace roofcast
