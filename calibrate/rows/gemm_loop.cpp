#include "calibrate/rows/gemm_loop.h"

#include <algorithm>
#include <cmath>

#include "hw/kernels/gemm/gemm_math.h"

namespace roofcast::calibrate {
namespace {

using product::ceiling;
using product::hit_rate;
using product::overlap;

/// Elements of a row that a thread block of the quantization processes at once: 256 threads, 8 each.
constexpr double kQuantizedAtOnce = 2048;

bool quantizes(Dtype block) { return block == Dtype::kFp8 || block == Dtype::kFp8Block || block == Dtype::kNvfp4; }

/// Sets of weights that the loop rotates through, from the collectors: vLLM's use 6 (1 for fp8_block and nvfp4);
/// TensorRT-LLM 1.3's enough to fill L2, at most 5; its older one for Ampere 5.
double weight_copies(const GemmRow& row, const GpuSpec& gpu, Maker collector) {
  const GemmShape& s = row.shape;
  if (collector != Maker::kTrtllm) return row.block == Dtype::kFp8Block || row.block == Dtype::kNvfp4 ? 1 : 6;
  if (gpu.architecture == Architecture::kAmpere) return 5;
  const Bytes weights(s.n * s.k * element_bits(s.weights) / 8.0);
  return std::clamp(ceiling(gpu.l2_cache / weights), 1.0, 5.0);
}

/// A separate kernel that reads the activations `passes` times and writes them in the narrow format.
///   bytes = m k (2 passes + b);  time = bytes at DRAM or L2 rate + ceil(m / SMs) quantization_row_us
Seconds quantization(const GemmShape& s, const GemmParameters& p, const GemmLoopParameters& loop, const GpuSpec& gpu,
                     double passes) {
  const product::Traffic traffic = product::traffic_of(s);
  const Bytes moved = Bytes(s.m * s.k * 2.0 * passes) + traffic.activations;
  const double hit = hit_rate(traffic.total() + Bytes(2.0 * s.m * s.k), gpu.l2_cache * p.l2_usable);
  const BytesPerSecond dram = gpu.memory_bandwidth * loop.quantization_memory_ratio;
  const BytesPerSecond l2 = gpu.memory_bandwidth * loop.quantization_l2_ratio;
  const double row = loop.quantization_row_us + loop.quantization_step_us * ceiling(s.k / kQuantizedAtOnce);
  const double sms = gpu.sm_count;
  return std::max(moved * (1.0 - hit) / dram + moved * hit / l2, ceiling(s.m / sms) * row * kMicrosecond);
}

Seconds host_floor(const GemmRow& row, const GemmLoopParameters& loop) {
  switch (row.host_library) {
    case HostLibrary::kDeepGemm: {
      const bool odd = std::fmod(row.shape.m, 4.0) != 0.0;
      return (loop.host_floor_deep_gemm_us + (odd ? loop.host_odd_rows_us : 0.0)) * kMicrosecond;
    }
    case HostLibrary::kFlashInfer:
      return loop.host_floor_flash_infer_us * kMicrosecond;
    case HostLibrary::kOther:
      return loop.host_floor_us * kMicrosecond;
  }
  return Seconds{};
}

}  // namespace

const GemmLoop* gemm_loop_of(Dtype block, Maker collector) {
  if (block == Dtype::kFp8Block && collector != Maker::kTrtllm) return &eager_gemm_loop();
  if (quantizes(block)) return &quantizing_gemm_loop();
  return block == Dtype::kBf16 ? nullptr : &plain_gemm_loop();
}

GemmLoopParameters gemm_loop_prior(Dtype block, Maker collector) {
  const bool trtllm = collector == Maker::kTrtllm;
  switch (block) {
    case Dtype::kBf16:
      return {};
    case Dtype::kNvfp4:  // the values of a B200
      return {.benchmark_us = 3.8};
    case Dtype::kFp8:
      if (trtllm) return {.benchmark_us = 10.0};
      return {.benchmark_us = 2.0, .quantization_row_us = 0.35, .quantization_step_us = 0.6};
    case Dtype::kFp8Block:
      if (trtllm) return {.benchmark_us = 2.0};
      return {.benchmark_us = 2.0,
              .quantization_step_us = 0.5,
              .host_floor_us = 170,
              .host_floor_deep_gemm_us = 92,
              .host_odd_rows_us = 10,
              .host_floor_flash_infer_us = 60};
    default:
      return {.benchmark_us = 7.0};
  }
}

GemmLoopParameters gemm_loop_constants(Dtype block, const Efficiency& efficiency) {
  const Maker collector = collector_of(efficiency.rules());
  const GemmLoop* loop = gemm_loop_of(block, collector);
  if (loop == nullptr) return {};
  const ConstantsBlock& measured = efficiency.block(*loop, block);
  return measured ? loop->parameters(measured) : gemm_loop_prior(block, collector);
}

Seconds gemm_row_time(const GemmRow& row, const MatmulKernel& kernel, const GemmParameters& constants,
                      const GemmLoopParameters& loop, const GpuSpec& gpu, Maker collector) {
  if (row.header.timing != Timing::kBenchmark)
    return gemm_with(row.shape, kernel, constants, gpu, {.cool = row.header.timing == Timing::kCool}).time;
  const GemmRun run{.weight_copies = weight_copies(row, gpu, collector)};
  Seconds time = gemm_with(row.shape, kernel, constants, gpu, run).time;
  // gemv_us below zero is lost to the quantization beside a one-row GEMM.
  if (row.shape.m <= 1) time -= std::min(0.0, constants.gemv_us) * kMicrosecond;
  time += loop.benchmark_us * kMicrosecond;
  // TensorRT-LLM's dynamic fp8 and vLLM's per-token fp8 first read the activations for their maximum, then again.
  if (quantizes(row.block)) time += quantization(row.shape, constants, loop, gpu, row.block == Dtype::kFp8 ? 2.0 : 1.0);
  return overlap(time, host_floor(row, loop));  // the host runs ahead or is waited for, with variance
}

}  // namespace roofcast::calibrate
