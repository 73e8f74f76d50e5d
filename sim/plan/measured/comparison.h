#pragma once
// A measured run beside its prediction: how far apart, and which changed assumption brings them together.

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
  std::optional<double> as_written;     ///< predicted for the scenario's own load
  double predicted = 0;                 ///< predicted for the load as it was run; the same where they agree
  std::optional<double> low{}, high{};  ///< of its 90 % interval (sim/plan/serving_intervals.h), where it has one
  std::optional<double> ratio() const { return measured > 0 ? std::optional(predicted / measured) : std::nullopt; }
};

/// Where the scenario's load is not what was run.
struct LoadMismatch {
  std::string what, scenario, run;
  bool adopted = false;  ///< the prediction is made for the run's value
};

/// What stands for a run in a word: mean (else median) TTFT and TPOT (else ITL), output tokens/s, and the highest
/// percentile of TTFT that the file has from p90 up: a queue stretches it, a delay moves it. 0: not measured.
struct RunFigures {
  double ttft_ms = 0, tpot_ms = 0, output_throughput = 0, ttft_tail_ms = 0;
};

/// One changed assumption, simulated again.
struct Assumption {
  std::string change;  ///< "no CUDA graphs"
  std::string check;   ///< where the user sees whether it holds
  RunFigures predicted;
  double distance = 0;  ///< mean |ln(predicted / measured)| over the figures measured; of the tail, what exceeds kTail
  double explains = 0;  ///< share of the distance of the unchanged prediction that it takes away; below 0: worse
};

/// Where the predicted times go, mean over requests, and the same figures where the run shows them.
struct TimeShares {
  double batch = 0, context = 0;             ///< sequences decoding together on a replica, and tokens in their caches
  double step_gpu_ms = 0, step_host_ms = 0;  ///< of a pure decode step at that batch
  double tpot_others_ms = 0;                 ///< the rest of TPOT: steps that hold other requests' prefills, waits
  double queue_ms = 0, front_end_ms = 0, prefill_ms = 0, ttft_others_ms = 0;
  double in_flight = 0;
  std::optional<double> measured_batch, measured_in_flight;
  double measured_batch_step_ms = 0;  ///< a predicted pure decode step at the measured batch; 0: not known
  double kv_peak_usage = 0;
  std::int64_t preemptions = 0;
};

struct Comparison {
  BenchRun run;
  std::vector<ComparedMetric> metrics;
  std::vector<LoadMismatch> mismatches;
  RunFigures measured, as_written, predicted;
  double distance_as_written = 0, distance = 0;
  std::optional<TimeShares> shares;  ///< of a run that was simulated
  /// Figures that were measured outside of their 90 % intervals, and more than kAgreement (of a tail: a factor of 1.5)
  /// from the prediction; or measured where nothing is predicted. Nothing: no figure could be judged, as of an ideal
  /// machine or a run too long to be played 40 times.
  std::optional<std::vector<std::string>> outside;
  std::vector<std::string> near;        ///< measured outside of their intervals, but no farther off than that
  std::vector<std::string> not_judged;  ///< measured, without an interval
  std::vector<Assumption> assumptions;  ///< best first
  std::vector<std::string> not_tried;   ///< assumptions that leave the deployment without room
  std::vector<std::string> findings;    ///< sentences, the most telling first
};

/// Within this mean |ln(predicted / measured)| the two agree.
inline constexpr double kAgreement = 0.05;

/// Simulates the scenario as written; where the load differs from the run's, again with the run's; then with one
/// assumption changed at a time. Throws Unavailable when the deployment does not fit.
Comparison compare_with_run(const Scenario& scenario, BenchRun run);

/// Host costs of the scenario's engine that bring its runs, each under its own load, nearest to their measured TTFT and
/// TPOT. Throws ConfigError for a run without the means or medians of both.
HostFit fit_host_to_runs(const Scenario& scenario, const std::vector<BenchRun>& runs, int max_evaluations);

// comparison_load.cpp
/// Notes where the run's model, if it names one, is not the scenario's.
void check_model(const std::string& measured, const std::string& model, std::vector<LoadMismatch>& out);
/// The scenario's workload with the run's load in its place, and what differed. `predicted` is the scenario's own.
WorkloadSpec workload_of_run(const Scenario& scenario, const BenchRun& run, const ServingMetrics& predicted,
                             std::vector<LoadMismatch>& mismatches);

// comparison_assumptions.cpp
/// Simulates each assumption that applies, on all cores.
void try_assumptions(const Scenario& reference, const ServingMetrics& predicted, Comparison& comparison);

RunFigures figures_of(const BenchRun& run);
/// Of a simulation, the statistics that the run has.
RunFigures figures_of(const ServingMetrics& metrics, const BenchRun& run);
double distance_of(const RunFigures& predicted, const RunFigures& measured);

}  // namespace roofcast
