#pragma once
// Multi-head latent attention (DeepSeek-V2, 2024): one latent of latent_dim + rope_dim values a token
// is cached for all heads.

#include <span>

#include "hw/cost.h"
#include "hw/dtype.h"
#include "hw/kernels/attention.h"
#include "hw/parameters.h"

namespace roofcast {

/// Heads of one GPU; the latent is replicated, not sharded.
struct LatentHeads {
  double heads = 0;
  double latent_dim = 512, rope_dim = 64;
  double qk_dim = 192, value_dim = 128;  ///< of the expanded heads, in prefill
  Dtype compute = Dtype::kBf16;
  Dtype kv = Dtype::kBf16;
  double cache_bytes_per_token = 0;  ///< 0: (latent_dim + rope_dim) elements of `kv`
  bool fp8_prompts = false;          ///< vLLM's kernels, as SGLang calls them: prompts over an fp8 cache in fp8
};

/// Constants of one prefill kernel: docs/equations-attention.md#latent-prefill.
struct LatentPrefillParameters {
  double launch_us = 14.0, eager_device_us = 0.0, eager_host_us = 0.0;
  double tile_us = 1.0, compute_fraction = 0.64;
  double imbalance = 1.45, lone_slowdown = 1.0, overlap = 4.0;
  double bandwidth_fraction = 0.9, write_bandwidth_fraction = 0.9, token_ns = 0.5;
  static std::span<const Parameter<LatentPrefillParameters>> fields();
};
/// Constants of one decode kernel: docs/equations-attention.md#latent-decode.
struct LatentDecodeParameters {
  double launch_us = 12.0, launch_heads_us = 2.5, eager_device_us = 0.0, eager_host_us = 0.0;
  double sequence_ns = 5.0, tile_us = 4.0, tile_head_us = 0.15, compute_fraction = 0.9, pairing = 0.4;
  double reread = 0.3, overlap = 2.2, bandwidth_fraction = 0.9, l2_share = 1.0, l2_bandwidth_tb_per_s = 2.6;
  double combine_us = 0.5;
  static std::span<const Parameter<LatentDecodeParameters>> fields();
};

/// Expanded to full heads; the expansion's GEMMs are operators of their own.
Cost latent_prefill(const PrefillShape& shape, const LatentHeads& heads, const Machine& machine);
/// The format that the products run in: fp8 caches are multiplied in fp8 where GPU and kernels can. Ada has fp8 units,
/// but TensorRT-LLM's latent kernels there keep 16 bit (mFP8ContextMLA of its attention op).
Dtype latent_products(const LatentHeads& heads, const GpuSpec& gpu, KernelFamily family);
/// The same in prefill: vLLM multiplies in 16 bit on Blackwell whatever the cache, unless `fp8_prompts`.
Dtype latent_prompt_products(const LatentHeads& heads, const GpuSpec& gpu, KernelFamily family);
/// vLLM decodes prompts and chunks of up to `attention::absorbed_queries` tokens: hundreds on Hopper, elsewhere one.
bool runs_as_decode(const PrefillShape& shape, const LatentHeads& heads, const GpuSpec& gpu, KernelFamily family);
/// Absorbed: every head attends to the latent itself.
Cost latent_decode(const DecodeShape& shape, const LatentHeads& heads, const Machine& machine);

/// FlashMLA's kernels for attention to what an indexer chose: of prompts, and of new tokens over its fp8 cache.
enum class FlashMla { kNone, kPrefill, kDecode };
/// They compute with the heads of a GPU padded to 64, on Blackwell in prompts to 128.
Cost latent_sparse(const DecodeShape& shape, const LatentHeads& heads, FlashMla kernel, const Machine& machine);

/// The same with given constants, as the fit needs them (calibrated).
Cost latent_prefill_with(const PrefillShape& shape, const LatentHeads& heads, const LatentPrefillParameters& constants,
                         const GpuSpec& gpu, KernelFamily family, Timing timing);
Cost latent_decode_with(const DecodeShape& shape, const LatentHeads& heads, const LatentDecodeParameters& constants,
                        const GpuSpec& gpu, KernelFamily family, Timing timing);

/// What is assumed of a kernel that was not measured, and the constants that it does not have.
LatentPrefillParameters latent_prefill_prior(const GpuSpec& gpu, KernelFamily family, Dtype kv);
LatentDecodeParameters latent_decode_prior(const GpuSpec& gpu, KernelFamily family, Dtype kv);
std::vector<std::string_view> unused_latent_prefill_fields(const GpuSpec& gpu, KernelFamily family, Dtype kv);
std::vector<std::string_view> unused_latent_decode_fields(const GpuSpec& gpu, KernelFamily family, Dtype kv);

}  // namespace roofcast
