#pragma once
// Runs CUDA kernels on the CPU: a thread of the system for each thread of a block, one block after the other. Defines
// what calibrate/kernels/device.cuh leaves to the machine, so that the indexing of a kernel is tested without a GPU.
// Instructions of a warp (shuffle, mma) meet at the warp's barrier and exchange their words through memory.

#include <array>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#define __global__ inline
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define ROOFCAST_DYNAMIC_SHARED(name) unsigned char* const name = roofcast::emulated::block->shared.data()

struct alignas(16) uint4 {
  std::uint32_t x, y, z, w;
};
struct alignas(8) uint2 {
  std::uint32_t x, y;
};

namespace roofcast::emulated {

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

struct Warp {
  std::barrier<> gate{32};
  std::array<std::array<std::uint32_t, 6>, 32> words{};
};

struct Block {
  Block(int threads, int shared_bytes)
      : gate(threads),
        warps(static_cast<std::size_t>(threads / 32)),
        shared(static_cast<std::size_t>(shared_bytes), 0xFF) {
    for (auto& warp : warps) warp = std::make_unique<Warp>();
  }
  std::barrier<> gate;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<unsigned char> shared;  ///< NaN until it is written
};

inline thread_local Block* block = nullptr;
inline thread_local int lane = 0;
inline thread_local Warp* warp = nullptr;

/// What every lane of the warp gave, once all have.
inline std::array<std::array<std::uint32_t, 6>, 32> exchange(const std::array<std::uint32_t, 6>& mine) {
  warp->words[static_cast<std::size_t>(lane)] = mine;
  warp->gate.arrive_and_wait();
  const auto all = warp->words;
  warp->gate.arrive_and_wait();
  return all;
}

}  // namespace roofcast::emulated

inline thread_local roofcast::emulated::Index threadIdx, blockIdx, gridDim;

namespace roofcast::calibrate::kernels {

using std::min;

inline float bf16_half(std::uint32_t word, int half) {
  return std::bit_cast<float>(half ? word & 0xFFFF0000u : word << 16);
}

inline void mma_bf16(float (&d)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2, std::uint32_t a3,
                     std::uint32_t b0, std::uint32_t b1) {
  const auto all = emulated::exchange({a0, a1, a2, a3, b0, b1});
  // The layout that the PTX manual draws for m16n8k16.
  const auto a = [&](int row, int k) {
    const auto& words = all[static_cast<std::size_t>(4 * (row % 8) + (k % 8) / 2)];
    return bf16_half(words[static_cast<std::size_t>((row >= 8 ? 1 : 0) + (k >= 8 ? 2 : 0))], k % 2);
  };
  const auto b = [&](int k, int column) {
    const auto& words = all[static_cast<std::size_t>(4 * column + (k % 8) / 2)];
    return bf16_half(words[k >= 8 ? 5 : 4], k % 2);
  };
  const int g = emulated::lane / 4, t = emulated::lane % 4;
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 16; ++k) d[i] += a(g + 8 * (i / 2), k) * b(k, 2 * t + i % 2);
  }
}
inline std::uint32_t shuffle_xor(std::uint32_t value, int mask) {
  return emulated::exchange({value, 0, 0, 0, 0, 0})[static_cast<std::size_t>(emulated::lane ^ mask)][0];
}
inline float shuffle_xor(float value, int mask) {
  return std::bit_cast<float>(shuffle_xor(std::bit_cast<std::uint32_t>(value), mask));
}
inline void block_sync() { emulated::block->gate.arrive_and_wait(); }
inline float fast_exp2(float x) { return std::exp2(x); }
inline float inverse_sqrt(float x) { return 1.0f / std::sqrt(x); }
inline std::uint32_t bf16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
}
inline std::uint32_t pack_bf16(float low, float high) { return bf16_bits(low) | (bf16_bits(high) << 16); }
inline std::uint32_t add_bf16x2(std::uint32_t a, std::uint32_t b) {
  return pack_bf16(bf16_half(a, 0) + bf16_half(b, 0), bf16_half(a, 1) + bf16_half(b, 1));
}
inline float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint4 load_streaming(const void* from) { return *static_cast<const uint4*>(from); }
inline void copy_async(void* shared, const void* global) { std::memcpy(shared, global, 16); }
inline void copy_commit() {}
template <int kInFlight>
inline void copy_wait() {}

}  // namespace roofcast::calibrate::kernels

namespace roofcast::emulated {

/// kernel<<<grid, threads, shared_bytes>>>(...), `kernel` a call of it.
inline void launch(Index grid, int threads, int shared_bytes, const std::function<void()>& kernel) {
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        Block here(threads, shared_bytes);
        std::vector<std::jthread> team;
        for (int i = 0; i < threads; ++i) {
          team.emplace_back([&, i] {
            block = &here;
            warp = here.warps[static_cast<std::size_t>(i / 32)].get();
            lane = i % 32;
            threadIdx = {static_cast<unsigned>(i), 0, 0};
            blockIdx = {x, y, z};
            gridDim = grid;
            kernel();
          });
        }
      }
    }
  }
}

}  // namespace roofcast::emulated
