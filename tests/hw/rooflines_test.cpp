#include "hw/rooflines.h"

#include <doctest/doctest.h>

#include "base/config_library.h"

using namespace roofcast;

namespace {

/// 100 SMs at 1 GHz, 1 TB/s, 100 TFLOP/s in 16 bit.
GpuSpec plain() {
  GpuSpec gpu;
  gpu.name = "plain";
  gpu.sm_count = 100;
  gpu.boost_clock = PerSecond(1e9);
  gpu.memory_bandwidth = BytesPerSecond(1e12);
  gpu.dense[static_cast<std::size_t>(Dtype::kBf16)] = FlopsPerSecond(100e12);
  return gpu;
}

Cost ideal(double flops, double bytes) {
  const GpuSpec gpu = plain();
  return roofline(Flops(flops), Bytes(bytes), gpu.peak(Dtype::kBf16), gpu.memory_bandwidth);
}

double microseconds(double flops, double bytes, Dtype weights, const RooflineBackend& backend) {
  return roofline_cost(ideal(flops, bytes), 1.0, weights, plain(), backend).time.in(kMicrosecond);
}

}  // namespace

TEST_CASE("rooflines: the slowest of four roofs, and an operator's own time") {
  RooflineBackend backend;
  backend.operator_time = Seconds(10e-6);
  backend.wide[2] = {.memory = 0.8, .compute = 0.5, .bytes_per_cycle = 6.0, .flops_per_cycle = 400.0};
  // 8 MB at 0.8 of 1 TB/s take 10 us; 100 SMs that draw 6 B a cycle, 600 GB/s, take 13.33 us: the larger
  CHECK(microseconds(0, 8e6, Dtype::kInt4, backend) == doctest::Approx(10 + 8e6 / 0.6e12 * 1e6));
  // without that limit
  backend.wide[2].bytes_per_cycle = 0;
  CHECK(microseconds(0, 8e6, Dtype::kInt4, backend) == doctest::Approx(10 + 10));
  // 8 GFLOP at half of 100 TFLOP/s take 160 us; 100 SMs of 400 FLOP a cycle, 40 TFLOP/s, take 200 us
  CHECK(microseconds(8e9, 0, Dtype::kInt4, backend) == doctest::Approx(10 + 200));
  // Weights of 16 bit have shares of their own: 0.65 of both
  CHECK(microseconds(8e9, 0, Dtype::kBf16, backend) == doctest::Approx(10 + 80 / 0.65));
}

TEST_CASE("rooflines: more work, more bytes, or less of any share is never faster") {
  for (const char* name : {"llama-cpp", "mlx", "exllama"}) {
    const auto rooflines = load_rooflines(name, {});
    for (const RooflineBackend& backend : rooflines->backends) {
      CAPTURE(name);
      CAPTURE(backend.name);
      CHECK_FALSE(backend.source.empty());
      for (const Dtype weights : {Dtype::kBf16, Dtype::kInt8, Dtype::kInt4}) {
        double before = 0;
        for (double scale = 1; scale < 1e6; scale *= 3) {
          const double time = microseconds(1e6 * scale, 1e4 * scale, weights, backend);
          CHECK(time >= before);
          CHECK(time >= ideal(1e6 * scale, 1e4 * scale).time.in(kMicrosecond));
          before = time;
        }
      }
    }
  }
}

TEST_CASE("rooflines: a library without a backend for a processor is priced as any other") {
  const auto llama = load_rooflines("llama-cpp", {});
  CHECK(llama->on(Architecture::kApple).name == "metal");
  CHECK(llama->on(Architecture::kAda).name == "cuda");
  CHECK(llama->on(Architecture::kCdna4).name == "hip");
  CHECK(&llama->on(Architecture::kGeneric) == &assumed_roofline());
  CHECK_THROWS_AS(load_rooflines("llama-cp", {}), ConfigError);
}
