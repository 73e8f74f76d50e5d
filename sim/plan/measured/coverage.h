#pragma once
// Whether 90 % intervals hold what was measured.

#include <optional>
#include <string>
#include <vector>

#include "base/csv.h"
#include "sim/plan/measured/measured_runs.h"

namespace roofcast {

/// Intervals of mean TTFT, mean TPOT and output throughput; nullopt where there is none.
struct RunIntervals {
  struct Range {
    double low = 0, high = 0;
  };
  std::optional<Range> ttft_ms, tpot_ms, output_throughput;
};

/// As `simulate --intervals` gives them; empty where the scenario completes nothing.
RunIntervals intervals_of(const Scenario& scenario);

/// Of every run that can be predicted, on all cores.
std::vector<RunIntervals> run_intervals(const MeasuredRuns& runs);

/// How many of a class's measured values lie within, and how wide the intervals are.
struct CoverageLine {
  std::string name, metric;
  std::size_t rows = 0;
  double inside = 0;  ///< share of the rows
  double width = 0;   ///< median of high / low
};

/// One value and its interval.
struct Covered {
  std::vector<std::string> classes;  ///< that it counts in
  std::string metric;
  double measured = 0;
  RunIntervals::Range range;
};
std::vector<CoverageLine> coverage(const std::vector<Covered>& values);

/// Scored closed loops by all, engine, GPU and load.
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
  std::vector<RunPrediction> predictions;  ///< one a row; 0 where there is none
};
std::vector<SpreadLine> spreads_by_regime(const std::vector<PredictedTable>& tables);

}  // namespace roofcast
