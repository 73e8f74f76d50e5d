#pragma once
// What a GPU reached, beside its datasheet: from measurements, or from fitted constants.

#include <optional>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "calibrate/record.h"
#include "hw/gpu_spec.h"

namespace roofcast::calibrate {

struct Ceiling {
  std::string name;                   ///< "memory, read", "matrix units bf16 (wgmma)"
  double value = 0;                   ///< in `unit`
  std::string unit;                   ///< "TB/s", "TFLOP/s", "us"
  double relative_error = 0;          ///< standard error over the value; 0 = unknown
  std::optional<double> datasheet{};  ///< in `unit`, where there is one
  std::string from;                   ///< the point, or the constant, that it is read off
};

/// Best of each kind: bandwidth of memory (working sets of at least four L2) and of L2 (at most half of it), matrix
/// rates from registers and by whole products, PCIe, NCCL; least cost of launches. `gpu` may be null.
std::vector<Ceiling> ceilings_of(const RecordFile& file, const GpuSpec* gpu);

/// One block of constants in a GPU file.
struct ShownBlock {
  std::string family, block;  ///< "vllm", or "shared" by all families; "cublaslt.bf16"
  struct Constant {
    std::string name;
    double value = 0;
    std::optional<double> standard_error;  ///< none: held fixed, or not stated
    bool stated = true;                    ///< else it is as in the block beneath
  };
  std::vector<Constant> constants;
  std::string standing{}, source{};
  int rows = 0;
  double mape = 0.0, discrepancy = 0.0;
};

/// All blocks in force on a GPU: its own, inline or in the files it names, and those that it takes from another.
std::vector<ShownBlock> blocks_of(const ConfigTree& gpu);
/// Fractions of a peak among them, times the peak.
std::vector<Ceiling> ceilings_of(const std::vector<ShownBlock>& blocks, const GpuSpec& gpu);

}  // namespace roofcast::calibrate
