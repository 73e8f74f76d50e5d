#pragma once
// Streaming kernels: plain reads, writes and copies, and the kernels between the GEMMs of a layer.

#include "calibrate/kernels/device.cuh"

namespace roofcast::calibrate::kernels {

constexpr int kStreamThreads = 512;
constexpr int kStreamUnroll = 8;  ///< 16-byte loads in flight per thread

__device__ __forceinline__ uint4 xor_of(const uint4& a, const uint4& b) {
  return {a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w};
}

/// Whether all of a block's eight loads are in range, or each must be checked.
struct Whole {
  static constexpr bool kIs = true;
};
struct CutOff {
  static constexpr bool kIs = false;
};

/// The loop of all three: blocks loop over `count` words of 16 bytes, eight per thread.
template <class Body>
__device__ __forceinline__ void stream_over(std::size_t count, Body body) {
  const std::size_t block = static_cast<std::size_t>(kStreamThreads) * kStreamUnroll;
  for (std::size_t base = blockIdx.x * block; base < count; base += gridDim.x * block) {
    if (base + block <= count) {
      body(base + threadIdx.x, Whole{});
    } else {
      body(base + threadIdx.x, CutOff{});
    }
  }
}

/// Loads eight words from `first` on, a block apart; zero where out of range.
template <class Extent>
__device__ __forceinline__ void load_eight(uint4 (&v)[kStreamUnroll], const uint4* in, std::size_t first,
                                           std::size_t count) {
#pragma unroll
  for (int i = 0; i < kStreamUnroll; ++i) {
    const std::size_t at = first + static_cast<std::size_t>(i) * kStreamThreads;
    v[i] = Extent::kIs || at < count ? load_streaming(in + at) : uint4{0, 0, 0, 0};
  }
}

/// Writes one word per warp to `sums`: the exclusive or of all that it read, so that no load can be removed. `rounds`
/// must be odd, else they cancel out.
__global__ void __launch_bounds__(kStreamThreads)
    read_kernel(const uint4* in, std::size_t count, std::uint32_t* sums, int rounds) {
  uint4 sum{0, 0, 0, 0};
  for (int round = 0; round < rounds; ++round) {
    stream_over(count, [&](std::size_t first, auto extent) {
      uint4 v[kStreamUnroll];
      load_eight<decltype(extent)>(v, in, first, count);
#pragma unroll
      for (int i = 0; i < kStreamUnroll; ++i) sum = xor_of(sum, v[i]);
    });
  }
  std::uint32_t word = sum.x ^ sum.y ^ sum.z ^ sum.w;
  for (int mask = 16; mask > 0; mask /= 2) word ^= shuffle_xor(word, mask);
  if (threadIdx.x % 32 == 0) sums[(blockIdx.x * kStreamThreads + threadIdx.x) / 32] = word;
}

/// Word i becomes {i, i, i, pattern + rounds - 1}, where i is its low 32 bits; each round writes another last word.
__global__ void __launch_bounds__(kStreamThreads)
    write_kernel(uint4* out, std::size_t count, std::uint32_t pattern, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    stream_over(count, [&](std::size_t first, auto extent) {
#pragma unroll
      for (int i = 0; i < kStreamUnroll; ++i) {
        const std::size_t at = first + static_cast<std::size_t>(i) * kStreamThreads;
        const auto low = static_cast<std::uint32_t>(at);
        if (decltype(extent)::kIs || at < count)
          out[at] = uint4{low, low, low, pattern + static_cast<std::uint32_t>(round)};
      }
    });
  }
}

/// `rounds` times; loads are volatile, so none is removed.
__global__ void __launch_bounds__(kStreamThreads)
    copy_kernel(const uint4* in, uint4* out, std::size_t count, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    stream_over(count, [&](std::size_t first, auto extent) {
      uint4 v[kStreamUnroll];
      load_eight<decltype(extent)>(v, in, first, count);
#pragma unroll
      for (int i = 0; i < kStreamUnroll; ++i) {
        const std::size_t at = first + static_cast<std::size_t>(i) * kStreamThreads;
        if (decltype(extent)::kIs || at < count) out[at] = v[i];
      }
    });
  }
}

constexpr int kRowThreads = 256;

/// Sum (or, with `largest`, maximum) over the block, returned to every thread. `scratch`: 8 floats in shared memory.
template <bool largest>
__device__ __forceinline__ float over_block(float value, float* scratch) {
  for (int mask = 16; mask > 0; mask /= 2) {
    const float other = shuffle_xor(value, mask);
    value = largest ? fmaxf(value, other) : value + other;
  }
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  block_sync();
  value = scratch[0];
  for (int w = 1; w < kRowThreads / 32; ++w) value = largest ? fmaxf(value, scratch[w]) : value + scratch[w];
  return value;
}

/// Eight bf16 in 16 bytes, converted to floats and back.
struct Eight {
  float v[8];
  __device__ __forceinline__ static Eight of(const uint4& words) {
    Eight out;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      out.v[2 * i] = low_float(word_of(words, i));
      out.v[2 * i + 1] = high_float(word_of(words, i));
    }
    return out;
  }
  __device__ __forceinline__ void store(Bf16* to) const {
    store16(to, pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]), pack_bf16(v[4], v[5]), pack_bf16(v[6], v[7]));
  }
};

