#pragma once
// How many random scenarios a test tries.

#include <algorithm>
#include <cstdlib>

namespace roofcast {

/// `quick` of them, or as many as the environment variable ROOFCAST_SCENARIOS says where that is more.
inline int scenarios(int quick) {
  const char* wanted = std::getenv("ROOFCAST_SCENARIOS");
  return wanted == nullptr ? quick : std::max(quick, std::atoi(wanted));
}

}  // namespace roofcast
