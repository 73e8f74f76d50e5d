#pragma once
// softmax(Q K^T / sqrt(D)) V with tensor instructions that all GPUs since sm_80 have. One warp has 16 query rows and
// loops over the keys 16 at a time. Sums over k may run in any order that both factors share, so each lane reads 16
// contiguous bytes of a row, feeds them to two instructions, and needs no transposition.
//   q, out   [batch, queries, heads, D] bf16; in decode the sequences' queries may be further apart
//   k, v     [batch, tokens, kv_heads, D] bf16

#include "calibrate/kernels/device.cuh"

namespace roofcast::calibrate::kernels {

constexpr int kAttentionThreads = 128;
constexpr int kPrefillTile = 64;  ///< queries per block, and keys per step
inline constexpr float kNone = -INFINITY;

/// Running softmax of a warp's 16 rows. Lane 4g + t has rows g and g + 8, and of each half of 64 columns those from 16
/// t to 16 t + 15: out[8 half + e][0] is column 16 t + e of row g, [1] column 16 t + 8 + e; [2] and [3] are the same of
/// row g + 8.
template <int D>
struct Rows {
  float out[D / 8][4];
  float highest[2], total[2];  ///< total: this lane's part

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < D / 8; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) out[i][j] = 0.0f;
    }
    highest[0] = highest[1] = kNone;
    total[0] = total[1] = 0.0f;
  }
  __device__ __forceinline__ float whole_total(int r) const {
    const float pair = total[r] + shuffle_xor(total[r], 1);
    return pair + shuffle_xor(pair, 2);
  }
};

/// Queries as the first factor: words of row g and of row g + 8. A null pointer is a row of zeros.
template <int D>
struct Queries {
  uint4 low[D / 32], high[D / 32];

  __device__ __forceinline__ void load(const Bf16* row, const Bf16* row8, int t) {
#pragma unroll
    for (int b = 0; b < D / 32; ++b) {
      low[b] = row ? load16(row + 32 * b + 8 * t) : uint4{0, 0, 0, 0};
      high[b] = row8 ? load16(row8 + 32 * b + 8 * t) : uint4{0, 0, 0, 0};
    }
  }
};

/// Element e of two rows of values as one word, the first row's in the lower half.
__device__ __forceinline__ std::uint32_t pair_of(const uint4& first, const uint4& second, int e) {
  const std::uint32_t a = word_of(first, e / 2), b = word_of(second, e / 2);
  return e % 2 == 0 ? (a & 0xFFFFu) | (b << 16) : (a >> 16) | (b & 0xFFFF0000u);
}

/// Attends to keys 0 ... 15 of a step. Row g sees those below visible[0], row g + 8 those below visible[1]. key(i) and
/// value(i) point to token i; Load reads 16 bytes. `scale` is log2(e) / sqrt(D).
template <int D, class Load, class Key, class Value>
__device__ __forceinline__ void attend16(const Queries<D>& q, Rows<D>& rows, Load load, Key key, Value value,
                                         const int (&visible)[2], float scale, int g, int t) {
  uint4 keys[2][D / 32], values[D / 64][4];
#pragma unroll
  for (int n = 0; n < 2; ++n) {
#pragma unroll
    for (int b = 0; b < D / 32; ++b) keys[n][b] = load(key(8 * n + g) + 32 * b + 8 * t);
  }
#pragma unroll
  for (int half = 0; half < D / 64; ++half) {
#pragma unroll
    for (int i = 0; i < 4; ++i) values[half][i] = load(value(2 * t + (i & 1) + 8 * (i >> 1)) + 64 * half + 8 * g);
  }
  float score[2][4] = {};
#pragma unroll
  for (int n = 0; n < 2; ++n) {
#pragma unroll
    for (int b = 0; b < D / 32; ++b) {
      mma_bf16(score[n], q.low[b].x, q.high[b].x, q.low[b].y, q.high[b].y, keys[n][b].x, keys[n][b].y);
      mma_bf16(score[n], q.low[b].z, q.high[b].z, q.low[b].w, q.high[b].w, keys[n][b].z, keys[n][b].w);
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float highest = rows.highest[r];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float& s = score[i / 2][2 * r + i % 2];
      s = 8 * (i / 2) + 2 * t + i % 2 < visible[r] ? s * scale : kNone;
      highest = fmaxf(highest, s);
    }
    highest = fmaxf(highest, shuffle_xor(highest, 1));
    highest = fmaxf(highest, shuffle_xor(highest, 2));
    const float from = highest == kNone ? 0.0f : highest;  // nothing visible so far: every weight is 0
    const float keep = fast_exp2(rows.highest[r] - from);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float& s = score[i / 2][2 * r + i % 2];
      s = fast_exp2(s - from);
      sum += s;
    }
    rows.highest[r] = highest;
    rows.total[r] = rows.total[r] * keep + sum;
#pragma unroll
    for (int i = 0; i < D / 8; ++i) {
      rows.out[i][2 * r] *= keep;
      rows.out[i][2 * r + 1] *= keep;
    }
  }
  const std::uint32_t a0 = pack_bf16(score[0][0], score[0][1]), a1 = pack_bf16(score[0][2], score[0][3]);
  const std::uint32_t a2 = pack_bf16(score[1][0], score[1][1]), a3 = pack_bf16(score[1][2], score[1][3]);
