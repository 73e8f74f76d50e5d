#pragma once
#include <cstddef>

namespace roofcast {

/// Where in a layer with routed experts a call is, for engines that run the exchange of experts beside other work.
enum class Stage {
  kOutside,   ///< in another layer, or in none
  kEntry,     ///< before the attention kernel: norms, projections
  kCore,      ///< after it: output projection, router; attention itself is priced by contexts
  kShared,    ///< shared experts, or a dense block beside the routed ones
  kDispatch,  ///< tokens go to the experts
  kExperts,
  kCombine,  ///< and come back
};
inline constexpr std::size_t kStages = 7;

}  // namespace roofcast
