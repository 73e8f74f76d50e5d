#include "calibrate/operators.h"

namespace roofcast {

BySet nothing_measured() {
  BySet all;
  for (const std::string& kernels : kernel_sets()) all.emplace(kernels, Efficiency(kernels));
  return all;
}

BenchedGpu load_benched_gpu(const ConfigTree& tree, Fidelity fidelity) {
  BenchedGpu gpu;
  gpu.fidelity = fidelity;
  for (const std::string& kernels : kernel_sets()) {
    CalibratedGpu one = load_gpu(tree, kernels);
    gpu.spec = std::move(one.spec);
    gpu.by_set.insert_or_assign(kernels, std::move(one.efficiency));
  }
  return gpu;
}

}  // namespace roofcast
