#pragma once
// Shared by the decode kernels of latent attention: the distribution of work over the SMs, and priors.

#include "hw/kernels/latent/latent_kernel.h"

namespace roofcast::attention {

/// How the work is distributed over the SMs.
struct Balance {
  double grain = 64;         ///< tokens of the smallest part of a context
  double most_splits = 1e9;  ///< most parts of a context
  bool in_pairs = false;     ///< splits as if every tile had a second one
};

/// The longest chain of tiles on one SM. Rows are (head, token) pairs in tiles of 64; each tile loops over the latents
/// of its sequence. The work is distributed evenly over the SMs in parts of `grain` tokens:
///   path = (tiles per SM - 1) tile + max(blocks per SM, L / s) row,
///   row  = 2 (2 latent + rope) 64 / (compute_fraction F / SMs).
/// FlashAttention-3 splits in pairs: up to 64 heads, half of the SMs are idle.
LatentPath balanced_path(const DecodeShape& s, const LatentHeads& h, const LatentDecodeParameters& p, const Chip& chip,
                         const Balance& how);
/// Priors of a kernel as TensorRT-LLM calls it, and as vLLM does.
LatentDecodeParameters latent_decode_prior(const GpuSpec& gpu, Dtype kv);
LatentDecodeParameters vllm_latent_decode_prior(const GpuSpec& gpu, Dtype kv);

}  // namespace roofcast::attention
