#pragma once
#include <cstddef>

namespace roofcast {

/// Where a call is in a layer with routed experts, for engines that overlap dispatch and combine with other work.
enum class Stage {
  kOutside,   ///< in a layer without routed experts, or in no layer
  kEntry,     ///< before the attention kernel: norms, projections
  kCore,      ///< after it: output projection, router; attention itself is priced by contexts
  kShared,    ///< shared experts, or a dense block next to the routed ones
  kDispatch,  ///< tokens are sent to the experts
  kExperts,
  kCombine,  ///< outputs are sent back
};
inline constexpr std::size_t kStages = 7;

}  // namespace roofcast
