#pragma once
// FlashAttention 1, 2 and 3 as their papers describe them, as opposed to the kernels that engines run today.

#include <optional>
#include <string_view>

#include "hw/kernels/attention.h"

namespace roofcast {

/// One generation, as its authors describe its loops.
struct FlashGeneration {
  std::string_view name;   ///< in a scenario: "flash1" ...
  double query_rows;       ///< per tile; 0: one thread block loops over all queries of a head
  double rescaling;        ///< fp32 operations per output value for each block of keys
  double shared_sums;      ///< warps that each write a partial output to shared memory for each block of keys
  bool outputs_in_memory;  ///< the loop over keys is the outer one: queries and outputs go through memory once per
                           ///< block of keys
  bool hides_softmax;      ///< one group of warps multiplies while another computes exponentials
  bool wide_units;         ///< wgmma: the matrix units at their full rate on Hopper
  bool splits_context;     ///< decode splits a context between thread blocks (FlashDecoding)
  double most_head_dim;
};
/// Null for kernels of other kinds.
const FlashGeneration* generation_of(AttentionKernel kernel);
/// The reason why a GPU cannot run it; nullopt if it can.
std::optional<std::string_view> cannot_run(const FlashGeneration& generation, const GpuSpec& gpu);

/// The time of a chunk of a prompt. With d = d_k + d_v and blocks of B keys, a (query, key) pair takes on an SM
///   GEMMs      2 d / (0.8 peak u / SMs), u = 2/3 for mma.sync on Hopper, else 1
///   softmax    one exponential, and four fp32 operations: scale and subtract, maximum, sum, conversion
///   rescaling  r d_v / B fp32 operations
///   sums       8 w d_v / B bytes through shared memory, 128 per clock: w partial outputs written and read
/// These add up; where softmax is hidden, the GEMMs overlap with the rest. Flash 1 moves q (16 bit), the output
/// (fp32, twice) and its statistics (fp32) for each block of keys that a query sees. Sources: FlashAttention
/// (arXiv:2205.14135, algorithm 1), FlashAttention-2 (arXiv:2307.08691, sections 3.1 to 3.3), FlashAttention-3
/// (arXiv:2407.08608, section 3).
Cost generation_prefill(const FlashGeneration& generation, const PrefillShape& shape, const AttentionHeads& heads,
                        const Machine& machine);

}  // namespace roofcast
