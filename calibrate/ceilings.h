#pragma once
// What a GPU reached compared with its datasheet, from measurements or from fitted constants.

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
  std::optional<double> datasheet{};  ///< in `unit`, if there is one
  std::string from;                   ///< the point, or the constant, that the value is from
};

/// The best of each kind: bandwidth of memory (working sets of at least four times L2) and of L2 (at most half of it),
/// matrix rates from registers and in whole GEMMs, PCIe, NCCL, launch cost. `gpu` may be null.
std::vector<Ceiling> ceilings_of(const RecordFile& file, const GpuSpec* gpu);

/// One block of constants in a GPU file.
struct ShownBlock {
  std::string family, block;  ///< "vllm", or "shared" by all kernel sets; "cublaslt.bf16"
  struct Constant {
    std::string name;
    double value = 0;
    std::optional<double> standard_error;  ///< empty: the constant was fixed, or its error is unknown
    bool stated = true;                    ///< false: the value is inherited
  };
  std::vector<Constant> constants;
  std::string provenance{}, source{};
  int rows = 0;
  double mape = 0.0, discrepancy = 0.0;
};

/// All blocks that apply to a GPU: its own, inline or in files, and those transferred from another GPU.
std::vector<ShownBlock> blocks_of(const ConfigTree& gpu);
/// The constants among them that are a share of a peak, times that peak.
std::vector<Ceiling> ceilings_of(const std::vector<ShownBlock>& blocks, const GpuSpec& gpu);

}  // namespace roofcast::calibrate
