#pragma once
// Serving runs that others measured, each as the scenario that describes it.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/csv.h"
#include "sim/plan/measured/run_table.h"
#include "sim/plan/power.h"
#include "sim/plan/scenario.h"
#include "sim/plan/system_spread.h"
#include "sim/serve/simulation.h"

namespace roofcast {

/// What a run has in common with others: a class is left out of a fit as a whole.
struct RunClasses {
  std::string version;  ///< engine and release
  std::string harness;  ///< who measured it: its recipe, or the table's source
  std::string host;     ///< harness and GPU: the machines of one laboratory
  std::string gpu, model;
};

struct MeasuredRun {
  std::size_t row = 0;
  std::string id;     ///< of the table, else the row's number
  std::string group;  ///< model, GPU, engine
  RunClasses classes;
  bool scored = true;                      ///< false: speculation of unknown acceptance, marked suspect, or impossible
  std::string doubt;                       ///< why its measurement is not believed; empty: it is
  bool dense = true;                       ///< no routed experts
  std::string note;                        ///< why it cannot be predicted; empty when it can
  ConfigTree scenario;                     ///< as a user could write it; null where the row cannot be written as one
  std::shared_ptr<Deployment> deployment;  ///< its host costs may be changed between predictions
  std::string deployment_key;              ///< equal keys: equal prices of steps under equal host costs
  WorkloadSpec workload;
  ServingOptions serving;
  std::string metric;  ///< of `value`, for the kinds that have one
};

struct MeasuredRuns {
  RunKind kind = RunKind::kAggregated;
  std::vector<MeasuredRun> runs;  ///< one a row
};

/// Throws ConfigError for a table that is none of the kinds, and for rows with unreadable numbers. A row that
/// cannot be predicted (an unknown model or GPU) says so in its note; one that cannot be believed, in its doubt.
MeasuredRuns read_measured_runs(const CsvTable& table);

/// What a run shows. Fields that the kind does not measure stay 0.
struct RunPrediction {
  double ttft_ms = 0, tpot_ms = 0;  ///< means
  double value = 0;                 ///< in the unit of the run's metric
  double itl_ms = 0;                ///< median
  double output_tokens_per_s = 0;
  double p99_ttft_ms = 0, p99_tpot_ms = 0;
  bool met = false;              ///< the objectives of its workload, where it has any
  LoadRegime regime = LoadRegime::kLight;
  double power_w = 0;            ///< mean of all GPUs together
  double busy_share = 0;         ///< of the time that a step was running
  Utilization utilization = {};  ///< while a step was running
  double joules_per_output_token() const { return output_tokens_per_s > 0 ? power_w / output_tokens_per_s : 0; }
};
/// Simulates the run's scenario; `pricer` may be shared by runs of one deployment_key in one thread.
RunPrediction predict_run(const MeasuredRun& run, StepPricer& pricer);

/// The run as the scenario that `simulate` plays.
Scenario scenario_of(const MeasuredRun& run);

}  // namespace roofcast
