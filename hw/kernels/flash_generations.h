#pragma once
// FlashAttention 1, 2 and 3 as their papers describe them, apart from the kernels that engines run and measure today.

#include <optional>
#include <string_view>

#include "hw/kernels/attention.h"

namespace roofcast {

/// One generation, with what its authors say of its loops.
struct FlashGeneration {
  std::string_view name;   ///< in a scenario: "flash1" ...
  double query_rows;       ///< of a tile; 0: one block of threads walks all of a head's queries
  double rescaling;        ///< fp32 operations an output value takes for each block of keys
  double shared_sums;      ///< warps that each write a partial output to shared memory, once a block of keys
  bool outputs_in_memory;  ///< the loop over keys is outside: queries and outputs cross memory once a block of keys
  bool hides_softmax;      ///< one group of warps multiplies while another takes exponentials
  bool wide_units;         ///< wgmma: the matrix units at their full rate on Hopper
  bool splits_context;     ///< decode splits a context among blocks (FlashDecoding)
  double most_head_dim;
};
/// Null for kernels of other kinds.
const FlashGeneration* generation_of(AttentionKernel kernel);
/// Why a GPU cannot run it, or nothing.
std::optional<std::string_view> cannot_run(const FlashGeneration& generation, const GpuSpec& gpu);

/// The time of a prompt's chunk. With d = d_k + d_v and blocks of B keys, a (query, key) pair takes an SM
///   products   2 d / (0.8 peak u / SMs), u = 2/3 where a Hopper GPU is driven by mma.sync
///   softmax    one exponential, and four fp32 operations: scale and subtract, maximum, sum, conversion
///   rescaling  r d_v / B fp32 operations
///   sums       8 w d_v / B bytes through shared memory, 128 a clock: w partial outputs written and read
/// one after another, or the first beside the others where the softmax is hidden. Flash 1 moves q (16 bit), the output
/// twice and its statistics (fp32) once for each of the blocks of keys that a query sees. Sources: FlashAttention
/// (arXiv:2205.14135, algorithm 1), FlashAttention-2 (arXiv:2307.08691, sections 3.1 to 3.3), FlashAttention-3
/// (arXiv:2407.08608, section 3).
Cost generation_prefill(const FlashGeneration& generation, const PrefillShape& shape, const AttentionHeads& heads,
                        const Machine& machine);

}  // namespace roofcast
