#pragma once
// The constants of routed expert kernels. A kernel combines its constants from these parts.

#include <array>
#include <span>

#include "hw/parameters.h"

namespace roofcast {

/// The constants that every expert kernel has.
struct ExpertsParameters {
  double launch_us = 20.0;
  double launch_us_per_expert = 0.02;
  double ns_per_assignment = 0.5;
  double bandwidth_fraction = 0.88;
  double compute_fraction = 0.9;
  double activation_passes = 1.0;
  double tile_overhead_rows = 15.0;
  double tile_us = 1.2;
  double expert_map_us = 0.0;
  double router_us_per_choice = 0.0;
  static std::span<const Parameter<ExpertsParameters>> fields();  ///< for a kernel without further constants
};
/// The first fields of every kernel. `kFixed`: the launch is fixed, and no fit changes it.
template <class P, bool kFixed = false>
inline constexpr std::array<Parameter<P>, 10> kExpertsFields{{
    {"launch_us", &P::launch_us, 0.0, 120.0, Transfer::kCycles, "launches, routing and sorting of one layer", kFixed},
    {"launch_us_per_expert", &P::launch_us_per_expert, 0.0, 0.5, Transfer::kCycles,
     "pointers and offsets of each local expert"},
    {"ns_per_assignment", &P::ns_per_assignment, 0.0, 20.0, Transfer::kCycles,
     "sorting and permuting one (token, expert) pair"},
    {"bandwidth_fraction", &P::bandwidth_fraction, 0.04, 1.0, Transfer::kMemoryShare,
     "share of the memory bandwidth that the products reach"},
    {"compute_fraction", &P::compute_fraction, 0.03, 1.0, Transfer::kKept,
     "share of the peak that infinitely long tiles reach"},
    {"activation_passes", &P::activation_passes, 0.2, 6.0, Transfer::kKept,
     "number of times the activations' traffic goes through memory"},
    {"tile_overhead_rows", &P::tile_overhead_rows, 0.0, 200.0, Transfer::kKept, "overhead of every tile, in rows"},
    {"tile_us", &P::tile_us, 0.0, 20.0, Transfer::kCycles, "prologue and epilogue of a tile"},
    {"expert_map_us", &P::expert_map_us, 0.0, 60.0, Transfer::kCycles,
     "mapping experts to ranks, only with expert parallelism"},
    {"router_us_per_choice", &P::router_us_per_choice, 0.0, 6.0, Transfer::kCycles,
     "the router, per chosen expert of a token"},
}};
inline std::span<const Parameter<ExpertsParameters>> ExpertsParameters::fields() {
  return kExpertsFields<ExpertsParameters>;
}
/// For kernels whose first GEMM gathers its rows from the tokens, and reads rows of odd lengths element by element.
struct GatheredRows {
  double gather_loss = 0.0;
  double unaligned_slowdown = 1.0;
};
/// For kernels with tiles of up to 256 rows.
struct EmptyRows {
  double empty_row_loss = 0.0;
};
struct TallTiles : ExpertsParameters, EmptyRows {
  static std::span<const Parameter<TallTiles>> fields();
};
inline std::span<const Parameter<TallTiles>> TallTiles::fields() {
  static constexpr std::array<Parameter<TallTiles>, 1> kEmptyRows{{
      {"empty_row_loss", &TallTiles::empty_row_loss, 0.0, 2.0, Transfer::kKept,
       "relative extra time of a tile's empty rows over full ones (tiles of up to 256 rows)"},
  }};
  static constexpr auto kFields = joined(kExpertsFields<TallTiles>, kEmptyRows);
  return kFields;
}
/// For kernels whose tiles read weights in rows of 64 bytes.
struct ShortRows {
  double short_row_bandwidth = 1.0;
  double memory_step_us = 0.0;
};

/// The inputs of the equations. Constants that a kernel lacks have their defaults, which have no effect.
struct MoeParameters : ExpertsParameters, GatheredRows, EmptyRows, ShortRows {};

}  // namespace roofcast
