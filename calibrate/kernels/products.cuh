#pragma once
// y[m, n] = x[m, k] w[n, k]^T for few rows, and for experts that each have their own rows. As in attention.cuh, a lane
// reads 16 contiguous bytes of a row and feeds them to two instructions; both factors share the order of k.
//   x [m, k] bf16, w [n, k] bf16 or packed 4-bit, y [m, n] bf16

#include "calibrate/kernels/device.cuh"

namespace roofcast::calibrate::kernels {

constexpr int kSkinnyThreads = 128;
constexpr int kSkinnyRows = 16;   ///< weight rows per block
constexpr int kSkinnyStep = 128;  ///< k per warp and step, and weights per scale

/// Shared memory in which the four warps accumulate: [4][16][8 N] floats.
template <int N>
inline constexpr int kSkinnySharedBytes = 4 * kSkinnyRows * 8 * N * 4;

/// Adds the warps' parts of 16 weight rows x 8 N tokens and writes y. Lane 4g + t has rows g (sum[.][0], [1]) and g + 8
/// ([2], [3]) for tokens 2t and 2t + 1 of each 8.
template <int N>
__device__ __forceinline__ void add_warps(float* parts, const float (&sum)[N][4], Bf16* y, int m, int n, int row0) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4,
            t = lane % 4;
#pragma unroll
  for (int j = 0; j < N; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      parts[(warp * kSkinnyRows + g + 8 * (i / 2)) * 8 * N + 8 * j + 2 * t + i % 2] = sum[j][i];
  }
  block_sync();
  for (int i = static_cast<int>(threadIdx.x); i < kSkinnyRows * 8 * N; i += kSkinnyThreads) {
    const int token = i / kSkinnyRows, row = i % kSkinnyRows;
    if (token >= m) continue;
    float total = 0.0f;
    for (int w = 0; w < 4; ++w) total += parts[(w * kSkinnyRows + row) * 8 * N + token];
    y[static_cast<std::size_t>(token) * n + row0 + row] = static_cast<Bf16>(pack_bf16(total, 0.0f) & 0xFFFFu);
  }
}

/// Up to 8 N tokens. A block has 16 weight rows, whose k the four warps share. n must be a multiple of 16, k of 128.
template <int N>
__global__ void __launch_bounds__(kSkinnyThreads)
    skinny_kernel(const Bf16* x, const Bf16* w, Bf16* y, int m, int n, int k) {
  ROOFCAST_DYNAMIC_SHARED(shared);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4,
            t = lane % 4;
  const int row0 = static_cast<int>(blockIdx.x) * kSkinnyRows;
  const Bf16* const low = w + static_cast<std::size_t>(row0 + g) * k;
  const Bf16* const high = low + static_cast<std::size_t>(8) * k;
  float sum[N][4] = {};
#pragma unroll 2
  for (int k0 = kSkinnyStep * warp; k0 < k; k0 += 4 * kSkinnyStep) {
    uint4 a[4], b[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      a[i] = load_streaming(low + k0 + 32 * i + 8 * t);
      b[i] = load_streaming(high + k0 + 32 * i + 8 * t);
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const int token = 8 * j + g;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint4 c =
            token < m ? load16(x + static_cast<std::size_t>(token) * k + k0 + 32 * i + 8 * t) : uint4{0, 0, 0, 0};
        mma_bf16(sum[j], a[i].x, b[i].x, a[i].y, b[i].y, c.x, c.y);
        mma_bf16(sum[j], a[i].z, b[i].z, a[i].w, b[i].w, c.z, c.w);
      }
    }
  }
  add_warps<N>(reinterpret_cast<float*>(shared), sum, y, m, n, row0);
}

/// Pair j (elements 2j, 2j + 1) of a word as two bf16 in -8 ... 7: nibbles j and j + 4, in the order of nibble_place in
/// random_data.h. The bf16 0x4300 + v is 128 + v.
__device__ __forceinline__ std::uint32_t unpack_pair(std::uint32_t word, int j) {
  return add_bf16x2(((word >> (4 * j)) & 0x000F000Fu) | 0x43004300u, 0xC308C308u);  // - 136
}

