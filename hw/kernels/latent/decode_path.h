#pragma once
// What decode kernels of latent attention share: how they spread their work, and their priors.

#include "hw/kernels/latent/latent_kernel.h"

namespace roofcast::attention {

/// How the work is spread over the SMs.
struct Balance {
  double grain = 64;         ///< tokens of the smallest part of a context
  double most_splits = 1e9;  ///< parts of a context
  bool in_pairs = false;     ///< cuts as if every tile had a second one
};

/// Rows are (head, token) pairs in tiles of 64, and each tile of rows walks the latents of its sequence. The work is
/// spread evenly over the SMs, cut at `grain` tokens: path = (tiles per SM - 1) tile + max(blocks per SM, L / s) row,
/// row = 2 (2 latent + rope) 64 / (compute_fraction F / SMs). FlashAttention-3 cuts in pairs: up to 64 heads half of
/// the SMs stay idle.
LatentPath balanced_path(const DecodeShape& s, const LatentHeads& h, const LatentDecodeParameters& p, const Chip& chip,
                         const Balance& how);
/// What is assumed of a kernel as TensorRT-LLM calls it, and as vLLM does.
LatentDecodeParameters latent_decode_prior(const GpuSpec& gpu, Dtype kv);
LatentDecodeParameters vllm_latent_decode_prior(const GpuSpec& gpu, Dtype kv);

}  // namespace roofcast::attention
