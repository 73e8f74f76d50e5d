#pragma once
#include <string>

namespace roofcast {

/// Where the price of a deployment's GPUs comes from.
struct PriceQuote {
  std::string tier;  ///< on_demand, reserved_1y, reserved_3y, spot, owned; given: the user's own; none
  std::string provider, region, date, source;
  int host = 1;  ///< GPUs that are paid for together
};

}  // namespace roofcast
