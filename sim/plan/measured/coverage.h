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
  double steady_over_mean = 1;  ///< steady throughput of a closed loop relative to the whole run
  std::optional<Range> of(std::string_view metric) const;
};
RunIntervals intervals_of(const Scenario& scenario);

/// Computes intervals for every predictable run, on all cores.
std::vector<RunIntervals> run_intervals(const MeasuredRuns& runs);

/// The interval of a metric that a column of a table contains.
struct ColumnRange {
  std::string column, metric;
  std::optional<RunIntervals::Range> range;
};
/// The columns of this run among those of a table of this kind.
std::vector<ColumnRange> ranges_of(const MeasuredRun& run, RunKind kind, const RunIntervals& intervals);

/// How many measured values of a class are inside, and how wide the intervals are.
struct CoverageLine {
  std::string name, metric;
  std::size_t rows = 0;
  double inside = 0;  ///< fraction of the rows inside
  double width = 0;   ///< median of high / low
};

/// One value and its interval.
struct Covered {
  std::vector<std::string> classes;  ///< classes to which it belongs
  std::string metric;
  double measured = 0;
  RunIntervals::Range range;
};
std::vector<CoverageLine> coverage(const std::vector<Covered>& values);

/// Scored rows in total, by engine and by GPU; closed loops also by load, submissions also by kind of load. Throughputs
/// of submissions with arrivals are omitted, because they equal the offered rate.
std::vector<Covered> covered_runs(const MeasuredRuns& runs, const CsvTable& table,
                                  const std::vector<RunIntervals>& intervals);

/// Quantiles of ln(measured / predicted) by load regime, as in configs/uncertainty/serving.yaml.
struct SpreadLine {
  std::string regime, metric;
  std::size_t rows = 0;
  double low = 0, median = 0, high = 0;  ///< 5, 50 and 95 %
};
struct PredictedTable {
  const MeasuredRuns* runs;
  const CsvTable* table;
  std::vector<RunPrediction> predictions;    ///< one per row; 0: no prediction
  std::vector<RunIntervals> intervals = {};  ///< one per row, or none
};
std::vector<SpreadLine> spreads_by_regime(const std::vector<PredictedTable>& tables);
/// `light` and `loaded` of that file, from tables with intervals: what must be added to the other causes of an interval
/// for 5 % of the measured values to lie below and 5 % above, whichever class (release and harness) is left out.
std::vector<SpreadLine> rests_by_regime(const std::vector<PredictedTable>& tables);

}  // namespace roofcast
