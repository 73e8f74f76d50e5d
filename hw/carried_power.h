#pragma once
// How a board's power limit changes constants transferred from another GPU.

#include "hw/carry_over.h"

namespace roofcast {

/// Watts per operation per second, new GPU over old, in the format of a block. Split into two factors.
struct CarriedPower {
  double board = 1.0;  ///< the ratio due to the board's power; the clock of every kernel follows it
  double peak = 1.0;   ///< the rest, due to a higher peak on the same power; affects only the matrix units; at most 1
};
/// board x peak is the whole ratio. More power or a higher peak never makes a GPU slower.
CarriedPower carried_power(const CarryOverCase& to);

}  // namespace roofcast
