#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "hw/cost.h"
#include "hw/dtype.h"
#include "hw/kernel.h"

namespace roofcast {

class KernelRules;
namespace attention {
class PrefillKernel;
class DecodeKernel;
}  // namespace attention

/// How softmax(Q K^T) V is computed.
enum class AttentionKernel {
  kFlash,    ///< tiles kept in SRAM, split over the context in decode (FlashDecoding)
  kNaive,    ///< the N x N matrix written to and read from memory
  kSplit,    ///< kFlash, but every decode splits the context, also where FlashAttention-2 would not (FlashInfer)
  kUnsplit,  ///< tiles without the split: in decode one thread block walks a sequence's whole context
  kFlash1,   ///< FlashAttention 1, 2 and 3 as published: hw/kernels/flash_generations.h
  kFlash2,
  kFlash3,
};

/// Heads of one GPU (after tensor parallelism).
struct AttentionHeads {
  double heads = 0, kv_heads = 0;
  double head_dim = 128, value_dim = 128;  ///< of K (and Q), of V (and the output)
  double window = 0;                       ///< most tokens that a query sees; 0: all
  Dtype compute = Dtype::kBf16;            ///< format of the two products
  Dtype kv = Dtype::kBf16;                 ///< format of the cache
  AttentionKernel kernel = AttentionKernel::kFlash;
  bool shared_reads = true;  ///< decode kernels that read the cache once for a group's query heads exist
};

/// `batch` equal causal chunks of `query_len` new tokens, each after `context_before` cached ones.
struct PrefillShape {
  double batch = 1, query_len = 0, context_before = 0;
};

/// One step of `batch` sequences of `query_len` tokens each (1; k+1 when verifying k drafts).
/// Cost grows with the sum of the contexts; the longest one bounds it from below.
struct DecodeShape {
  double batch = 0;
  double mean_context = 0;  ///< cached tokens per sequence, before the window is applied
  double max_context = 0;
  double query_len = 1;
};

/// The attention kernel together with its write of the new keys and values to the cache (TensorRT-LLM: also rope and
/// the quantization of an fp8 cache): engines run them as one. Source of the forms: docs/equations-attention.md. Work
/// counts visible (query, key) pairs; traffic is the visible cache, q and output. Ideal: the roofline of that work and
/// traffic.
Cost attention_prefill(const PrefillShape& shape, const AttentionHeads& heads, const Machine& machine);
Cost attention_decode(const DecodeShape& shape, const AttentionHeads& heads, const Machine& machine);

/// The same with given constants (calibrated, flash).
Cost attention_prefill_with(const PrefillShape& shape, const AttentionHeads& heads,
                            const attention::PrefillKernel& kernel, const ConstantsBlock& constants,
                            const GpuSpec& gpu);
Cost attention_decode_with(const DecodeShape& shape, const AttentionHeads& heads, const attention::DecodeKernel& kernel,
                           const ConstantsBlock& constants, const GpuSpec& gpu);
/// The kernel that the rules name.
const attention::DecodeKernel& decode_kernel(const DecodeShape& shape, const AttentionHeads& heads, const GpuSpec& gpu,
                                             const KernelRules& rules);

const attention::PrefillKernel& prefill_kernel(const PrefillShape& shape, const AttentionHeads& heads,
                                               const GpuSpec& gpu, const KernelRules& rules);
/// Does the engine run this prompt or chunk as decode?
bool runs_as_decode(const PrefillShape& shape, const AttentionHeads& heads, const KernelRules& rules);
/// The decode step that such a chunk is.
DecodeShape as_decode(const PrefillShape& shape);
/// The format of a prefill's products: fp8 where the cache has it and both GPU and kernel can multiply it, else bf16.
Dtype prefill_products(const AttentionHeads& heads, const attention::PrefillKernel& kernel, const GpuSpec& gpu);

}  // namespace roofcast
