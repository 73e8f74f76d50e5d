#pragma once
// The points of the default run, the most informative ones first.
//   stream             kind (read, write, copy), bytes, blocks    bandwidth of memory and L2
//   tensor_rate        instruction (mma, wgmma)                   matrix units fed from registers
// launch             kind (stream, graph, graph_node)           cost of a kernel besides its work
//   copy               direction, memory (pinned, pageable), bytes
//   elementwise        operation (rmsnorm, rope, silu_mul, quantize), tokens, width
// gemm               m, n, k; int4_wo runs our own GEMV, other dtypes run cuBLASLt
// skinny_gemm        m, n, k                                    the same GEMM by our own kernel
// fp8_block and nvfp4: if cuBLASLt of CUDA 13 supports them
// any, with load_ms  the same after this time without a pause: the clock under power and heat limits
//   attention_decode   batch, context_len, heads, kv_heads, head_dim
//   attention_prefill  batch, seq_len, heads, kv_heads, head_dim
//   moe                tokens, hidden_size, inter_size, top_k, experts
//   all_reduce         gpus, elements
//   decode_step        batch, context: one token through 32 layers shaped like Llama-3.1-8B, as one CUDA graph

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/record.h"

namespace roofcast::calibrate {

/// The values of one key of a shape.
struct Axis {
  std::string name;
  std::vector<Point::Value> values;
};
/// Every combination; the last axis varies fastest.
std::vector<Point> cross(const std::string& op, const std::string& dtype, int level, std::span<const Axis> axes);

/// The highest level that is run: 0 takes about one minute, 1 three, 2 ten.
int level_of_budget(Seconds budget);

/// The grid for a GPU of this size, ordered by level, then by operator.
std::vector<Point> default_grid(const Device& device, int level);
/// The grid of the CPU backend: a few points of each of its operators.
std::vector<Point> cpu_grid();

std::span<const std::string_view> grid_operators();

/// Passes of one launch over a working set in L2. Chosen so that start and end, about 2 us, are a hundredth of the time
/// of 256 MiB at 5 TB/s. Odd, so that the exclusive or over all passes equals that over one.
int rounds_in_l2(Bytes working_set);

}  // namespace roofcast::calibrate
