#pragma once
// Whether 90 % intervals contain the measured values.

#include <optional>
#include <string>
#include <vector>

#include "base/csv.h"
#include "sim/plan/measured/measured_runs.h"
#include "sim/plan/serving_intervals.h"

namespace roofcast {

/// Intervals of a run's metrics, as in `simulate --intervals`; empty if no request is completed.
struct RunIntervals {
  struct Range {
    double low = 0, high = 0;
  };
  std::vector<MetricInterval> metrics;
  LoadRegime regime = LoadRegime::kLight;
  double steady_over_mean = 1;  ///< a closed loop's steady throughput relative to that of the whole run
  std::optional<Range> of(std::string_view metric) const;
};
RunIntervals intervals_of(const Scenario& scenario);

/// For every run that can be predicted, on all cores.
std::vector<RunIntervals> run_intervals(const MeasuredRuns& runs);

/// The interval of the metric that a column of a table measures.
struct ColumnRange {
  std::string column, metric;
  std::optional<RunIntervals::Range> range;
};
/// The columns of this run, out of those that a table of this kind may have.
std::vector<ColumnRange> ranges_of(const MeasuredRun& run, RunKind kind, const RunIntervals& intervals);

/// How many of a class's measured values lie inside, and how wide the intervals are.
struct CoverageLine {
  std::string name, metric;
  std::size_t rows = 0;
  double inside = 0;  ///< share of the rows
  double width = 0;   ///< median of high / low
};

/// One value and its interval.
struct Covered {
  std::vector<std::string> classes;  ///< classes that it counts in
  std::string metric;
  double measured = 0;
  RunIntervals::Range range;
};
std::vector<CoverageLine> coverage(const std::vector<Covered>& values);

/// Scored rows by all, engine and GPU; closed loops also by load, entries of a contest by their kind of load.
/// Throughputs of entries with arrivals are left out, because they equal the rate that was sent.
std::vector<Covered> covered_runs(const MeasuredRuns& runs, const CsvTable& table,
                                  const std::vector<RunIntervals>& intervals);

/// Quantiles of ln(measured / predicted) by load regime, as configs/uncertainty/serving.yaml holds them.
struct SpreadLine {
  std::string regime, metric;
  std::size_t rows = 0;
  double low = 0, median = 0, high = 0;  ///< 5, 50 and 95 %
};
struct PredictedTable {
  const MeasuredRuns* runs;
  const CsvTable* table;
  std::vector<RunPrediction> predictions;  ///< one per row; 0 if there is none
};
std::vector<SpreadLine> spreads_by_regime(const std::vector<PredictedTable>& tables);

}  // namespace roofcast
