#pragma once
// Compares a measured run with its prediction: how far apart they are, and which changed assumption explains it.

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/measured/bench_run.h"
#include "sim/plan/measured/host_fit.h"
#include "sim/plan/scenario.h"

namespace roofcast {

struct ComparedMetric {
  std::string name;
  double measured = 0;
  std::optional<double> as_written;     ///< predicted for the load of the scenario
  double predicted = 0;                 ///< predicted for the load of the run; equal to as_written if the loads agree
  std::optional<double> low{}, high{};  ///< of its 90 % interval (sim/plan/serving_intervals.h), where known
  std::optional<double> ratio() const { return measured > 0 ? std::optional(predicted / measured) : std::nullopt; }
};

/// A difference between the load of the scenario and of the run.
struct LoadMismatch {
  std::string what, scenario, run;
  bool adopted = false;  ///< the prediction uses the run's value
};

/// The figures that represent a run: mean (else median) TTFT and TPOT (else ITL), output tokens/s, and the highest TTFT
/// percentile of at least 90 in the file (queueing stretches that tail, a fixed delay shifts it). 0: not measured.
struct RunFigures {
  double ttft_ms = 0, tpot_ms = 0, output_throughput = 0, ttft_tail_ms = 0;
};

/// A simulation with one assumption changed.
struct Assumption {
  std::string change;  ///< "no CUDA graphs"
  std::string check;   ///< where the user can check it
  RunFigures predicted;
  double distance =
      0;  ///< mean |ln(predicted / measured)| over the measured figures; the tail counts only beyond kTail
  double explains = 0;  ///< fraction of the unchanged prediction's distance that it removes; negative: worse
};

/// Breakdown of the predicted time, as means over requests, with the measured counterparts.
struct TimeShares {
  double batch = 0, context = 0;             ///< decoding sequences per replica, and tokens in their caches
  double step_gpu_ms = 0, step_host_ms = 0;  ///< of a pure decode step at that batch
  double tpot_others_ms = 0;                 ///< rest of TPOT: steps with prefill of other requests, and waiting
  double queue_ms = 0, front_end_ms = 0, prefill_ms = 0, ttft_others_ms = 0;
  double in_flight = 0;
  std::optional<double> measured_batch, measured_in_flight;
  double measured_batch_step_ms = 0;  ///< predicted pure decode step at the measured batch; 0: unknown
  double kv_peak_usage = 0;
  std::int64_t preemptions = 0;
};

struct Comparison {
  BenchRun run;
  std::vector<ComparedMetric> metrics;
  std::vector<LoadMismatch> mismatches;
  RunFigures measured, as_written, predicted;
  double distance_as_written = 0, distance = 0;
  std::optional<TimeShares> shares;  ///< for a simulated run
  /// Figures measured outside of their 90 % interval and more than kAgreement from the prediction (for a tail: more
  /// than a factor of 1.5), or measured without a prediction. Empty optional: no figure could be judged, as for the
  /// ideal roofline or a run too long to repeat 40 times.
  std::optional<std::vector<std::string>> outside;
  std::vector<std::string> near;        ///< measured outside of their intervals, but within that distance
  std::vector<std::string> not_judged;  ///< measured, but without an interval
  std::vector<Assumption> assumptions;  ///< best first
  std::vector<std::string> not_tried;   ///< assumptions with which the deployment does not fit
  std::vector<std::string> findings;    ///< sentences, most important first
};

/// Mean |ln(predicted / measured)| up to which a run and its prediction agree.
inline constexpr double kAgreement = 0.05;

/// Simulates the scenario as written, then with the run's load if that differs, and then with one assumption changed at
/// a time. Throws Unavailable if the deployment does not fit.
Comparison compare_with_run(const Scenario& scenario, BenchRun run);

/// Fits the host costs of the scenario's engine so that its runs, each with its own load, come closest to their
/// measured TTFT and TPOT. Throws ConfigError for a run without means or medians of both.
HostFit fit_host_to_runs(const Scenario& scenario, const std::vector<BenchRun>& runs, int max_evaluations);

// comparison_load.cpp
/// Adds a note if the run names another model than the scenario's.
void check_model(const std::string& measured, const std::string& model, std::vector<LoadMismatch>& out);
/// The scenario's workload with the load of the run, and the differences. `predicted` is for the scenario's own load.
WorkloadSpec workload_of_run(const Scenario& scenario, const BenchRun& run, const ServingMetrics& predicted,
                             std::vector<LoadMismatch>& mismatches);

// comparison_assumptions.cpp
/// Simulates each applicable assumption, on all cores.
void try_assumptions(const Scenario& reference, const ServingMetrics& predicted, Comparison& comparison);

RunFigures figures_of(const BenchRun& run);
/// The statistics of a simulation that the run also has.
RunFigures figures_of(const ServingMetrics& metrics, const BenchRun& run);
double distance_of(const RunFigures& predicted, const RunFigures& measured);

}  // namespace roofcast
