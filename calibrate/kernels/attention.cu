#include "calibrate/kernels/attention.cuh"

#include <cmath>

#include "calibrate/kernels/cuda_runtime.h"
#include "calibrate/kernels/launchers.h"

namespace roofcast::calibrate::cuda {
namespace {

float scale_of(int head_dim) { return 1.442695041f / std::sqrt(static_cast<float>(head_dim)); }

template <int D>
void decode_as(cudaStream_t stream, const DecodeShape& s, const Bf16* q, const Bf16* k, const Bf16* v, Bf16* out,
               float* partial) {
  const int splits = decode_splits(s);
  const int per_split = static_cast<int>(round_up((s.context + splits - 1) / splits, 64));
  const kernels::DecodeArgs args{
      q, k, v, out, partial, s.heads, s.kv_heads, s.context, s.query_stride, splits, per_split, scale_of(D)};
  const dim3 grid(splits, s.kv_heads, s.batch);
  kernels::decode_kernel<D><<<grid, kernels::kAttentionThreads, kernels::kDecodeSharedBytes<D>, stream>>>(args);
  check(cudaGetLastError(), "launching decode attention");
  if (splits > 1) {
    kernels::combine_kernel<D><<<s.batch * s.heads, D, 0, stream>>>(partial, out, splits);
    check(cudaGetLastError(), "launching the end of decode attention");
  }
}

template <int D>
void prefill_as(cudaStream_t stream, int batch, const kernels::PrefillArgs& args) {
  constexpr int kShared = kernels::kPrefillSharedBytes<D>;
  check(cudaFuncSetAttribute(kernels::prefill_kernel<D>, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared),
        "asking for shared memory");
  const int tiles = (args.length + kernels::kPrefillTile - 1) / kernels::kPrefillTile;
  kernels::prefill_kernel<D><<<dim3(tiles, args.heads, batch), kernels::kAttentionThreads, kShared, stream>>>(args);
  check(cudaGetLastError(), "launching prefill attention");
}

}  // namespace

/// Enough splits for two blocks per SM, each with at least 128 tokens; all but the last have a multiple of 64.
int decode_splits(const DecodeShape& s) {
  const int wanted = (2 * s.sms + s.batch * s.kv_heads - 1) / (s.batch * s.kv_heads);
  const int most = s.context / 128 > 1 ? s.context / 128 : 1;
  const int splits = wanted < most ? wanted : most;
  const int per_split = static_cast<int>(round_up((s.context + splits - 1) / splits, 64));
  return (s.context + per_split - 1) / per_split;
}

std::size_t decode_workspace(const DecodeShape& s) {
  const int splits = decode_splits(s);
  if (splits == 1) return 1;
  return static_cast<std::size_t>(s.batch) * s.heads * splits * (s.head_dim + 2) * sizeof(float);
}

void decode_attention(cudaStream_t stream, const DecodeShape& shape, const Bf16* q, const Bf16* k, const Bf16* v,
                      Bf16* out, float* partial) {
  if (shape.heads > 16 * shape.kv_heads) throw Unsupported("decode attention of more than 16 heads a group");
  if (shape.head_dim == 64) return decode_as<64>(stream, shape, q, k, v, out, partial);
  if (shape.head_dim == 128) return decode_as<128>(stream, shape, q, k, v, out, partial);
  throw Unsupported("attention of a head dimension other than 64 and 128");
}

void prefill_attention(cudaStream_t stream, int batch, int length, int heads, int kv_heads, int head_dim, const Bf16* q,
                       const Bf16* k, const Bf16* v, Bf16* out) {
  const kernels::PrefillArgs args{q, k, v, out, heads, kv_heads, length, scale_of(head_dim)};
  if (head_dim == 64) return prefill_as<64>(stream, batch, args);
  if (head_dim == 128) return prefill_as<128>(stream, batch, args);
  throw Unsupported("attention of a head dimension other than 64 and 128");
}

}  // namespace roofcast::calibrate::cuda
