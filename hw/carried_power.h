#pragma once
// How a board's watts change the constants that are carried over to it from another GPU.

#include "hw/carry_over.h"

namespace roofcast {

/// Watts per operation per second of the new GPU over the old, in the format of a block, in two parts.
struct CarriedPower {
  double board = 1.0;  ///< what the board lacks or adds: the clock of all that runs follows
  double peak = 1.0;   ///< what matrix units of a higher peak lack on the same board, theirs alone; at most 1
};
/// board x peak is the whole ratio. Neither more watts nor a higher peak ever makes a GPU slower.
CarriedPower carried_power(const CarryOverCase& to);

}  // namespace roofcast
