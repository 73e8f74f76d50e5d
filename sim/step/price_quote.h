#pragma once
#include <string>

#include "base/units.h"

namespace roofcast {

/// An offer for the GPUs of a deployment: its price and the size of its instances.
struct PriceQuote {
  std::string tier = {};  ///< on_demand, reserved_1y, reserved_3y, spot, owned; given: set by the user
  std::string provider = {}, region = {}, date = {}, source = {};
  bool checked = true;  ///< checked against the provider's price list, or a copy of it
  UsdPerHour per_gpu{};
  int host = 1;  ///< GPUs of one instance
  bool operator==(const PriceQuote&) const = default;
};

}  // namespace roofcast
