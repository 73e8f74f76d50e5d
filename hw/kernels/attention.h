#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "hw/cost.h"
#include "hw/dtype.h"
#include "hw/kernel_fwd.h"

namespace roofcast {

namespace attention {
class PrefillKernel;
class DecodeKernel;
}  // namespace attention

/// How softmax(Q K^T) V is computed.
enum class AttentionKernel {
  kFlash,    ///< tiles in SRAM; decode splits the context (split-KV, FlashDecoding)
  kNaive,    ///< the N x N score matrix is written to memory and read back
  kSplit,    ///< kFlash, but every decode is split-KV, also where FlashAttention-2 would not split (FlashInfer)
  kUnsplit,  ///< tiles without split-KV: in decode one thread block reads a sequence's whole context
  kFlash1,   ///< FlashAttention 1, 2 and 3 as published: hw/kernels/flash_generations.h
  kFlash2,
  kFlash3,
};

/// Heads on one GPU (after tensor parallelism).
struct AttentionHeads {
  double heads = 0, kv_heads = 0;
  double head_dim = 128, value_dim = 128;  ///< of K (and Q), of V (and the output)
  double window = 0;                       ///< most tokens that a query sees; 0: all
  Dtype compute = Dtype::kBf16;            ///< format of the two products
  Dtype kv = Dtype::kBf16;                 ///< format of the cache
  AttentionKernel kernel = AttentionKernel::kFlash;
  bool shared_reads = true;  ///< there are decode kernels that read the cache once for all query heads of a group
};

/// `batch` equal causal chunks of `query_len` new tokens, each after `context_before` cached ones.
struct PrefillShape {
  double batch = 1, query_len = 0, context_before = 0;
};

/// One step of `batch` sequences with `query_len` new tokens each (1; k+1 when verifying k drafts). The cost grows with
/// the sum of the contexts; the longest context is a lower bound.
struct DecodeShape {
  double batch = 0;
  double mean_context = 0;  ///< cached tokens per sequence, before the window is applied
  double max_context = 0;
  double query_len = 1;
};

/// The attention kernel and the write of the new keys and values to the cache, which engines run as one (TensorRT-LLM:
/// also RoPE and the quantization of an fp8 cache). Source of the equations: docs/equations-attention.md. Work counts
/// the visible (query, key) pairs; traffic is the visible cache, q and the output. At kIdeal, the time is the roofline
/// of both.
Cost attention_prefill(const PrefillShape& shape, const AttentionHeads& heads, const Machine& machine);
Cost attention_decode(const DecodeShape& shape, const AttentionHeads& heads, const Machine& machine);

/// The same for given constants (kCalibrated, flash kernels).
Cost attention_prefill_with(const PrefillShape& shape, const AttentionHeads& heads,
                            const attention::PrefillKernel& kernel, const ConstantsBlock& constants,
                            const GpuSpec& gpu);
Cost attention_decode_with(const DecodeShape& shape, const AttentionHeads& heads, const attention::DecodeKernel& kernel,
                           const ConstantsBlock& constants, const GpuSpec& gpu);
/// The kernel that the rules choose.
const attention::DecodeKernel& decode_kernel(const DecodeShape& shape, const AttentionHeads& heads, const GpuSpec& gpu,
                                             const KernelRules& rules);

const attention::PrefillKernel& prefill_kernel(const PrefillShape& shape, const AttentionHeads& heads,
                                               const GpuSpec& gpu, const KernelRules& rules);
/// Whether the engine runs this prompt or chunk as decode.
bool runs_as_decode(const PrefillShape& shape, const AttentionHeads& heads, const KernelRules& rules);
/// Such a chunk as a decode step.
DecodeShape as_decode(const PrefillShape& shape);
/// The format of the two GEMMs in prefill: fp8 if the cache is fp8 and GPU and kernel can multiply it, else bf16.
Dtype prefill_products(const AttentionHeads& heads, const attention::PrefillKernel& kernel, const GpuSpec& gpu);

}  // namespace roofcast
