#include "hw/kernels/elementwise.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "hw/efficiency.h"
#include "hw/gpu_spec.h"
#include "hw/kernels/l2.h"

namespace roofcast {
namespace {

const ElementwiseParameters& parameters_of(const Machine& machine) {
  static const ElementwiseParameters priors;
  const auto* fitted = efficiency_of(machine).find(elementwise_kernel(), Dtype::kBf16);
  return fitted ? fitted->value : priors;
}

}  // namespace

const KernelOf<ElementwiseParameters>& elementwise_kernel() {
  static const KernelOf<ElementwiseParameters> kernel(
      {"elementwise", "norms, activations, copies: all streaming operators", "equations-state.md"});
  return kernel;
}

std::span<const Parameter<ElementwiseParameters>> ElementwiseParameters::fields() {
  using P = ElementwiseParameters;
  using enum Transfer;
  static constexpr std::array<Parameter<P>, 6> fields{{
      {"launch_us", &P::launch_us, 0.0, 20.0, kCycles, "launch of a kernel"},
      {"bandwidth_fraction", &P::bandwidth_fraction, 0.1, 1.0, kMemoryShare, "share of the memory bandwidth"},
      {"flops_fraction", &P::flops_fraction, 0.02, 1.0, kKept, "share of the fp32 peak"},
      {"chained_read_us", &P::chained_read_us, 0.0, 5.0, kCycles,
       "a dependent read of a thread, with a reduction in its warp"},
      {"host_copy_us", &P::host_copy_us, 0.0, 200.0, kHost, "start of a copy over PCIe"},
      {"host_copy_fraction", &P::host_copy_fraction, 0.1, 1.0, kKept, "share of the PCIe bandwidth"},
  }};
  return fields;
}

/// time = launches x launch + max(bytes / rate, flops / fp32 rate). The rate is that of memory, or of L2 if the traffic
/// of a launch fits, because it was just written. Source: docs/equations-state.md.
Cost elementwise(Bytes bytes, Flops flops, double launches, const Machine& machine, double chain) {
  SIM_CHECK(bytes.base() >= 0.0 && flops.base() >= 0.0 && launches >= 0.0 && chain >= 0.0, "negative work");
  const GpuSpec& gpu = *machine.gpu;
  const FlopsPerSecond peak = gpu.peak(Dtype::kFp32);
  if (machine.fidelity == Fidelity::kIdeal) {
    Cost cost = roofline(peak.base() > 0.0 ? flops : Flops{}, bytes, peak, gpu.memory_bandwidth);
    cost.flops = flops;
    return cost;
  }
  const ElementwiseParameters& p = parameters_of(machine);
  const double rate =
      rate_with_l2(gpu, bytes / std::max(launches, 1.0), gpu.memory_bandwidth.base() * p.bandwidth_fraction);
  const double memory = std::max(bytes.base() / rate, chain * p.chained_read_us * 1e-6);
  const double compute = peak.base() > 0.0 ? flops.base() / (peak.base() * p.flops_fraction) : 0.0;
  const double fixed = launches * p.launch_us * 1e-6;
  const double longest = std::max({memory, compute, fixed});
  return {.time = Seconds{fixed + std::max(memory, compute)},
          .flops = flops,
          .bytes = bytes,
          .bound = longest == fixed     ? Bound::kLatency
                   : longest == compute ? Bound::kCompute
                                        : Bound::kMemory};
}

Cost host_copy(Bytes bytes, const Machine& machine) {
  const GpuSpec& gpu = *machine.gpu;
  SIM_CHECK(gpu.node.pcie_bandwidth.base() > 0.0, "a GPU without PCIe");
  Cost cost{.time = bytes / gpu.node.pcie_bandwidth, .flops = Flops{}, .bytes = bytes, .bound = Bound::kHost};
  if (machine.fidelity == Fidelity::kIdeal) return cost;
  const ElementwiseParameters& p = parameters_of(machine);
  cost.time = cost.time / p.host_copy_fraction + p.host_copy_us * kMicrosecond;
  return cost;
}

}  // namespace roofcast
