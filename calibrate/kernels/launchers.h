#pragma once
// The functions of the .cu files that the rest of this folder calls. All of them enqueue and return; they throw if CUDA
// rejects a launch.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "calibrate/random_data.h"

namespace roofcast::calibrate::cuda {

using Bf16 = std::uint16_t;

/// Random elements of random_data.h; the index is the element's position in the buffer.
enum class Fill { kBf16, kFp16, kInt8, kE4m3, kWords };
void fill(cudaStream_t stream, void* to, std::size_t count, Fill format, std::uint32_t seed);

void empty_kernel(cudaStream_t stream);
/// Keeps the device busy, so that the following work is queued before it starts.
void spin(cudaStream_t stream, std::uint64_t nanoseconds);

/// Streams over the same bytes `rounds` times in one kernel: one pass over data in L2 is shorter than a launch.
void read(cudaStream_t stream, int blocks, const void* in, std::size_t bytes, std::uint32_t* sums, int rounds = 1);
std::size_t read_sums(int blocks);  ///< number of words that it writes
void write(cudaStream_t stream, int blocks, void* out, std::size_t bytes, std::uint32_t pattern, int rounds = 1);
void copy(cudaStream_t stream, int blocks, const void* in, void* out, std::size_t bytes, int rounds = 1);

void rmsnorm(cudaStream_t stream, const Bf16* x, const Bf16* w, Bf16* out, int rows, int width, float epsilon);
void rope(cudaStream_t stream, const Bf16* x, const float* table, Bf16* out, int rows, int width);
void silu_mul(cudaStream_t stream, const Bf16* x, Bf16* out, int rows, int width);
void quantize(cudaStream_t stream, const Bf16* x, std::int8_t* out, float* scale, int rows, int width);

struct DecodeShape {
  int batch, context, heads, kv_heads, head_dim, query_stride, sms;
};
/// Size of `partial` in bytes; at least 1.
std::size_t decode_workspace(const DecodeShape& shape);
int decode_splits(const DecodeShape& shape);
void decode_attention(cudaStream_t stream, const DecodeShape& shape, const Bf16* q, const Bf16* k, const Bf16* v,
                      Bf16* out, float* partial);
void prefill_attention(cudaStream_t stream, int batch, int length, int heads, int kv_heads, int head_dim, const Bf16* q,
                       const Bf16* k, const Bf16* v, Bf16* out);

/// m up to 16, n a multiple of 16, k a multiple of 128.
void skinny_product(cudaStream_t stream, const Bf16* x, const Bf16* w, Bf16* y, int m, int n, int k);
void int4_product(cudaStream_t stream, const Bf16* x, const std::uint32_t* w, const Bf16* scale, Bf16* y, int m, int n,
                  int k);
/// `tiles` [count][3]: expert, first row, rows (at most 64). n must be a multiple of 128, k of 32.
void expert_product(cudaStream_t stream, const Bf16* x, const Bf16* w, Bf16* y, const int* tiles, int count, int n,
                    int k);
inline constexpr int kExpertTileRows = 64;

/// Instructions with operands from registers (mma), or for wgmma's second factor from shared memory.
enum class RateFormat { kBf16, kFp16, kFp8, kInt8 };
struct RateRun {
  RateFormat format;
  bool wgmma;
  int blocks, rounds;
};
double rate_flops(const RateRun& run);
inline constexpr int kRateColumns = 128;  ///< of the second factor; mma uses 8 of them
inline constexpr int kRateSets = 4;       ///< of factors, used in turn
inline constexpr int kRateUnroll = 8;     ///< instructions per round
/// The factors that instruction `u` of a round multiplies.
struct RateSets {
  int a, b;
};
ROOFCAST_BOTH constexpr RateSets rate_sets(int u) { return {u % kRateSets, u / 2 % kRateSets}; }
/// a [sets][16][8] words, b [sets][128][8] words: rows of 32 bytes along k. d [16][128] fp32 of one warp: rounds x the
/// sum of a b^T over the instructions of a round; mma fills the first 8 columns. `sink` [blocks 256] prevents the
/// compiler from removing the rest.
void run_rate(cudaStream_t stream, const RateRun& run, const std::uint32_t* a, const std::uint32_t* b, float* d,
              float* sink);

}  // namespace roofcast::calibrate::cuda
