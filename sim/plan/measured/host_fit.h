#pragma once
// Fits an engine's host costs to measured serving runs. GPU times are not changed.

#include <span>
#include <string>
#include <vector>

#include "base/csv.h"
#include "sim/plan/measured/measured_runs.h"
#include "sim/step/host_costs.h"

namespace roofcast {

/// One host cost and its physical bounds.
struct HostParameter {
  std::string_view name;
  Seconds HostCosts::*member;
  double low_us, high_us;
  bool optional = false;  ///< only for some engines: fitted if the profile has it
};
std::span<const HostParameter> host_parameters();

struct HostFitOptions {
  int max_evaluations = 160;       ///< per descent
  int starts = 4;                  ///< number of descents; the first starts at the profile's costs
  std::uint64_t seed = 1;          ///< of the starting points of the others
  std::size_t smallest_group = 5;  ///< rows; smaller groups do not count
  double pull = 0;                 ///< weight of the engine's own costs, if there are too few runs to determine all
};

/// MAPE of one group, as fractions; 0 for what its table does not contain.
struct HostErrors {
  double ttft = 0, tpot = 0, value = 0;
};

struct HostFitGroup {
  std::string group;
  std::size_t rows = 0;
  bool counted = true;  ///< used in the fit: enough rows, and not contradictory
  HostErrors fitted;    ///< with constants fitted to all groups
};

struct HostFit {
  HostCosts host;
  std::vector<std::string_view> unexercised;  ///< costs that no prediction depends on; left as in the profile
  double loss = 0;
  std::vector<HostFitGroup> groups;
};

/// Fits the runs of `engine` (a profile's name) among `runs`. The loss is the mean over groups of the mean
/// |log(predicted / measured)| of TTFT and TPOT (TPOT counts twice) or of the table's value, each capped at log 2, plus
/// `pull` times the mean squared ln(cost / expected cost), plus a twentieth of cost / bound. Groups smaller than
/// `smallest_group` are ignored, as are groups of which more than a third are off by a factor of two with the engine's
/// own costs. Costs that affect no prediction (such as the front end in offline runs) keep the profile's value, as do
/// costs that are no HostParameter. Throws ConfigError if no scored run is of this engine.
HostFit fit_host(MeasuredRuns& runs, const CsvTable& table, const std::string& engine, const HostFitOptions& options);

}  // namespace roofcast
