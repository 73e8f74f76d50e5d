#include "hw/kernels/elementwise.h"

#include <doctest/doctest.h>

#include "hw/efficiency.h"
#include "hw/gpu_spec.h"

using namespace roofcast;

namespace {

GpuSpec round_gpu() {
  GpuSpec gpu;
  gpu.sm_count = 100;
  gpu.memory_bandwidth = 2000.0 * kGigabytePerSecond;
  gpu.l2_cache = Bytes{50e6};
  gpu.node.pcie_bandwidth = 50.0 * kGigabytePerSecond;
  gpu.dense[static_cast<std::size_t>(Dtype::kFp32)] = 50.0 * kTeraflopPerSecond;
  return gpu;
}

Efficiency with(const ElementwiseParameters& p) {
  Efficiency efficiency;
  efficiency.put(elementwise_kernel(), Dtype::kBf16, {.value = p, .record = {}});
  return efficiency;
}

}  // namespace

TEST_CASE("elementwise: ideal streams, calibrated launches and streams") {
  const GpuSpec gpu = round_gpu();
  const Efficiency half = with(
      {.launch_us = 3, .bandwidth_fraction = 0.5, .flops_fraction = 0.5, .host_copy_us = 8, .host_copy_fraction = 0.5});
  // 400 MB at 2000 GB/s = 200 us; at half of it, after two launches of 3 us: 406 us
  CHECK(elementwise(Bytes{400e6}, Flops{}, 2, {.gpu = &gpu, .fidelity = Fidelity::kIdeal}).time.in(kMicrosecond) ==
        doctest::Approx(200.0));
  CHECK(elementwise(Bytes{400e6}, Flops{}, 2, {.gpu = &gpu, .efficiency = &half}).time.in(kMicrosecond) ==
        doctest::Approx(406.0));
  // 20 GFLOP at half of 50 TFLOP/s: 800 us
  CHECK(elementwise(Bytes{4e6}, Flops{20e9}, 1, {.gpu = &gpu, .efficiency = &half}).time.in(kMicrosecond) ==
        doctest::Approx(803.0));
}

TEST_CASE("elementwise: what fits in L2 comes from there, 48 GB/s an SM") {
  const GpuSpec gpu = round_gpu();
  const Efficiency half = with(
      {.launch_us = 0, .bandwidth_fraction = 0.5, .flops_fraction = 0.5, .host_copy_us = 0, .host_copy_fraction = 1});
  CHECK(elementwise(Bytes{24e6}, Flops{}, 1, {.gpu = &gpu, .efficiency = &half}).time.in(kMicrosecond) ==
        doctest::Approx(5.0));  // 4800 GB/s
  CHECK(elementwise(Bytes{80e6}, Flops{}, 1, {.gpu = &gpu, .efficiency = &half}).time.in(kMicrosecond) ==
        doctest::Approx(80.0));  // 1000 GB/s
}

TEST_CASE("elementwise: a kernel that moves nothing still costs its launch") {
  const GpuSpec gpu = round_gpu();
  const Efficiency priors;
  const Cost cost = elementwise(Bytes{}, Flops{}, 3, {.gpu = &gpu, .efficiency = &priors});
  CHECK(cost.time.in(kMicrosecond) == doctest::Approx(3 * ElementwiseParameters{}.launch_us));
  CHECK(cost.bound == Bound::kLatency);
}

TEST_CASE("elementwise: reads that wait for one another set the pace where they take longer than the bytes") {
  const GpuSpec gpu = round_gpu();
  const Efficiency priors;
  const Machine machine{.gpu = &gpu, .efficiency = &priors};
  const Bytes large{1e9};  // 588 us
  const double launch = ElementwiseParameters{}.launch_us, read = ElementwiseParameters{}.chained_read_us;
  CHECK(elementwise(Bytes(1e6), Flops(0), 1, machine, 400).time.in(kMicrosecond) ==
        doctest::Approx(launch + 400 * read));
  CHECK(elementwise(large, Flops(0), 1, machine, 400).time == elementwise(large, Flops(0), 1, machine).time);
}

TEST_CASE("elementwise: copies to the host go over PCIe") {
  const GpuSpec gpu = round_gpu();
  const Efficiency half = with(
      {.launch_us = 0, .bandwidth_fraction = 0.5, .flops_fraction = 0.5, .host_copy_us = 8, .host_copy_fraction = 0.5});
  CHECK(host_copy(Bytes{50e6}, {.gpu = &gpu, .fidelity = Fidelity::kIdeal}).time.in(kMicrosecond) ==
        doctest::Approx(1000.0));
  CHECK(host_copy(Bytes{50e6}, {.gpu = &gpu, .efficiency = &half}).time.in(kMicrosecond) == doctest::Approx(2008.0));
}