#pragma unroll
  for (int half = 0; half < D / 64; ++half) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      mma_bf16(rows.out[8 * half + e], a0, a1, a2, a3, pair_of(values[half][0], values[half][1], e),
               pair_of(values[half][2], values[half][3], e));
    }
  }
}

struct LoadGlobal {
  __device__ __forceinline__ uint4 operator()(const Bf16* from) const { return load_streaming(from); }
};
struct LoadShared {
  __device__ __forceinline__ uint4 operator()(const Bf16* from) const { return load16(from); }
};

struct DecodeArgs {
  const Bf16 *q, *k, *v;
  Bf16* out;
  float* partial;  ///< [batch, heads, splits, D + 2] if splits > 1
  int heads, kv_heads, context;
  int query_stride;              ///< elements from one sequence's queries to the next one's: heads D, or more
  int splits, tokens_per_split;  ///< of the context
  float scale;                   ///< log2(e) / sqrt(D)
};

template <int D>
inline constexpr int kDecodeSharedBytes = 4 * 16 * (D + 2) * 4;

/// One token per sequence. Block (split, kv head, sequence): the rows are the heads of a group, at most 16. The four
/// warps take 16 keys in turn and combine their results at the end.
template <int D>
__global__ void __launch_bounds__(kAttentionThreads) decode_kernel(DecodeArgs args) {
  ROOFCAST_DYNAMIC_SHARED(shared);
  float* const outs = reinterpret_cast<float*>(shared);  // [4][16][D]
  float* const highs = outs + 4 * 16 * D;                // [4][16]
  float* const totals = highs + 4 * 16;                  // [4][16]
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4,
            t = lane % 4;
  const int split = static_cast<int>(blockIdx.x), kv_head = static_cast<int>(blockIdx.y);
  const std::size_t sequence = blockIdx.z;
  const int group = args.heads / args.kv_heads;
  const Bf16* const q = args.q + sequence * args.query_stride + kv_head * group * D;
  Queries<D> queries;
  queries.load(g < group ? q + g * D : nullptr, g + 8 < group ? q + (g + 8) * D : nullptr, t);
  Rows<D> rows;
  rows.clear();
  const std::size_t token_stride = static_cast<std::size_t>(args.kv_heads) * D;
  const std::size_t cache = (sequence * args.context * args.kv_heads + kv_head) * D;
  const Bf16 *const k = args.k + cache, *const v = args.v + cache;
  const int end = min(args.context, (split + 1) * args.tokens_per_split);
  for (int first = split * args.tokens_per_split + 16 * warp; first < end; first += 64) {
    const int last = end - 1 - first;  // tokens past the end read the last one and are masked
    const int visible[2] = {end - first, end - first};
    attend16<D>(
        queries, rows, LoadGlobal{}, [&](int i) { return k + (first + min(i, last)) * token_stride; },
        [&](int i) { return v + (first + min(i, last)) * token_stride; }, visible, args.scale, g, t);
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = warp * 16 + g + 8 * r;
    const float total = rows.whole_total(r);
    if (t == 0) {
      highs[row] = rows.highest[r];
      totals[row] = total;
    }
#pragma unroll
    for (int i = 0; i < D / 8; ++i) {
      float* const to = outs + row * D + 64 * (i / 8) + 16 * t + i % 8;
      to[0] = rows.out[i][2 * r];
      to[8] = rows.out[i][2 * r + 1];
    }
  }
  block_sync();
  for (int i = static_cast<int>(threadIdx.x); i < group * D; i += kAttentionThreads) {
    const int row = i / D, d = i % D;
    float highest = kNone;
    for (int w = 0; w < 4; ++w) highest = fmaxf(highest, highs[16 * w + row]);
    const float from = highest == kNone ? 0.0f : highest;
    float sum = 0.0f, total = 0.0f;
    for (int w = 0; w < 4; ++w) {
      const float weight = fast_exp2(highs[16 * w + row] - from);
      sum += weight * outs[(16 * w + row) * D + d];
      total += weight * totals[16 * w + row];
    }
    const std::size_t head = sequence * args.heads + kv_head * group + row;
    if (args.splits == 1) {
      args.out[head * D + d] = static_cast<Bf16>(pack_bf16(sum / total, 0.0f) & 0xFFFFu);
    } else {
      float* const to = args.partial + (head * args.splits + split) * (D + 2);
      to[d] = sum;
      if (d == 0) {
        to[D] = highest;
        to[D + 1] = total;
      }
    }
  }
}

