#pragma once
// Published speeds of engines for one user (llama-bench and the like): predicted, and fitted by backend.

#include <memory>
#include <string>
#include <vector>

#include "base/csv.h"
#include "base/units.h"
#include "hw/rooflines.h"

namespace roofcast {

struct Deployment;
class StepModel;

/// One speed of one machine: `tokens` prompt tokens at once, or that many tokens one after another from an empty cache.
struct LocalRun {
  std::shared_ptr<const Deployment> deployment;
  bool prompt = false;
  int tokens = 0;
  double tokens_per_s = 0;
};

/// Columns engine, gpu, model, weights, test (pp512, tg128) and tokens_per_s, and optionally gpus, each with a slice of
/// the layers. Throws ConfigError for what cannot be read.
std::vector<LocalRun> read_local_runs(const CsvTable& table);

/// One step of `tokens` prompt tokens after `depth` cached ones; one token after `context` of them.
Seconds prompt_time(StepModel& model, int tokens, int depth);
Seconds token_time(StepModel& model, double context);

/// Tokens per second. `backend` replaces that of the deployment's engine; null: the engine's.
double predicted_speed(const LocalRun& run, const RooflineBackend* backend = nullptr);

/// The constants of a backend that are neither 0 nor 1 (a single one for all formats where they are equal), with the
/// least mean of |ln(predicted / measured)|: coordinate search from the file's values, in steps that halve from 20 to 1
/// %.
RooflineBackend fit_backend(const RooflineBackend& start, const std::vector<const LocalRun*>& runs);

/// The accuracy of a backend.
struct BackendScore {
  std::string name;         ///< of the library and its backend
  RooflineBackend backend;  ///< fitted to all rows
  std::vector<std::string> gpus;
  std::vector<double> logs;      ///< ln(predicted / measured), by row
  std::vector<double> left_out;  ///< the same, with constants fitted without the row's GPU; empty: not asked for
};

/// One entry per backend of the engine that has rows.
std::vector<BackendScore> score_backends(const std::vector<LocalRun>& runs, bool refit, bool leave_out);

}  // namespace roofcast
