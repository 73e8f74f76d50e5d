#pragma once
// What a plan file says without effect on the plan.

#include "sim/plan/search/plan_answer.h"

namespace roofcast {

/// Adds to the notes of an answer with a winner what its plan says for nothing: keys that the search finds itself or
/// does not look at, and settings that change nothing in the winner (sim/plan/idle_settings.h).
void add_plan_notes(const ConfigTree& plan, PlanAnswer& answer);

}  // namespace roofcast
