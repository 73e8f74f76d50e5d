#pragma once
// Tables of routed experts after an all-to-all, in the columns of NVIDIA's wide expert parallelism: engine, op_name,
// moe_dtype, num_tokens, rank0_num_tokens, hidden_size, inter_size, topk, num_experts, num_slots, moe_tp_size,
// moe_ep_size, distribution, latency in milliseconds.

#include <vector>

#include "calibrate/operators.h"
#include "calibrate/rows/moe.h"

namespace roofcast::calibrate {

/// op_name: moe_generation (masked), moe_context (contiguous), wideep_moe, wideep_moe_eplb (received).
std::vector<MoeRow> read_wide_expert_rows(const CsvTable& table);

KernelOperator wide_experts_operator();

}  // namespace roofcast::calibrate
