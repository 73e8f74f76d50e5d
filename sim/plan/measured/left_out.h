#pragma once
// Leave-one-class-out predictions: host costs fitted without the class of the run.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "sim/plan/measured/measured_runs.h"
#include "sim/plan/measured/serving_accuracy.h"

namespace roofcast {

/// Names of class keys: version, harness, host, gpu, model.
std::span<const std::string_view> class_names();

/// The class of a run by several keys: "vllm@0.19.0, inferencex" for {version, harness}.
std::string class_of(const MeasuredRun& run, const std::vector<std::string>& names);

/// A table and its runs.
struct MeasuredTable {
  const CsvTable* table;
  MeasuredRuns* runs;
};

/// Sets the host costs of every run to a fit of all tables without the run's class (see PopulationFit). Runs outside of
/// the population keep theirs. Throws ConfigError if no run is in the population.
void leave_out(std::span<const MeasuredTable> tables, const std::vector<std::string>& classes);

/// Accuracy by class, then the mean over classes with at least five rows.
std::vector<AccuracyLine> accuracy_by_class(const MeasuredRuns& runs, const CsvTable& table,
                                            const std::vector<RowPrediction>& rows,
                                            const std::vector<std::string>& classes);

}  // namespace roofcast
