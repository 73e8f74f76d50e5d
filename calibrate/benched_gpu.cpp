#include "calibrate/operators.h"

namespace roofcast {

BenchedGpu load_benched_gpu(const ConfigTree& tree, Fidelity fidelity) {
  CalibratedGpu trtllm = load_gpu(tree, KernelFamily::kTrtllm);
  CalibratedGpu vllm = load_gpu(tree, KernelFamily::kVllm);
  CalibratedGpu sglang = load_gpu(tree, KernelFamily::kSglang);
  return {std::move(trtllm.spec), std::move(trtllm.efficiency), std::move(vllm.efficiency),
          std::move(sglang.efficiency), fidelity};
}

}  // namespace roofcast
