#pragma once
#include "sim/plan/search/capacity_search.h"

namespace roofcast {

/// Searches around a plan without an answer: for the load that its GPUs carry, for a larger fleet, and for each limit
/// without the others' help.
Advice advice_for(const PlanResult& result, const PlanSpec& plan, const SearchOptions& options);

/// "4 x h100-sxm, tp 2 x 2, fp8, fp8 KV, vllm".
std::string in_words(const PlannedDeployment& planned);

}  // namespace roofcast
