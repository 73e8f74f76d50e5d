#include "calibrate/rows/gemm_loop.h"

#include <doctest/doctest.h>

#include "calibrate/looped_kernel.h"

using namespace roofcast;
using namespace roofcast::calibrate;

namespace {

/// Round numbers: 128 SMs, 2048 TFLOP/s in 8 bit, 2 TB/s, 32 MiB of L2.
GpuSpec round_gpu() {
  GpuSpec gpu;
  gpu.architecture = Architecture::kHopper;
  gpu.sm_count = 128;
  gpu.memory_bandwidth = BytesPerSecond(2e12);
  gpu.l2_cache = Bytes(33554432);
  for (const Dtype dtype : {Dtype::kFp8, Dtype::kFp8Block})
    gpu.dense[static_cast<std::size_t>(dtype)] = FlopsPerSecond(2048e12);
  return gpu;
}

/// Nothing lost anywhere.
GemmParameters perfect() {
  GemmParameters p;
  p.compute_efficiency = p.sustained_clock = p.bandwidth_efficiency = p.l2_bandwidth_ratio = 1.0;
  p.tile_intensity = 0.0;
  p.launch_us = p.wave_us = p.epilogue_us = p.k_step_us = p.split_k_us = 0.0;
  return p;
}

GemmRow row_of(double m, double n, double k, Dtype format, Timing timing) {
  GemmRow row{.header = {}, .shape = {.m = m, .n = n, .k = k, .weights = format, .activations = format}};
  row.block = format;
  row.header.timing = timing;
  return row;
}

}  // namespace

TEST_CASE("gemm loop: quantization is timed by benchmarks, and not served") {
  const GpuSpec gpu = round_gpu();
  const auto timed = [&](double m, double k, const GemmLoopParameters& loop, Timing timing) {
    const GemmRow row = row_of(m, 128, k, Dtype::kFp8, timing);
    return gemm_row_time(row, cublaslt_fp8(), perfect(), loop, gpu, Maker::kTrtllm).in(kMicrosecond);
  };
  const GemmLoopParameters slow{.benchmark_us = 10.0, .quantization_row_us = 0.5, .quantization_step_us = 0.25};
  CHECK(timed(129, 4096, slow, Timing::kServed) == timed(129, 4096, {}, Timing::kServed));
  // 129 rows on 128 SMs: two rounds of 0.5 + 0.25 * 4096/2048 = 1 us each; launch 10 us
  CHECK(timed(129, 4096, slow, Timing::kBenchmark) - timed(129, 4096, slow, Timing::kServed) ==
        doctest::Approx(12.0).epsilon(0.05));
  // activations beyond L2: read twice in 16 bit and written once in 8, at the quantization's own 1 TB/s
  const GemmLoopParameters half{.quantization_memory_ratio = 0.5};
  CHECK(timed(65536, 8192, half, Timing::kBenchmark) - timed(65536, 8192, half, Timing::kServed) ==
        doctest::Approx(65536.0 * 8192 * 5 / 1e6).epsilon(0.01));
}

TEST_CASE("gemm loop: without a graph the host may be what is timed") {
  const GpuSpec gpu = round_gpu();
  const GemmLoopParameters slow_host{.host_floor_deep_gemm_us = 90.0, .host_odd_rows_us = 9.0};
  const auto timed = [&](Timing timing) {
    GemmRow row = row_of(129, 128, 4096, Dtype::kFp8Block, timing);
    row.host_library = HostLibrary::kDeepGemm;
    return gemm_row_time(row, deep_gemm(), perfect(), slow_host, gpu, Maker::kVllm).in(kMicrosecond);
  };
  CHECK(timed(Timing::kBenchmark) == doctest::Approx(99.0));  // 129 is not a multiple of 4
  CHECK(timed(Timing::kServed) < 10.0);
}

TEST_CASE("gemm loop: what one row loses beside the product is no part of it") {
  const GpuSpec gpu = round_gpu();
  GemmParameters loses = perfect();
  loses.gemv_us = -13.0;
  const auto timed = [&](const GemmParameters& p, Timing timing) {
    const GemmRow row = row_of(1, 4096, 4096, Dtype::kFp8, timing);
    return gemm_row_time(row, cutlass_fp8(), p, {}, gpu, Maker::kVllm).in(kMicrosecond);
  };
  CHECK(timed(loses, Timing::kServed) == timed(perfect(), Timing::kServed));
  CHECK(timed(loses, Timing::kBenchmark) == doctest::Approx(timed(perfect(), Timing::kBenchmark) + 13.0));
}

TEST_CASE("gemm loop: a kernel and its loop are fitted as one and written apart") {
  const LoopedKernel both(cutlass_fp8(), quantizing_gemm_loop());
  const std::size_t own = cutlass_fp8().fields().size(), beside = quantizing_gemm_loop().fields().size();
  REQUIRE(both.fields().size() == own + beside);
  std::vector<double> values = both.numbers(both.defaults());
  values[0] = 0.5, values[own] = 7.0;
  const ConstantsBlock block = both.from_numbers(values, {});
  CHECK(both.numbers(block) == values);
  CHECK(cutlass_fp8().parameters(LoopedKernel::kernel_in(block)).compute_efficiency == 0.5);
  CHECK(quantizing_gemm_loop().parameters(LoopedKernel::loop_in(block)).benchmark_us == 7.0);
  FittedConstants fitted{
      .block = "cutlass_fp8.fp8", .values = {}, .record = {}, .fields = {}, .on_rows = {}, .left_out = {}};
  for (const FieldFacts& field : both.fields()) fitted.values.emplace_back(field.name, values[fitted.values.size()]);
  fitted.record.standard_errors.assign(own + beside, 0.1);
  const auto [product, loop] = both.split_fit(fitted, Dtype::kFp8);
  CHECK(product.block == "cutlass_fp8.fp8");
  CHECK(product.values.size() == own);
  CHECK(product.record.standard_errors.size() == own);
  CHECK(loop.block == "quantizing_gemm_loop.fp8");
  CHECK(loop.values[0] == std::pair<std::string, double>{"benchmark_us", 7.0});
  CHECK(loop.record.standard_errors.size() == beside);
}
