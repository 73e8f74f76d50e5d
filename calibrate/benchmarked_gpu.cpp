#include "calibrate/operators.h"

#include "base/text.h"
#include "hw/kernel_rules.h"

namespace roofcast::calibrate {

BySet nothing_measured() {
  BySet all;
  for (const std::string& kernels : kernel_sets()) all.emplace(kernels, Efficiency(kernels));
  return all;
}

const Efficiency& BenchmarkedGpu::of(std::string_view kernels) const {
  const auto found = by_set.find(kernels);
  if (found == by_set.end())
    throw ConfigError(SourceLocation{"kernels", 0, 0},
                      unknown_name("set of kernels", std::string(kernels), kernel_sets()));
  return found->second;
}

BenchmarkedGpu load_benchmarked_gpu(const ConfigTree& tree, Fidelity fidelity) {
  BenchmarkedGpu gpu;
  gpu.fidelity = fidelity;
  for (const std::string& kernels : kernel_sets()) {
    CalibratedGpu one = load_gpu(tree, kernels);
    gpu.spec = std::move(one.spec);
    gpu.by_set.insert_or_assign(kernels, std::move(one.efficiency));
  }
  return gpu;
}

}  // namespace roofcast::calibrate
