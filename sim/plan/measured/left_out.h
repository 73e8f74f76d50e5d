#pragma once
// What a user of a class that nobody fitted gets: predictions by host costs fitted without it.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "sim/plan/measured/measured_runs.h"
#include "sim/plan/measured/serving_accuracy.h"

namespace roofcast {

/// Names of classes: version, harness, host, gpu, model.
std::span<const std::string_view> class_names();

/// A run's class by the names of several: "vllm@0.19.0, inferencex" for {version, harness}.
std::string class_of(const MeasuredRun& run, const std::vector<std::string>& names);

/// A table with its runs.
struct MeasuredTable {
  const CsvTable* table;
  MeasuredRuns* runs;
};

/// Sets the host costs of every run to those that the runs of all tables ask for without its own class (see
/// PopulationFit). Runs outside the population keep theirs. Throws ConfigError where no run is in the population.
void leave_out(std::span<const MeasuredTable> tables, const std::vector<std::string>& classes);

/// Accuracy by class, then the mean over classes of five rows or more.
std::vector<AccuracyLine> accuracy_by_class(const MeasuredRuns& runs, const CsvTable& table,
                                            const std::vector<RowPrediction>& rows,
                                            const std::vector<std::string>& classes);

}  // namespace roofcast
