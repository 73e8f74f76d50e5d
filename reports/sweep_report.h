#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "sim/plan/search/sweep_run.h"

namespace roofcast::reports {

/// format: table (the main columns) | json | csv (all). Points that an interrupted run did not reach are left out.
/// `fidelity` is that of the run, which the JSON's question tells.
std::string sweep_report(const SweepSpec& sweep, const SweepOutcome& outcome, const SweepStore& store,
                         const std::string& format, Fidelity fidelity = Fidelity::kCalibrated);

/// What a store holds of the sweep it was last used for, as the same JSON; points that failed are not in it.
nlohmann::ordered_json stored_sweep_json(const std::string& path);

}  // namespace roofcast::reports
