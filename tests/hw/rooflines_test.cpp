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

double microseconds(double flops, double bytes, const WeightWork& weights, const RooflineBackend& backend) {
  return roofline_cost(ideal(flops, bytes), 1.0, weights, plain(), backend).time.in(kMicrosecond);
}

}  // namespace

TEST_CASE("rooflines: the slowest of the roofs, and an operator's own time") {
  RooflineBackend backend;
  backend.operator_time = Seconds(10e-6);
  backend.wide[2] = {.memory = 0.8, .compute = 0.5};
  const WeightWork none{Dtype::kInt4, 0, 1};
  // 8 MB at 0.8 of 1 TB/s take 10 us
  CHECK(microseconds(0, 8e6, none, backend) == doctest::Approx(10 + 10));
  // 8 GFLOP at half of 100 TFLOP/s take 160 us; 100 SMs of 400 FLOP a cycle, 40 TFLOP/s, take 200 us
  CHECK(microseconds(8e9, 0, none, backend) == doctest::Approx(10 + 160));
  backend.wide[2].flops_per_cycle = 400;
  CHECK(microseconds(8e9, 0, none, backend) == doctest::Approx(10 + 200));
  // Weights of 16 bit have shares of their own: 0.65 of both
  CHECK(microseconds(8e9, 0, {}, backend) == doctest::Approx(10 + 80 / 0.65));
}

TEST_CASE("rooflines: weights below 16 bits are unpacked, then multiplied with each token") {
  RooflineBackend backend;
  backend.operator_time = Seconds(0);
  backend.few_tokens = 8, backend.pass_tokens = 512;
  backend.few = {.values_per_cycle = 10, .flops_per_cycle = 100};
  backend.many = {.values_per_cycle = 5, .flops_per_cycle = 500};
  // 16 M weights; 100 SMs at 1 GHz unpack 1e12 a second, multiply with 1e13 FLOP/s (few) or 5e13 (many)
  const auto time = [&](Dtype format, double tokens) {
    return microseconds(2 * 16e6 * tokens, 8e6, {format, 16e6, tokens}, backend);
  };
  CHECK(time(Dtype::kInt4, 1) == doctest::Approx(16 + 3.2));
  CHECK(time(Dtype::kInt8, 8) == doctest::Approx(16 + 8 * 3.2));
  CHECK(time(Dtype::kInt4, 9) == doctest::Approx(16 + 8 * 3.2));  // as with 8, not 32 + 9 x 0.64
  CHECK(time(Dtype::kInt4, 100) == doctest::Approx(32 + 100 * 0.64));
  CHECK(time(Dtype::kInt4, 1024) == doctest::Approx(2 * 32 + 1024 * 0.64));  // twice 512 tokens
  // 16 bit: one token at the rate of memory, more at the rate at which the SMs read
  CHECK(time(Dtype::kBf16, 1) == doctest::Approx(8 / 0.65));
  CHECK(time(Dtype::kBf16, 2) == doctest::Approx(32));
  double before = 0;
  for (double tokens = 1; tokens < 3000; tokens += 1) {
    CHECK(time(Dtype::kInt4, tokens) >= before);
    before = time(Dtype::kInt4, tokens);
  }
}

TEST_CASE("rooflines: more work or more bytes is never faster") {
  for (const char* name : {"llama-cpp", "mlx", "exllama"}) {
    const auto rooflines = load_rooflines(name, {});
    for (const RooflineBackend& backend : rooflines->backends) {
      CAPTURE(name);
      CAPTURE(backend.name);
      CHECK_FALSE(backend.source.empty());
      for (const Dtype weights : {Dtype::kBf16, Dtype::kInt8, Dtype::kInt4}) {
        for (const double tokens : {1.0, 8.0, 25.0, 600.0}) {
          double before = 0;
          for (double scale = 1; scale < 1e6; scale *= 3) {
            const double flops = 4e4 * tokens * scale;
            const double time = microseconds(flops, 1e4 * scale, {weights, 2e4 * scale, tokens}, backend);
            CHECK(time >= before);
            CHECK(time >= ideal(flops, 1e4 * scale).time.in(kMicrosecond));
            before = time;
          }
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
