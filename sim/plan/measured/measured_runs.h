#pragma once
// Measured serving runs from others, each with the scenario that describes it.

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

/// Classes of a run, for leaving whole classes out of a fit.
struct RunClasses {
  std::string version;  ///< engine and release
  std::string harness;  ///< its recipe, or the source of the table
  std::string host;     ///< harness and GPU, hence the machines of one laboratory
  std::string gpu, model;
};

struct MeasuredRun {
  std::size_t row = 0;
  std::string id;     ///< from the table, else the row number
  std::string group;  ///< model, GPU, engine
  RunClasses classes;
  bool scored = true;                      ///< false: unknown acceptance, marked suspect, or implausible
  std::string doubt;                       ///< why the measurement is implausible; empty: it is plausible
  bool dense = true;                       ///< no routed experts
  std::string note;                        ///< why it cannot be predicted; empty: it can
  ConfigTree scenario;                     ///< as a user would write it; null if that is not possible
  std::shared_ptr<Deployment> deployment;  ///< host costs may change between predictions
  std::string deployment_key;              ///< equal keys have equal step times with equal host costs
  WorkloadSpec workload;
  ServingOptions serving;
  std::string metric;  ///< of `value`, for the kinds that have one
};

struct MeasuredRuns {
  RunKind kind = RunKind::kAggregated;
  std::vector<MeasuredRun> runs;  ///< one a row
};

/// Throws ConfigError for an unknown kind of table and for unreadable numbers. A row that cannot be predicted (such as
/// an unknown model) has a note, an implausible one a doubt.
MeasuredRuns read_measured_runs(const CsvTable& table);

/// Predicted metrics of a run. Fields that the kind does not measure stay 0.
struct RunPrediction {
  double ttft_ms = 0, tpot_ms = 0;  ///< means
  double value = 0;                 ///< in the unit of the run's metric
  double itl_ms = 0;                ///< median
  double output_tokens_per_s = 0;
  double p99_ttft_ms = 0, p99_tpot_ms = 0;
  bool met = false;  ///< whether it meets the objectives of its workload, if any
  LoadRegime regime = LoadRegime::kLight;
  double power_w = 0;            ///< mean of all GPUs together
  double busy_share = 0;         ///< fraction of the time that a step is running
  Utilization utilization = {};  ///< while a step was running
  double joules_per_output_token() const { return output_tokens_per_s > 0 ? power_w / output_tokens_per_s : 0; }
};
/// Simulates the run's scenario. Runs with the same deployment_key may share `pricer` within one thread.
RunPrediction predict_run(const MeasuredRun& run, StepPricer& pricer);

/// The run as a scenario for `simulate`.
Scenario scenario_of(const MeasuredRun& run);

}  // namespace roofcast
