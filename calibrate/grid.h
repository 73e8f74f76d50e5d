#pragma once
// The points of the default run, those that say most first.
//   stream             kind (read, write, copy), bytes, blocks    bandwidth of memory and L2
//   tensor_rate        instruction (mma, wgmma)                   matrix units fed from registers
//   launch             kind (stream, graph, graph_node)           what a kernel costs beside its work
//   copy               direction, memory (pinned, pageable), bytes
//   elementwise        operation (rmsnorm, rope, silu_mul, quantize), tokens, width
//   gemm               m, n, k; dtype int4_wo is the GEMV of our own, the others go through cuBLASLt
//   skinny_gemm        m, n, k                                    the same product by a kernel of our own
//                      fp8_block and nvfp4: where CUDA 13's cuBLASLt has them
//   any, with load_ms  the same after so long without a pause: the clock that power and heat leave
//   attention_decode   batch, context_len, heads, kv_heads, head_dim
//   attention_prefill  batch, seq_len, heads, kv_heads, head_dim
//   moe                tokens, hidden_size, inter_size, top_k, experts
//   all_reduce         gpus, elements
//   decode_step        batch, context: one token through 32 layers shaped as Llama-3.1-8B, as one CUDA graph

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/record.h"

namespace roofcast::calibrate {

/// Values that one key of a shape takes.
struct Axis {
  std::string name;
  std::vector<Point::Value> values;
};
/// Every combination, the last axis fastest.
std::vector<Point> cross(const std::string& op, const std::string& dtype, int level, std::span<const Axis> axes);

/// Levels up to this one are run: 0 within a minute, 1 within three, 2 within ten.
int level_of_budget(Seconds budget);

/// The grid for a GPU of this size, ordered by level and, within one, by operator.
std::vector<Point> default_grid(const Device& device, int level);
/// What the CPU backend runs: a few points of each of its operators.
std::vector<Point> cpu_grid();

std::span<const std::string_view> grid_operators();

/// Passes over a working set in L2 that one launch makes: so many that its start and end, some 2 us, are a hundredth of
/// what 256 MiB take at 5 TB/s; odd, so that an exclusive or over all passes is that over one.
int rounds_in_l2(Bytes working_set);

}  // namespace roofcast::calibrate
