#pragma once
// Infers the acceptance of drafted tokens from measured runs that did not record it.

#include <string>
#include <vector>

#include "base/csv.h"
#include "sim/plan/measured/measured_runs.h"

namespace roofcast {

/// The acceptance (equal for all positions, independent) at which the simulated TPOT of a run equals the measured one.
struct RunAcceptance {
  std::size_t row = 0;
  std::string group;
  int drafts = 0;
  double acceptance = 0;  ///< in [0, 1]
  bool below = false;     ///< slower than predicted without a single draft accepted
  bool above = false;     ///< faster than predicted with all of them accepted
};

/// Summary by group and number of drafts.
struct GroupAcceptance {
  std::string group;
  int drafts = 0;
  std::size_t runs = 0, below = 0, above = 0;
  double p25 = 0, median = 0, p75 = 0;
  double tokens_per_step = 1;  ///< at the median acceptance a: (1 - a^(k+1)) / (1 - a)
};

/// For every run with multi-token prediction that is not suspect: bisection on the simulated TPOT, which falls with the
/// acceptance. Uses all cores. Throws ConfigError for a table without such runs.
std::vector<RunAcceptance> fit_acceptance(const MeasuredRuns& runs, const CsvTable& table);
std::vector<GroupAcceptance> acceptance_by_group(const std::vector<RunAcceptance>& runs);

}  // namespace roofcast
