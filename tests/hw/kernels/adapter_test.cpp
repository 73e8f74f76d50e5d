#include "hw/kernels/adapter.h"

#include <doctest/doctest.h>

#include "hw/efficiency.h"
#include "hw/gpu_spec.h"

using namespace roofcast;

namespace {

GpuSpec round_gpu() {
  GpuSpec gpu;
  gpu.memory_bandwidth = 2000.0 * kGigabytePerSecond;
  gpu.dense[static_cast<std::size_t>(Dtype::kBf16)] = 1000.0 * kTeraflopPerSecond;
  return gpu;
}

}  // namespace

TEST_CASE("adapters: matrices of each adapter once, activations of each token") {
  const GpuSpec gpu = round_gpu();
  const AdapterShape qkv{.tokens = 64, .adapters = 8, .rank = 16, .k = 4096, .n = 6144, .slices = 3};
  const Cost cost = adapter_product(qkv, {.gpu = &gpu, .fidelity = Fidelity::kIdeal});
  // 16 (3 4096 + 6144) = 294 912 weights an adapter; 2 x 64 of these FLOP; 2 x 8 of these B
  // and 64 (2 4096 + 8 3 16 + 4 6144) = 64 x 33 152 B of activations: 6 840 320 B at 2000 GB/s = 3.42 us
  CHECK(cost.flops.base() == doctest::Approx(37748736.0));
  CHECK(cost.bytes.base() == doctest::Approx(4718592.0 + 2121728.0));
  CHECK(cost.time.in(kMicrosecond) == doctest::Approx(3.42016));
}

TEST_CASE("adapters: small batches take what two kernels take, large ones stream") {
  const GpuSpec gpu = round_gpu();
  const Efficiency none;
  const Machine machine{.gpu = &gpu, .efficiency = &none};
  AdapterShape shape{.tokens = 1, .adapters = 1, .rank = 16, .k = 4096, .n = 4096};
  CHECK(adapter_product(shape, machine).time.in(kMicrosecond) == doctest::Approx(20.0));
  CHECK(adapter_product(shape, machine).bound == Bound::kLatency);
  shape.tokens = 65536;  // 65 536 (8192 + 128 + 16 384) B = 1.62 GB at 85 % of 2 TB/s, two launches of 2 us
  const double bytes = 65536.0 * (8192 + 128 + 16384) + 2.0 * 16 * 8192;
  CHECK(adapter_product(shape, machine).time.base() == doctest::Approx(bytes / 1.7e12 + 4e-6));
  shape.adapters = 64;  // other adapters' matrices beside: never faster
  CHECK(adapter_product(shape, machine).time.base() > bytes / 1.7e12 + 4e-6);
}
