#pragma once
// Multi-head latent attention (DeepSeek-V2, 2024): per token, one latent of latent_dim + rope_dim values is cached for
// all heads.

#include <span>

#include "hw/cost.h"
#include "hw/dtype.h"
#include "hw/kernels/attention.h"

namespace roofcast {

namespace attention {
class LatentPrefillKernel;
class LatentDecodeKernel;
}  // namespace attention

/// Heads on one GPU. The latent is replicated on every GPU.
struct LatentHeads {
  double heads = 0;
  double latent_dim = 512, rope_dim = 64;
  double qk_dim = 192, value_dim = 128;  ///< of the expanded heads, in prefill
  Dtype compute = Dtype::kBf16;
  Dtype kv = Dtype::kBf16;
  double cache_bytes_per_token = 0;  ///< 0: (latent_dim + rope_dim) elements of `kv`
  bool fp8_prompts = false;          ///< prompts over an fp8 cache are multiplied in fp8 (SGLang)
};

/// Attention over heads expanded from the latent; the GEMMs of the expansion are separate operators.
Cost latent_prefill(const PrefillShape& shape, const LatentHeads& heads, const Machine& machine);
/// Whether the engine runs this prompt or chunk as absorbed decode.
bool runs_as_decode(const PrefillShape& shape, const LatentHeads& heads, const GpuSpec& gpu, const KernelRules& rules);
/// Most new tokens per sequence that run as absorbed decode: 512 under vLLM with FlashAttention-3, 128 with FlashMLA
/// (fp8 caches), else 1; 0 under TensorRT-LLM. Source: vllm-project/vllm (Apache-2.0), vllm/v1/attention/backends/mla,
/// reorder_batch_threshold of each backend.
double absorbed_queries(const GpuSpec& gpu, Dtype kv, const KernelRules& rules);
/// Weight absorption: every head attends to the latent itself.
Cost latent_decode(const DecodeShape& shape, const LatentHeads& heads, const Machine& machine);

/// FlashMLA's kernels for attention to tokens chosen by an indexer: for prompts, and for decode over its fp8 cache.
enum class FlashMla { kNone, kPrefill, kDecode };
/// These kernels pad the heads of a GPU to 64, and to 128 for prompts on Blackwell.
Cost latent_sparse(const DecodeShape& shape, const LatentHeads& heads, FlashMla kernel, const Machine& machine);

/// The kernels that the rules choose.
const attention::LatentPrefillKernel& latent_prefill_kernel(const LatentHeads& heads, const GpuSpec& gpu,
                                                            const KernelRules& rules);
const attention::LatentDecodeKernel& latent_decode_kernel(const LatentHeads& heads, const GpuSpec& gpu,
                                                          const KernelRules& rules);
/// The same for given constants (kCalibrated).
Cost latent_prefill_with(const PrefillShape& shape, const LatentHeads& heads,
                         const attention::LatentPrefillKernel& kernel, const ConstantsBlock& constants,
                         const GpuSpec& gpu);
Cost latent_decode_with(const DecodeShape& shape, const LatentHeads& heads, const attention::LatentDecodeKernel& kernel,
                        const ConstantsBlock& constants, const GpuSpec& gpu);

}  // namespace roofcast
