#pragma once
// Host costs of all engines, front ends and host machines as one population, fitted to measured closed loops.

#include <array>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/csv.h"
#include "sim/plan/measured/measured_runs.h"
#include "sim/step/host_costs.h"

namespace roofcast {

/// Who has a cost: the engine, the front end or the host.
enum class CostOwner { kEngine, kFrontEnd, kHost };

/// One host cost: its expected value in any engine, front end or host, and how far (in logarithms) one may differ from
/// it.
struct PopulationCost {
  std::string_view name;
  Seconds HostCosts::*member;  ///< null: the launch time on a host relative to the usual one (1 / launch_speed)
  double expected;             ///< in us, or a ratio: of the population, before any run is seen
  double spread;               ///< standard deviation of ln(mean of the population / expected)
  double departure;            ///< standard deviation of ln(one member / mean of the population)
  CostOwner owner;
};
std::span<const PopulationCost> population_costs();

/// Costs by member of the population: "engine NAME", "front end NAME" (an engine's own carries its name), "host NAME".
using PopulationCosts = std::map<std::string, std::vector<double>>;  ///< us or ratio, as in population_costs()

/// The owners of a run's costs, by CostOwner; empty: none.
using Membership = std::array<std::string, 3>;
Membership membership_of(const MeasuredRun& run);

/// Runs whose costs belong to the population: scored closed loops that can be predicted, of an engine whose scheduler
/// has costs of its own (see HostCosts::scheduler_time).
bool in_population(const MeasuredRun& run);

/// One linear model of ln(predicted / measured) in the logarithms of the costs, around the costs of the runs.
class PopulationFit {
 public:
  /// Simulates every run of a table once, and once more for every cost. Runs keep their costs, and must outlive the
  /// fit.
  void add(MeasuredRuns& runs, const CsvTable& table);

  /// The costs that best explain the runs for which `counts` holds: least sum of |ln(predicted / measured)|, where each
  /// group of runs (model, GPU, engine release) has weight 1 and TPOT twice the weight of TTFT, plus squared departures
  /// from the population. A cost that no run determines is the population's.
  PopulationCosts fit(const std::function<bool(const MeasuredRun&)>& counts) const;
  double loss() const;  ///< under the costs of the runs

 private:
  struct Row {
    const MeasuredRun* run;
    Membership member;
    bool ttft;                   ///< else TPOT
    double residual;             ///< ln(predicted / measured)
    std::vector<double> slopes;  ///< of the residual, by ln of each cost
  };
  std::vector<Row> rows_;
  PopulationCosts present_;
};

/// Sets the host costs of a run, and of its prefill workers.
void set_costs(MeasuredRun& run, const PopulationCosts& costs);

}  // namespace roofcast