/// out = x / sqrt(mean(x^2) + epsilon) * w; one block per row of `width` bf16, a multiple of 8.
__global__ void __launch_bounds__(kRowThreads)
    rmsnorm_kernel(const Bf16* x, const Bf16* w, Bf16* out, int width, float epsilon) {
  ROOFCAST_DYNAMIC_SHARED(shared);
  const std::size_t row = static_cast<std::size_t>(blockIdx.x) * width;
  float squares = 0.0f;
  for (int i = 8 * static_cast<int>(threadIdx.x); i < width; i += 8 * kRowThreads) {
    const Eight a = Eight::of(load16(x + row + i));
#pragma unroll
    for (int e = 0; e < 8; ++e) squares += a.v[e] * a.v[e];
  }
  squares = over_block<false>(squares, reinterpret_cast<float*>(shared));
  const float scale = inverse_sqrt(squares / static_cast<float>(width) + epsilon);
  for (int i = 8 * static_cast<int>(threadIdx.x); i < width; i += 8 * kRowThreads) {
    Eight a = Eight::of(load16(x + row + i));
    const Eight b = Eight::of(load16(w + i));
#pragma unroll
    for (int e = 0; e < 8; ++e) a.v[e] *= scale * b.v[e];
    a.store(out + row + i);
  }
}

constexpr int kRopeDim = 128;

/// Rotates pairs (i, i + 64) of each 128 columns by the angle with cosine and sine in table[row][2][64]. One block per
/// row; width must be a multiple of 128.
__global__ void __launch_bounds__(kRowThreads) rope_kernel(const Bf16* x, const float* table, Bf16* out, int width) {
  const std::size_t row = static_cast<std::size_t>(blockIdx.x) * width;
  const float* const cosine = table + static_cast<std::size_t>(blockIdx.x) * kRopeDim;
  const float* const sine = cosine + kRopeDim / 2;
  for (int i = static_cast<int>(threadIdx.x); i < width / 16; i += kRowThreads) {
    const int pair = 8 * (i % 8);
    const std::size_t at = row + i / 8 * kRopeDim + pair;
    Eight a = Eight::of(load16(x + at)), b = Eight::of(load16(x + at + kRopeDim / 2));
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float c = cosine[pair + e], s = sine[pair + e], first = a.v[e];
      a.v[e] = first * c - b.v[e] * s;
      b.v[e] = b.v[e] * c + first * s;
    }
    a.store(out + at);
    b.store(out + at + kRopeDim / 2);
  }
}

/// out = silu(x[row, 0 .. width)) x[row, width .. 2 width); one block per row.
__global__ void __launch_bounds__(kRowThreads) silu_mul_kernel(const Bf16* x, Bf16* out, int width) {
  const Bf16* const gate = x + static_cast<std::size_t>(blockIdx.x) * 2 * width;
  Bf16* const to = out + static_cast<std::size_t>(blockIdx.x) * width;
  for (int i = 8 * static_cast<int>(threadIdx.x); i < width; i += 8 * kRowThreads) {
    Eight a = Eight::of(load16(gate + i));
    const Eight b = Eight::of(load16(gate + width + i));
#pragma unroll
    for (int e = 0; e < 8; ++e) a.v[e] *= b.v[e] / (1.0f + fast_exp2(-1.442695041f * a.v[e]));
    a.store(to + i);
  }
}

/// Scales a row so that its largest magnitude becomes 127: out int8, one scale = largest / 127 per row. One block per
/// row.
__global__ void __launch_bounds__(kRowThreads)
    quantize_kernel(const Bf16* x, std::int8_t* out, float* scale, int width) {
  ROOFCAST_DYNAMIC_SHARED(shared);
  const std::size_t row = static_cast<std::size_t>(blockIdx.x) * width;
  float largest = 0.0f;
  for (int i = 8 * static_cast<int>(threadIdx.x); i < width; i += 8 * kRowThreads) {
    const Eight a = Eight::of(load16(x + row + i));
#pragma unroll
    for (int e = 0; e < 8; ++e) largest = fmaxf(largest, fabsf(a.v[e]));
  }
  largest = fmaxf(over_block<true>(largest, reinterpret_cast<float*>(shared)), 1e-20f);
  if (threadIdx.x == 0) scale[blockIdx.x] = largest / 127.0f;
  const float inverse = 127.0f / largest;
  for (int i = 8 * static_cast<int>(threadIdx.x); i < width; i += 8 * kRowThreads) {
    const Eight a = Eight::of(load16(x + row + i));
    std::uint32_t words[2] = {0, 0};
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int value = static_cast<int>(rintf(a.v[e] * inverse));
      words[e / 4] |= (static_cast<std::uint32_t>(value) & 0xFFu) << (8 * (e % 4));
    }
    *reinterpret_cast<uint2*>(out + row + i) = uint2{words[0], words[1]};
  }
}

}  // namespace roofcast::calibrate::kernels
