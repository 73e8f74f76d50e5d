#pragma once
#include "sim/plan/search/capacity_search.h"

namespace roofcast {

/// Suggestions for a plan without an answer: the load that its GPUs can carry, a larger fleet that would do, and limits
/// that could be met one at a time.
Advice advice_for(const PlanResult& result, const PlanSpec& plan, const SearchOptions& options);

/// "4 x h100-sxm, tp 2 x 2, fp8, fp8 KV, vllm".
std::string in_words(const PlannedDeployment& planned);

}  // namespace roofcast
