#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "hw/cost.h"
#include "hw/dtype.h"
#include "hw/parameters.h"

namespace roofcast {

enum class KernelFamily;

/// How softmax(Q K^T) V is computed.
enum class AttentionKernel {
  kFlash,    ///< tiles kept in SRAM, split over the context in decode (FlashDecoding)
  kNaive,    ///< the N x N matrix written to and read from memory
  kSplit,    ///< kFlash, split in every decode where FlashAttention-2 would not (FlashInfer)
  kUnsplit,  ///< tiles without the split: in decode one thread block walks a sequence's whole context
};

/// Heads of one GPU (after tensor parallelism).
struct AttentionHeads {
  double heads = 0, kv_heads = 0;
  double head_dim = 128, value_dim = 128;  ///< of K (and Q), of V (and the output)
  double window = 0;                       ///< tokens a query sees at most; 0 = all
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
  double mean_context = 0;  ///< tokens in the cache a sequence, before the window is applied
  double max_context = 0;
  double query_len = 1;
};

/// Constants of one prefill kernel: docs/equations-attention.md#prefill.
struct PrefillParameters {
  double launch_us = 12.0, launch_head_dim_us = 0.5;
  double tile_us = 1.8;
  double score_ns = 0.031, compute_fraction = 0.8, wide_head_penalty = 0.2;
  double imbalance = 1.4, lone_slowdown = 1.2, window_blocks = 1.0, overlap = 1.5;
  double bandwidth_fraction = 0.8, write_bandwidth_fraction = 0.8, token_ns = 0.4;
  double token_threads_ns = 0.0, combine_us = 5.0;
  static std::span<const Parameter<PrefillParameters>> fields();
};

/// Constants of one decode kernel: docs/equations-attention.md#decode. Each library uses some of them.
struct DecodeParameters {
  double launch_us = 9.0, launch_head_dim_us = 1.0, sequence_ns = 10.0, head_ns = 0.3;
  double tile_us = 2.2, tile_growth = 0.3, tile_row_us = 0.012;
  double row_ns = 1.7, row_growth = 2.0, row_group = 0.4, row_busy = 1.0, group_us = 0.1;
  double compute_fraction = 0.5;
  double convert_ns = 3.2, convert_wide_ns = 6.7;
  double window_us = 2.0, sink_us = 2.2, swap_us = 6.0, ungrouped_slowdown = 1.8;
  double uncut_slowdown = 1.0;
  double bandwidth_fraction = 0.88, l2_share = 0.5, l2_cliff = 1.0, benchmark_reuse = 0.0;
  double l2_bandwidth_tb_per_s = 8.0;
  double overlap = 3.0, scalar_overlap = 3.0;
  double combine_us = 1.4, split_ns = 90.0;
  double scalar_launch_us = 7.5, scalar_context_us = 2.0, scalar_busy_us = 2.0, scalar_wave_us = 6.0;
  double scalar_row_ns = 5.8, scalar_lone = 0.4, scalar_combine_us = 6.0;
  static std::span<const Parameter<DecodeParameters>> fields();
};

/// The attention kernel with its write of the new keys and values to the cache (TensorRT-LLM: also rope and the
/// quantization of an fp8 cache), for that is what engines run and benchmarks time as one. Source of the forms:
/// docs/equations-attention.md. Work counts visible (query, key) pairs; traffic is the visible cache, q and output.
/// Ideal: the roofline of that work and traffic.
Cost attention_prefill(const PrefillShape& shape, const AttentionHeads& heads, const Machine& machine);
Cost attention_decode(const DecodeShape& shape, const AttentionHeads& heads, const Machine& machine);

/// The same with given constants, as the fit needs them (calibrated, flash).
Cost attention_prefill_with(const PrefillShape& shape, const AttentionHeads& heads, const PrefillParameters& constants,
                            const GpuSpec& gpu, KernelFamily family, Timing timing);
Cost attention_decode_with(const DecodeShape& shape, const AttentionHeads& heads, const DecodeParameters& constants,
                           const GpuSpec& gpu, KernelFamily family, Timing timing);

/// What is assumed of a kernel that was not measured, by its library: the fit starts there, too.
PrefillParameters attention_prefill_prior(const GpuSpec& gpu, KernelFamily family, Dtype products);
DecodeParameters attention_decode_prior(const GpuSpec& gpu, KernelFamily family, Dtype kv);
/// Constants that the library's kernels do not have.
std::vector<std::string_view> unused_prefill_fields(const GpuSpec& gpu, KernelFamily family, Dtype products);
std::vector<std::string_view> unused_decode_fields(const GpuSpec& gpu, KernelFamily family, Dtype kv);
/// Does the engine run these heads by another kernel than the one that the constants describe? vLLM on Hopper heads
/// wider than 256 (FlashAttention-4) and on Blackwell those that trtllm-gen lacks (Triton); TensorRT-LLM on Blackwell
/// heads of 512 and windows over heads of 256 (FlashInfer). Source: the kernels named in aiconfigurator's tables.
bool is_other_kernel(const AttentionHeads& heads, const GpuSpec& gpu, KernelFamily family);
/// vLLM runs a prompt of one token, and a short chunk whose packed query rows fit one tile of the decode kernel, which
/// splits the context, as decode; TensorRT-LLM tells prompts from generated tokens and has no such path.
bool runs_as_decode(const PrefillShape& shape, const AttentionHeads& heads, KernelFamily family);
/// The format that the products of a prefill run in: fp8 caches are multiplied in fp8 where GPU and kernels can.
Dtype prefill_products(const AttentionHeads& heads, const GpuSpec& gpu, KernelFamily family);

}  // namespace roofcast
