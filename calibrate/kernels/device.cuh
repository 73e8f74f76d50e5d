#pragma once
// The primitives of the kernels. nvcc compiles the instructions below. A test defines the same names first and runs the
// kernels on the CPU, thread by thread, to check their indexing without a GPU. A bf16 is represented by its 16 bits,
// two of them by one 32-bit word with the lower element in the lower half.

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif

#include <cstddef>
#include <cstdint>

namespace roofcast::calibrate::kernels {

using Bf16 = std::uint16_t;

#if defined(__CUDACC__)

#define ROOFCAST_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]

/// d += a b for 16 x 8 x 16: a row-major (4 words per lane), b column-major (2), d in fp32 (4). Lane l = 4 g + t has of
/// a: rows g, g + 8, g, g + 8 at columns 2t, 2t, 2t + 8, 2t + 8; of b: rows 2t, 2t + 8 of column g; of d: row g at
/// columns 2t, 2t + 1, row g + 8 at the same columns (PTX ISA, mma.m16n8k16).
__device__ __forceinline__ void mma_bf16(float (&d)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                         std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ float shuffle_xor(float value, int mask) {
  return __shfl_xor_sync(0xFFFFFFFFu, value, mask);
}
__device__ __forceinline__ std::uint32_t shuffle_xor(std::uint32_t value, int mask) {
  return __shfl_xor_sync(0xFFFFFFFFu, value, mask);
}
__device__ __forceinline__ void block_sync() { __syncthreads(); }
__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float inverse_sqrt(float x) { return rsqrtf(x); }
/// Rounded to nearest even; `low` becomes the lower half.
__device__ __forceinline__ std::uint32_t pack_bf16(float low, float high) {
  std::uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
/// a + b for both halves.
__device__ __forceinline__ std::uint32_t add_bf16x2(std::uint32_t a, std::uint32_t b) {
  std::uint32_t word;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(word) : "r"(a), "r"(0x3F803F80u), "r"(b));  // a * 1 + b
  return word;
}
__device__ __forceinline__ float as_float(std::uint32_t bits) { return __uint_as_float(bits); }
/// Loads 16 bytes that are read once, bypassing L1. volatile: loads stay before their uses, with as many in flight as
/// written.
__device__ __forceinline__ uint4 load_streaming(const void* from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(__cvta_generic_to_global(from)));
  return v;
}
/// Asynchronous copy of 16 bytes from global to shared memory. commit ends a group, wait<N> leaves N groups in flight.
__device__ __forceinline__ void copy_async(void* shared, const void* global) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(shared))),
      "l"(__cvta_generic_to_global(global))
      : "memory");
}
__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kInFlight>
__device__ __forceinline__ void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kInFlight) : "memory");
}

#endif

__device__ __forceinline__ uint4 load16(const void* from) { return *static_cast<const uint4*>(from); }
__device__ __forceinline__ void store16(void* to, std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  *static_cast<uint4*>(to) = uint4{a, b, c, d};
}
__device__ __forceinline__ float low_float(std::uint32_t word) { return as_float(word << 16); }
__device__ __forceinline__ float high_float(std::uint32_t word) { return as_float(word & 0xFFFF0000u); }
/// Word 0 ... 3 of 16 bytes; `i` must be a compile-time constant.
__device__ __forceinline__ std::uint32_t word_of(const uint4& v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}
__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1) / b; }

}  // namespace roofcast::calibrate::kernels
