#pragma once
// How many tokens the experts of one GPU get: the input of every cost of a mixture of experts.

#include <array>
#include <cstddef>

#include "hw/kernels/moe.h"

namespace roofcast {

/// Tile heights with a tile count: 8, 16, ... 256 rows.
inline constexpr std::size_t kTileHeights = 6;
constexpr double tile_rows(std::size_t index) { return static_cast<double>(8u << index); }

/// The load of the most loaded of `ep` ranks, averaged over draws of the routing law.
struct ExpertLoad {
  double assignments = 0;                    ///< (token, expert) pairs on this rank
  double hits = 0;                           ///< experts of this rank with at least one token
  std::array<double, kTileHeights> tiles{};  ///< sum over these experts of ceil(tokens of the expert / tile rows)
};

/// The load of one rank for T tokens that choose k of E experts. On a single rank `hits` is min(E, kT) for balanced
/// routing, E (1 - (1 - k/E)^T) for uniform routing, and less for a power law. A power law is drawn at four token
/// counts per octave and interpolated between them. Results are cached, thread-safe, and the same on every machine.
ExpertLoad expert_load(double tokens, double top_k, double experts, double ep, const Routing& routing);

}  // namespace roofcast
