#pragma once
// What constants measured on one GPU are worth on another.

#include "hw/efficiency.h"
#include "hw/gpu_spec.h"

namespace roofcast {

/// How far a GPU stands from the one whose constants it takes.
struct CarryOver {
  bool another_generation = false;  ///< than the GPU that was measured
  double matrix_limit = 1.0;        ///< share of the dense peaks that the board's power sustains
  bool memory_ecc = true;           ///< may cost bandwidth, where the memory is of another kind
};

/// Fractions of a peak stay, and apply to the new peaks, up to `matrix_limit` for those of matrix units. What a kernel
/// pays in time on the GPU was measured in cycles: it goes with the ratio of the boost clocks where both are known.
/// An SM draws as many bytes a cycle from L2 as before: rates of L2 go with SMs x clock, whatever the memory does, and
/// the tile that just feeds the matrix units goes with operations a cycle and SM within an architecture and where this
/// one has mma.sync alone. What a kernel loses of the memory's bandwidth it loses on the SMs, matrix units under load
/// follow the watts of the board an operation, tiles of experts the architecture. Exponentials go with the special
/// function units, times of the host with its launches; the network stays. What the constants leave unexplained grows
/// by what blind transfers between measured GPUs show, as independent of it. Source and what it is worth:
/// docs/equations.md#gpus-without-measurements.
Efficiency carry_over(Efficiency measured, const GpuSpec& from, const GpuSpec& to, const CarryOver& how);

}  // namespace roofcast
