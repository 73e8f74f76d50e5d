#pragma once
// Published single-user speeds of local engines (llama-bench and similar): predicted, and fitted by backend.

#include <memory>
#include <string>
#include <vector>

#include "base/csv.h"
#include "base/units.h"
#include "hw/rooflines.h"

namespace roofcast {

struct Deployment;
class StepModel;

/// One speed of one machine: `tokens` prompt tokens, or as many tokens generated, after `depth` cached ones.
struct LocalRun {
  std::shared_ptr<const Deployment> deployment;
  bool prompt = false;
  int tokens = 0, depth = 0;
  int sequences = 1;        ///< at once
  double tokens_per_s = 0;  ///< of all sequences
};

/// Reads columns engine, gpu, model, weights, test (pp512, tg128) and tokens_per_s, and optionally gpus (each GPU holds
/// a slice of the layers), depth and sequences. Throws ConfigError for invalid values.
std::vector<LocalRun> read_local_runs(const CsvTable& table);

/// prompt_time: one step of `tokens` prompt tokens after `depth` cached ones. token_time: one token after `context`
/// tokens.
Seconds prompt_time(StepModel& model, int tokens, int depth);
Seconds token_time(StepModel& model, double context);

/// Tokens per second. `backend` overrides that of the deployment's engine; null: the engine's.
double predicted_speed(const LocalRun& run, const RooflineBackend* backend = nullptr);

/// Fits the constants of a backend that are neither 0 nor 1 to the least mean |ln(predicted / measured)|: coordinate
/// search from the file's values, in steps from 20 % halved to 1 %.
RooflineBackend fit_backend(const RooflineBackend& start, const std::vector<const LocalRun*>& runs);

/// The accuracy of a backend.
struct BackendScore {
  std::string name;         ///< name of the library and its backend
  RooflineBackend backend;  ///< fitted to all rows
  std::vector<std::string> gpus;
  std::vector<double> logs;      ///< ln(predicted / measured) per row
  std::vector<double> left_out;  ///< the same with constants fitted without the row's GPU; empty: not requested
};

/// One entry per backend of the engine that has rows.
std::vector<BackendScore> score_backends(const std::vector<LocalRun>& runs, bool refit, bool leave_out);

}  // namespace roofcast
