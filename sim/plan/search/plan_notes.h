#pragma once
// Settings of a plan file that have no effect.

#include "sim/plan/search/plan_answer.h"

namespace roofcast {

/// Adds notes to an answer with a winner: keys that the search determines itself or ignores, and settings without
/// effect on the winner (sim/plan/idle_settings.h).
void add_plan_notes(const ConfigTree& plan, PlanAnswer& answer);

}  // namespace roofcast
