#pragma once
// The constants of GEMM kernels, in lists from which a kernel combines those that it has.

#include <array>

#include "hw/parameters.h"

namespace roofcast {

/// Constants of a GEMM kernel. A kernel without one of them has its default. The defaults are the priors for new GPUs
/// similar to Hopper (docs/equations-gemm.md#constants-by-rule).
struct GemmParameters {
  double compute_efficiency = 0.84;    ///< rate of the matrix units over the datasheet's, before throttling
  double sustained_clock = 0.9;        ///< clock under the power limit over the unthrottled clock
  double bandwidth_efficiency = 0.82;  ///< DRAM
  double l2_bandwidth_ratio = 1.1;     ///< rate of L2-resident traffic over the DRAM datasheet's
  double l2_usable = 0.45;             ///< share of L2 in which data are found again
  double tile_intensity = 50;    ///< tm tn / (tm + tn), in elements, from which on L2 no longer limits the matrix units
  double launch_us = 2.0;        ///< launch and drain of the kernel
  double wave_us = 0.8;          ///< prologue and epilogue of one wave of tiles
  double epilogue_us = 0.1;      ///< writing one 128 x 128 tile; proportional to the area for smaller ones
  double k_step_us = 0.08;       ///< latency of one k-step
  double ramp_k_steps = 0.5;     ///< k-steps after which wave_us is paid in full
  double lone_block_rate = 0.8;  ///< rate of one smaller tile alone on an SM, over that of two
  double split_k_us = 2.2;       ///< the reduction kernel after a split along k
  double odd_rows = 1.0;         ///< rate of the matrix units if m is not a multiple of 4
  double gemv_us = 0.0;          ///< saved by the special kernel for one row; negative: lost beside it in a benchmark
};

/// The constants of the tile loop, which every kernel has.
template <class P>
inline constexpr std::array<Parameter<P>, 10> kTileLoopFields{{
    {"compute_efficiency", &P::compute_efficiency, 0.03, 1.0, Transfer::kKept,
     "matrix-unit rate over the datasheet's, clocks not throttled"},
    {"sustained_clock", &P::sustained_clock, 0.7, 1.0, Transfer::kKept,
     "clock under the power limit over the cool one"},
    {"bandwidth_efficiency", &P::bandwidth_efficiency, 0.4, 1.0, Transfer::kMemoryShare,
     "DRAM bandwidth over the datasheet's"},
    {"l2_bandwidth_ratio", &P::l2_bandwidth_ratio, 0.4, 10.0, Transfer::kL2OverMemory,
     "rate of L2-resident traffic over the DRAM datasheet's"},
    {"l2_usable", &P::l2_usable, 0.05, 1.0, Transfer::kKept, "part of L2 in which data are found again"},
    {"tile_intensity", &P::tile_intensity, 10.0, 200.0, Transfer::kTileIntensity,
     "tm tn / (tm + tn) at which L2 no longer starves the matrix units"},
    {"launch_us", &P::launch_us, 0.0, 20.0, Transfer::kCycles, "launch and drain of the kernel"},
    {"wave_us", &P::wave_us, 0.0, 10.0, Transfer::kCycles, "prologue and epilogue of one wave of tiles"},
    {"epilogue_us", &P::epilogue_us, 0.0, 5.0, Transfer::kCycles, "writing out one 128 x 128 tile"},
    {"k_step_us", &P::k_step_us, 0.0, 2.0, Transfer::kCycles, "latency of one k-step of 128 bytes"},
}};
/// For kernels with mma.sync, which run two of their smaller tiles per SM.
template <class P>
inline constexpr std::array<Parameter<P>, 2> kPairedTileFields{{
    {"ramp_k_steps", &P::ramp_k_steps, 0.5, 50.0, Transfer::kKept, "k-steps before wave_us is paid in full"},
    {"lone_block_rate", &P::lone_block_rate, 0.5, 1.0, Transfer::kKept,
     "matrix-unit rate of one smaller tile alone on an SM, over that of two"},
}};
/// For libraries that split k among thread blocks.
template <class P>
inline constexpr std::array<Parameter<P>, 1> kSplitField{{
    {"split_k_us", &P::split_k_us, 0.0, 10.0, Transfer::kCycles, "the reduction after a split along k"},
}};
/// For kernels with scales per row or block.
template <class P>
inline constexpr std::array<Parameter<P>, 1> kOddRowsField{{
    {"odd_rows", &P::odd_rows, 0.5, 1.0, Transfer::kKept, "matrix-unit rate where m is not a multiple of 4"},
}};
/// For libraries with a special kernel for one row.
template <class P>
inline constexpr std::array<Parameter<P>, 1> kOneRowField{{
    {"gemv_us", &P::gemv_us, -20.0, 5.0, Transfer::kCycles, "saved by the kernel for one row"},
}};

}  // namespace roofcast
