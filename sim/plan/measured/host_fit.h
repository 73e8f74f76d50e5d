#pragma once
// Fits an engine's host costs to measured serving runs. GPU times stay as the kernels' fits have them.

#include <span>
#include <string>
#include <vector>

#include "base/csv.h"
#include "sim/plan/measured/measured_runs.h"
#include "sim/step/host_costs.h"

namespace roofcast {

/// One host cost with its physical bounds.
struct HostParameter {
  std::string_view name;
  Seconds HostCosts::*member;
  double low_us, high_us;
  bool optional = false;  ///< of some engines alone: fitted where the profile has it
};
std::span<const HostParameter> host_parameters();

struct HostFitOptions {
  int max_evaluations = 160;       ///< of one descent
  int starts = 4;                  ///< descents, the first from the profile's own costs
  std::uint64_t seed = 1;          ///< of the others' starting points
  std::size_t smallest_group = 5;  ///< rows; smaller groups do not count
  double pull = 0;                 ///< towards the engine's own costs, for runs too few to determine them all
};

/// MAPE of one group, as fractions; what its table does not hold is 0.
struct HostErrors {
  double ttft = 0, tpot = 0, value = 0;
};

struct HostFitGroup {
  std::string group;
  std::size_t rows = 0;
  bool counted = true;  ///< in the fit: enough rows, and not contradicting it
  HostErrors fitted;    ///< with the constants fitted on all groups
};

struct HostFit {
  HostCosts host;
  std::vector<std::string_view> unexercised;  ///< costs that no prediction depends on: the profile's own, not fitted
  double loss = 0;
  std::vector<HostFitGroup> groups;
};

/// Runs of `engine` (a profile's name) among `runs`. The loss is the mean over groups of the mean |log(predicted /
/// measured)| of TTFT and TPOT (TPOT counted twice) or of the table's value, each at most log 2, plus `pull` times the
/// mean squared ln(cost / what is expected of it), both plus a twentieth of the cost's bound. Groups smaller than
/// `smallest_group` do not count, nor do those of whose values more than a third are twice off under the engine's own
/// costs. A cost on which no run's prediction depends (a front end's, of offline runs, which have none) is left as the
/// profile has it, as are those that are no HostParameter. Throws ConfigError when no scored run is of this engine.
HostFit fit_host(MeasuredRuns& runs, const CsvTable& table, const std::string& engine, const HostFitOptions& options);

}  // namespace roofcast
