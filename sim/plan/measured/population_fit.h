#pragma once
// Host costs of all engines, front ends and hosts as one population, fitted to measured closed loops.

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

/// What has a cost: the engine, the front end or the host.
enum class CostOwner { kEngine, kFrontEnd, kHost };

/// One host cost: its expected value over all engines, front ends or hosts, and how far (in ln) one member may differ.
struct PopulationCost {
  std::string_view name;
  Seconds HostCosts::*member;  ///< null: the launch time relative to a typical host (1 / launch_speed)
  double expected;             ///< prior mean of the population, us or a ratio
  double spread;               ///< standard deviation of ln(mean of the population / expected)
  double departure;            ///< standard deviation of ln(one member / mean of the population)
  CostOwner owner;
};
std::span<const PopulationCost> population_costs();

/// Costs by member of the population: "engine NAME", "front end NAME" (an engine's own carries its name), "host NAME".
using PopulationCosts = std::map<std::string, std::vector<double>>;  ///< us or ratio, as in population_costs()

/// The owners of a run's costs, indexed by CostOwner; empty: none.
using Membership = std::array<std::string, 3>;
Membership membership_of(const MeasuredRun& run);

/// Whether the costs of a run belong to the population: scored, predictable closed loops of an engine with its own
/// scheduler costs (see HostCosts::scheduler_time).
bool in_population(const MeasuredRun& run);

/// Linear model of ln(predicted / measured) in the logarithms of the costs, around the costs of the runs.
class PopulationFit {
 public:
  /// Simulates every run of a table once, plus once per cost. Restores the costs of the runs, which must outlive the
  /// fit.
  void add(MeasuredRuns& runs, const CsvTable& table);

  /// The costs that best explain the runs for which `counts` holds. Minimizes the sum of |ln(predicted / measured)|,
  /// with weight 1 per group of runs (model, GPU, engine release) and TPOT weighted twice, plus squared departures from
  /// the population. A cost that no run determines takes the population's value.
  PopulationCosts fit(const std::function<bool(const MeasuredRun&)>& counts) const;
  double loss() const;  ///< with the costs of the runs

 private:
  struct Row {
    const MeasuredRun* run;
    Membership member;
    bool ttft;                   ///< else TPOT
    double residual;             ///< ln(predicted / measured)
    std::vector<double> slopes;  ///< derivatives of the residual by ln of each cost
  };
  std::vector<Row> rows_;
  PopulationCosts present_;
};

/// Sets the host costs of a run, and of its prefill workers.
void set_costs(MeasuredRun& run, const PopulationCosts& costs);

}  // namespace roofcast
