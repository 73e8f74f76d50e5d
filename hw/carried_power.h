#pragma once
// What the watts of a board are to the constants that another GPU lends it.

#include "hw/carry_over.h"

namespace roofcast {

/// Watts an operation a second of the new GPU over the old, in the format of a block, in two parts.
struct CarriedPower {
  double board = 1.0;  ///< what the board lacks or adds: the clock of all that runs follows
  double peak = 1.0;   ///< what matrix units of a higher peak lack on the same board, theirs alone; at most 1
};
/// board x peak is the ratio. A board of more watts, and units of a higher peak, are each never to their own harm.
CarriedPower carried_power(const CarryOverCase& to);

}  // namespace roofcast
