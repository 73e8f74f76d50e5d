#pragma once
// Which experts of one GPU get how many tokens: the input of every cost of a mixture of experts.

#include <array>
#include <cstddef>

#include "hw/kernels/moe.h"

namespace roofcast {

/// Tile heights whose counts are kept: 8, 16, ... 256 rows.
inline constexpr std::size_t kTileHeights = 6;
constexpr double tile_rows(std::size_t index) { return static_cast<double>(8u << index); }

/// The fullest of `ep` ranks, averaged over draws of the routing law.
struct ExpertLoad {
  double assignments = 0;                    ///< (token, expert) pairs that land on it
  double hits = 0;                           ///< its experts with at least one token
  std::array<double, kTileHeights> tiles{};  ///< sum over its experts of ceil(tokens of the expert / tile rows)
};

/// `hits` of one rank are min(E, kT) of E experts where tokens choose evenly, E (1 - (1 - k/E)^T) uniformly, and fewer
/// under a power law. Constant time after the first call near this (tokens, top_k, experts, ep, routing); safe from
/// many threads, and the same on every machine. A power law is drawn at four token counts an octave and interpolated
/// between them.
ExpertLoad expert_load(double tokens, double top_k, double experts, double ep, const Routing& routing);

}  // namespace roofcast
