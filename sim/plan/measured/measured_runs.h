#pragma once
// Serving runs that others measured, as scenarios: the protocol that produced each, under the launch settings in its
// columns.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/csv.h"
#include "sim/serve/simulation.h"
#include "sim/serve/workload.h"
#include "sim/step/deployment.h"

namespace roofcast {

/// Told apart by columns, never by the file's name.
enum class RunKind {
  kAggregated,     ///< closed loop on one deployment: ttft_ms, tpot_ms
  kDisaggregated,  ///< the same with prefill and decode on separate workers
  kStatic,         ///< one batch run to completion: metric, value
  kOffline,        ///< everything queued at once: metric, value
  kOnline,         ///< an offered rate: metric, value
};

struct MeasuredRun {
  std::size_t row = 0;
  std::string group;                       ///< model, GPU, engine
  bool scored = true;                      ///< false: speculation of unknown acceptance, or marked suspect
  bool dense = true;                       ///< no routed experts
  std::string note;                        ///< why it cannot be predicted; empty when it can
  std::shared_ptr<Deployment> deployment;  ///< its host costs may be changed between predictions
  std::string deployment_key;              ///< equal keys: equal prices of steps under equal host costs
  WorkloadSpec workload;
  int batch = 1;             ///< static runs
  bool one_prompt = false;   ///< all sequences are the same: what they decode meets the experts of one token
  bool queues = false;       ///< a static batch that does not fit the cache: worked off as places come free
  int replicas = 1;          ///< decode workers of a disaggregated run
  ServingOptions serving{};  ///< router, order and length of queues, seed; the fields below rule
  std::optional<Disaggregation> disaggregation;
  SpeculationSpec speculation;  ///< of runs with multi-token prediction: k, and no acceptance, which nobody recorded
  std::string metric;           ///< of `value`, for the kinds that have one
};

struct MeasuredRuns {
  RunKind kind = RunKind::kAggregated;
  std::vector<MeasuredRun> runs;  ///< one a row
};

/// Throws ConfigError for a table that is none of the kinds, and for rows with unreadable numbers. A row that
/// cannot be predicted (an unknown model or GPU) says so in its note.
MeasuredRuns read_measured_runs(const CsvTable& table);

/// Measures TTFT and TPOT of a closed loop.
inline bool closed_loop(RunKind kind) { return kind == RunKind::kAggregated || kind == RunKind::kDisaggregated; }

/// What a run shows. Fields that the kind does not measure stay 0.
struct RunPrediction {
  double ttft_ms = 0, tpot_ms = 0;
  double value = 0;  ///< in the unit of the run's metric
};
/// Simulates the run; `pricer` may be shared by runs of one deployment_key in one thread.
RunPrediction predict_run(RunKind kind, const MeasuredRun& run, StepPricer& pricer);

}  // namespace roofcast