/// Combines the splits: block = (sequence, head), thread = column.
template <int D>
__global__ void __launch_bounds__(D) combine_kernel(const float* partial, Bf16* out, int splits) {
  const std::size_t head = blockIdx.x;
  const int d = static_cast<int>(threadIdx.x);
  const float* const from = partial + head * splits * (D + 2);
  float highest = kNone;
  for (int s = 0; s < splits; ++s) highest = fmaxf(highest, from[s * (D + 2) + D]);
  float sum = 0.0f, total = 0.0f;
  for (int s = 0; s < splits; ++s) {
    const float weight = fast_exp2(from[s * (D + 2) + D] - highest);
    sum += weight * from[s * (D + 2) + d];
    total += weight * from[s * (D + 2) + D + 1];
  }
  out[head * D + d] = static_cast<Bf16>(pack_bf16(sum / total, 0.0f) & 0xFFFFu);
}

struct PrefillArgs {
  const Bf16 *q, *k, *v;
  Bf16* out;
  int heads, kv_heads, length;
  float scale;
};

/// Row strides of a tile in shared memory, in elements, such that eight lanes use each of the 32 banks once.
template <int D>
inline constexpr int kKeyStride = D + 32;
template <int D>
inline constexpr int kValueStride = D + 8;
template <int D>
inline constexpr int kPrefillStage = kPrefillTile*(kKeyStride<D> + kValueStride<D>);
template <int D>
inline constexpr int kPrefillSharedBytes = 2 * kPrefillStage<D> * 2;

/// Whole prompts, causal. Block (tile of 64 queries, head, sequence), the longest rows first; warp w has queries 16 w
/// to 16 w + 15. The next tile of keys and values is loaded while one is used.
template <int D>
__global__ void __launch_bounds__(kAttentionThreads) prefill_kernel(PrefillArgs args) {
  ROOFCAST_DYNAMIC_SHARED(shared);
  Bf16* const stages = reinterpret_cast<Bf16*>(shared);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4,
            t = lane % 4;
  const int tile = static_cast<int>(gridDim.x - 1 - blockIdx.x), head = static_cast<int>(blockIdx.y);
  const std::size_t sequence = blockIdx.z;
  const int kv_head = head / (args.heads / args.kv_heads), length = args.length;
  const std::size_t token_stride = static_cast<std::size_t>(args.kv_heads) * D;
  const std::size_t cache = (sequence * length * args.kv_heads + kv_head) * D;
  const auto copy_tile = [&](int j) {
    Bf16* const keys = stages + (j & 1) * kPrefillStage<D>;
    Bf16* const values = keys + kPrefillTile * kKeyStride<D>;
    for (int i = static_cast<int>(threadIdx.x); i < kPrefillTile * D / 8; i += kAttentionThreads) {
      const int row = i / (D / 8), column = 8 * (i % (D / 8));
      const std::size_t from = cache + min(j * kPrefillTile + row, length - 1) * token_stride + column;
      copy_async(keys + row * kKeyStride<D> + column, args.k + from);
      copy_async(values + row * kValueStride<D> + column, args.v + from);
    }
    copy_commit();
  };
  const int first_row = tile * kPrefillTile + 16 * warp;
  const auto query_row = [&](int i) {
    return ((sequence * length + min(first_row + i, length - 1)) * args.heads + head) * D;
  };
  Queries<D> queries;
  queries.load(args.q + query_row(g), args.q + query_row(g + 8), t);
  Rows<D> rows;
  rows.clear();
  copy_tile(0);
  for (int j = 0; j <= tile; ++j) {
    if (j < tile) {
      copy_tile(j + 1);
      copy_wait<1>();
    } else {
      copy_wait<0>();
    }
    block_sync();
    const Bf16* const keys = stages + (j & 1) * kPrefillStage<D>;
    const Bf16* const values = keys + kPrefillTile * kKeyStride<D>;
    for (int c = 0; c < kPrefillTile && j * kPrefillTile + c <= first_row + 15; c += 16) {
      const int start = j * kPrefillTile + c;
      const int visible[2] = {min(first_row + g, length - 1) + 1 - start,
                              min(first_row + g + 8, length - 1) + 1 - start};
      attend16<D>(
          queries, rows, LoadShared{}, [&](int i) { return keys + (c + i) * kKeyStride<D>; },
          [&](int i) { return values + (c + i) * kValueStride<D>; }, visible, args.scale, g, t);
    }
    block_sync();
  }
  const float inverse[2] = {1.0f / rows.whole_total(0), 1.0f / rows.whole_total(1)};
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (first_row + g + 8 * r >= length) continue;
    Bf16* const out = args.out + query_row(g + 8 * r) + 16 * t;
#pragma unroll
    for (int i = 0; i < D / 32; ++i) {  // 8 columns each; per half, first those in [0], then those in [1]
      std::uint32_t words[4];
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const int e = 8 * (i / 2) + 2 * w, c = 2 * r + i % 2;
        words[w] = pack_bf16(rows.out[e][c] * inverse[r], rows.out[e + 1][c] * inverse[r]);
      }
      store16(out + 64 * (i / 2) + 8 * (i % 2), words[0], words[1], words[2], words[3]);
    }
  }
}

}  // namespace roofcast::calibrate::kernels
