// Fills, streams, and the kernels between the GEMMs of a layer.

#include "calibrate/kernels/cuda_runtime.h"
#include "calibrate/kernels/launchers.h"
#include "calibrate/kernels/streaming.cuh"
#include "calibrate/random_data.h"

namespace roofcast::calibrate::cuda {
namespace {

__device__ std::uint32_t fp16_bits(float value) {
  std::uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

template <class T, Fill format>
__global__ void fill_kernel(T* to, std::size_t count, std::uint32_t seed) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < count; i += stride) {
    if constexpr (format == Fill::kBf16) to[i] = static_cast<T>(__float_as_uint(random_unit(seed, i)) >> 16);
    if constexpr (format == Fill::kFp16) to[i] = static_cast<T>(fp16_bits(random_unit(seed, i)));
    if constexpr (format == Fill::kInt8) to[i] = static_cast<T>(random_byte(seed, i));
    if constexpr (format == Fill::kE4m3) to[i] = static_cast<T>(random_e4m3(seed, i));
    if constexpr (format == Fill::kWords) to[i] = static_cast<T>(random_bits(seed, i));
  }
}

template <Fill format, class T>
void fill_as(cudaStream_t stream, T* to, std::size_t count, std::uint32_t seed) {
  const std::size_t blocks = (count + 1023) / 1024;
  fill_kernel<T, format><<<static_cast<unsigned>(blocks < 8192 ? blocks : 8192), 256, 0, stream>>>(to, count, seed);
  check(cudaGetLastError(), "filling memory");
}

__global__ void nothing() {}

__global__ void spin_kernel(std::uint64_t nanoseconds) {
  std::uint64_t start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}

constexpr int kScratch = kernels::kRowThreads / 32 * 4;

}  // namespace

void fill(cudaStream_t stream, void* to, std::size_t count, Fill format, std::uint32_t seed) {
  if (count == 0) return;
  switch (format) {
    case Fill::kBf16:
      return fill_as<Fill::kBf16>(stream, static_cast<std::uint16_t*>(to), count, seed);
    case Fill::kFp16:
      return fill_as<Fill::kFp16>(stream, static_cast<std::uint16_t*>(to), count, seed);
    case Fill::kInt8:
      return fill_as<Fill::kInt8>(stream, static_cast<std::int8_t*>(to), count, seed);
    case Fill::kE4m3:
      return fill_as<Fill::kE4m3>(stream, static_cast<std::uint8_t*>(to), count, seed);
    case Fill::kWords:
      return fill_as<Fill::kWords>(stream, static_cast<std::uint32_t*>(to), count, seed);
  }
}

void empty_kernel(cudaStream_t stream) {
  nothing<<<1, 32, 0, stream>>>();
  check(cudaGetLastError(), "launching a kernel");
}

void spin(cudaStream_t stream, std::uint64_t nanoseconds) {
  spin_kernel<<<1, 1, 0, stream>>>(nanoseconds);
  check(cudaGetLastError(), "launching a kernel");
}

void read(cudaStream_t stream, int blocks, const void* in, std::size_t bytes, std::uint32_t* sums, int rounds) {
  kernels::read_kernel<<<blocks, kernels::kStreamThreads, 0, stream>>>(static_cast<const uint4*>(in), bytes / 16, sums,
                                                                       rounds);
  check(cudaGetLastError(), "launching a read");
}
std::size_t read_sums(int blocks) { return static_cast<std::size_t>(blocks) * (kernels::kStreamThreads / 32); }

void write(cudaStream_t stream, int blocks, void* out, std::size_t bytes, std::uint32_t pattern, int rounds) {
  kernels::write_kernel<<<blocks, kernels::kStreamThreads, 0, stream>>>(static_cast<uint4*>(out), bytes / 16, pattern,
                                                                        rounds);
  check(cudaGetLastError(), "launching a write");
}

void copy(cudaStream_t stream, int blocks, const void* in, void* out, std::size_t bytes, int rounds) {
  kernels::copy_kernel<<<blocks, kernels::kStreamThreads, 0, stream>>>(static_cast<const uint4*>(in),
                                                                       static_cast<uint4*>(out), bytes / 16, rounds);
  check(cudaGetLastError(), "launching a copy");
}

void rmsnorm(cudaStream_t stream, const Bf16* x, const Bf16* w, Bf16* out, int rows, int width, float epsilon) {
  kernels::rmsnorm_kernel<<<rows, kernels::kRowThreads, kScratch, stream>>>(x, w, out, width, epsilon);
  check(cudaGetLastError(), "launching a norm");
}
void rope(cudaStream_t stream, const Bf16* x, const float* table, Bf16* out, int rows, int width) {
  kernels::rope_kernel<<<rows, kernels::kRowThreads, 0, stream>>>(x, table, out, width);
  check(cudaGetLastError(), "launching rope");
}
void silu_mul(cudaStream_t stream, const Bf16* x, Bf16* out, int rows, int width) {
  kernels::silu_mul_kernel<<<rows, kernels::kRowThreads, 0, stream>>>(x, out, width);
  check(cudaGetLastError(), "launching an activation");
}
void quantize(cudaStream_t stream, const Bf16* x, std::int8_t* out, float* scale, int rows, int width) {
  kernels::quantize_kernel<<<rows, kernels::kRowThreads, kScratch, stream>>>(x, out, scale, width);
  check(cudaGetLastError(), "launching a quantization");
}

}  // namespace roofcast::calibrate::cuda
