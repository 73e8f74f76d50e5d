#pragma once
#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "sim/plan/search/sweep_run.h"

namespace roofcast::reports {

/// Takes a report piece by piece, so that a large one is never held in memory.
using Write = std::function<void(std::string_view)>;

/// format: table (the main columns) | json | csv (all). Points that an interrupted run did not reach are left out.
/// `fidelity` is that of the run, for the JSON's question.
void sweep_report(const SweepSpec& sweep, const SweepOutcome& outcome, const SweepStore& store,
                  const std::string& format, Fidelity fidelity, const Write& write);
std::string sweep_report(const SweepSpec& sweep, const SweepOutcome& outcome, const SweepStore& store,
                         const std::string& format, Fidelity fidelity = Fidelity::kCalibrated);

/// The contents of a store as the same JSON, for the sweep it was last used for; failed points are left out.
nlohmann::ordered_json stored_sweep_json(const std::string& path);

}  // namespace roofcast::reports
