#pragma once
// What one machine delivers relative to others of its kind: four shares that all kernels have in common, from kernels
// with known constants.

#include <vector>

#include "base/config_node.h"
#include "calibrate/fit.h"
#include "calibrate/operators.h"
#include "calibrate/record_tables.h"

namespace roofcast::calibrate {

/// The shares of `gpu.spec` for which the current constants reproduce the measured times of libraries: cuBLASLt's GEMMs
/// (memory, clock and, under load, power) and NCCL's collectives (links). Our own kernels are not used, because no
/// constants say how long they take elsewhere. A share within two standard errors of 1, or within the mean residual of
/// the constants, is set to 1. Without rows all shares are 1 and `fields` is empty.
FitResult<MachineShares> fit_machine(const std::vector<MeasuredTable>& tables, const BenchmarkedGpu& gpu,
                                     const FitOptions& options);

/// The GPU with these constants transferred to a machine with these `shares`.
BenchmarkedGpu on_machine(const BenchmarkedGpu& gpu, const MachineShares& shares);

/// The GPU file with `shares`, times its previous ones, in its section `machine`. The constants of a shipped GPU are
/// then transferred by its name.
ConfigTree with_machine(ConfigTree gpu, const MachineShares& shares, const std::string& source);

}  // namespace roofcast::calibrate