/// The same with 4-bit weights: w [n, k / 8] words, scale [n, k / 128] bf16.
template <int N>
__global__ void __launch_bounds__(kSkinnyThreads)
    int4_kernel(const Bf16* x, const std::uint32_t* w, const Bf16* scale, Bf16* y, int m, int n, int k) {
  ROOFCAST_DYNAMIC_SHARED(shared);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4,
            t = lane % 4;
  const int row0 = static_cast<int>(blockIdx.x) * kSkinnyRows;
  const std::size_t low = static_cast<std::size_t>(row0 + g) * (k / 8),
                    high = low + static_cast<std::size_t>(8) * (k / 8);
  float sum[N][4] = {};
#pragma unroll 2
  for (int k0 = kSkinnyStep * warp; k0 < k; k0 += 4 * kSkinnyStep) {
    const uint4 a = load_streaming(w + low + k0 / 8 + 4 * t), b = load_streaming(w + high + k0 / 8 + 4 * t);
    const int step = k0 / kSkinnyStep, steps = k / kSkinnyStep;
    const float scale_low = low_float(scale[static_cast<std::size_t>(row0 + g) * steps + step]);
    const float scale_high = low_float(scale[static_cast<std::size_t>(row0 + g + 8) * steps + step]);
    float part[N][4] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // 8 weights of each row, from element k0 + 32 t + 8 i on
      const std::uint32_t p = word_of(a, i), q = word_of(b, i);
      const std::uint32_t p0 = unpack_pair(p, 0), p1 = unpack_pair(p, 1), p2 = unpack_pair(p, 2),
                          p3 = unpack_pair(p, 3);
      const std::uint32_t q0 = unpack_pair(q, 0), q1 = unpack_pair(q, 1), q2 = unpack_pair(q, 2),
                          q3 = unpack_pair(q, 3);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const int token = 8 * j + g;
        const uint4 c =
            token < m ? load16(x + static_cast<std::size_t>(token) * k + k0 + 32 * t + 8 * i) : uint4{0, 0, 0, 0};
        mma_bf16(part[j], p0, q0, p1, q1, c.x, c.y);
        mma_bf16(part[j], p2, q2, p3, q3, c.z, c.w);
      }
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
      sum[j][0] += scale_low * part[j][0];
      sum[j][1] += scale_low * part[j][1];
      sum[j][2] += scale_high * part[j][2];
      sum[j][3] += scale_high * part[j][3];
    }
  }
  add_warps<N>(reinterpret_cast<float*>(shared), sum, y, m, n, row0);
}

/// The rows of one expert that a block computes.
struct ExpertTile {
  int expert, row, rows;
};

constexpr int kExpertThreads = 256;
constexpr int kExpertRows = 64, kExpertColumns = 128, kExpertStep = 32, kExpertStages = 4;
constexpr int kExpertStage = (kExpertRows + kExpertColumns) * kExpertStep;  ///< elements
constexpr int kExpertSharedBytes = kExpertStages * kExpertStage * 2;

/// y[row, n] = x[row, k] w[expert][n, k]^T for rows sorted by expert. Block (n / 128, tile) computes at most 64 rows of
/// one expert; each of its 8 warps computes 32 x 32. n must be a multiple of 128, k of 32. Rows of 64 bytes use all
/// banks evenly without padding. Three steps of k are loaded while one is used.
__global__ void __launch_bounds__(kExpertThreads)
    expert_kernel(const Bf16* x, const Bf16* w, Bf16* y, const ExpertTile* tiles, int n, int k) {
  ROOFCAST_DYNAMIC_SHARED(shared);
  Bf16* const stages = reinterpret_cast<Bf16*>(shared);
  const ExpertTile tile = tiles[blockIdx.y];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32, g = lane / 4, t = lane % 4;
  const int column0 = static_cast<int>(blockIdx.x) * kExpertColumns;
  const Bf16* const weights = w + (static_cast<std::size_t>(tile.expert) * n + column0) * k;
  const int steps = k / kExpertStep;
  const auto copy_step = [&](int step) {
    if (step < steps) {
      Bf16* const to = stages + (step % kExpertStages) * kExpertStage;
      for (int i = thread; i < kExpertStage / 8; i += kExpertThreads) {
        const int row = i / 4, column = 8 * (i % 4);
        const Bf16* const from = row < kExpertRows
                                     ? x + static_cast<std::size_t>(tile.row + min(row, tile.rows - 1)) * k
                                     : weights + static_cast<std::size_t>(row - kExpertRows) * k;
        copy_async(to + 8 * i, from + step * kExpertStep + column);
      }
    }
    copy_commit();  // empty at the end, to keep the number of groups constant
  };
  const int row0 = 32 * (warp / 4), col0 = 32 * (warp % 4);
  float sum[2][4][4] = {};
  for (int i = 0; i < kExpertStages - 1; ++i) copy_step(i);
  for (int step = 0; step < steps; ++step) {
    copy_wait<kExpertStages - 2>();
    block_sync();  // all threads see the step, and none reads the buffer that is overwritten next
    copy_step(step + kExpertStages - 1);
    const Bf16* const a = stages + (step % kExpertStages) * kExpertStage;
    const Bf16* const b = a + kExpertRows * kExpertStep;
    uint4 low[2], high[2], columns[4];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      low[i] = load16(a + (row0 + 16 * i + g) * kExpertStep + 8 * t);
      high[i] = load16(a + (row0 + 16 * i + g + 8) * kExpertStep + 8 * t);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) columns[j] = load16(b + (col0 + 8 * j + g) * kExpertStep + 8 * t);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        mma_bf16(sum[i][j], low[i].x, high[i].x, low[i].y, high[i].y, columns[j].x, columns[j].y);
        mma_bf16(sum[i][j], low[i].z, high[i].z, low[i].w, high[i].w, columns[j].z, columns[j].w);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = row0 + 16 * i + g + 8 * r;
      if (row >= tile.rows) continue;
      Bf16* const to = y + static_cast<std::size_t>(tile.row + row) * n + column0 + col0 + 2 * t;
#pragma unroll
      for (int j = 0; j < 4; ++j)
        *reinterpret_cast<std::uint32_t*>(to + 8 * j) = pack_bf16(sum[i][j][2 * r], sum[i][j][2 * r + 1]);
    }
  }
}

}  // namespace roofcast::calibrate::kernels
