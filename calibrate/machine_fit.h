#pragma once
// What one machine gives of its kind: the four shares that all kernels have in common, from kernels that the constants
// in force know already.

#include <vector>

#include "base/config_node.h"
#include "calibrate/fit.h"
#include "calibrate/operators.h"
#include "calibrate/record_tables.h"

namespace roofcast::calibrate {

/// Shares of `gpu.spec` under which the constants in force price what libraries took here: cuBLASLt's products (memory,
/// clock and, under load, power) and NCCL's collectives (links). Kernels of our own have no part in it: no constants
/// say what they take elsewhere. A share that lies within two standard errors of 1, or within what the constants leave
/// unexplained on average, is 1. Without rows all are 1 and `fields` is empty.
FitResult<MachineShares> fit_machine(const std::vector<MeasuredTable>& tables, const BenchedGpu& gpu,
                                     const FitOptions& options);

/// The GPU with these constants carried over to a machine that gives `shares` of it.
BenchedGpu on_machine(const BenchedGpu& gpu, const MachineShares& shares);

/// The GPU file with `shares` in its section `machine`, times those that it had. The constants of a shipped GPU are
/// then carried over by its name.
ConfigTree with_machine(ConfigTree gpu, const MachineShares& shares, const std::string& source);

}  // namespace roofcast::calibrate
