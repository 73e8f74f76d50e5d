#pragma once
// Tables of measured attention: engine, kernel, attn_dtype, kv_dtype, batch, seq_len or context_len, heads, kv_heads,
// head_dim, sliding_window, latency_us.

#include <vector>

#include "calibrate/kernel_rows.h"
#include "calibrate/operators.h"
#include "hw/kernels/attention.h"

namespace roofcast::calibrate {

struct PrefillRow {
  RowHeader header;
  PrefillShape shape;
  AttentionHeads heads;
};
struct DecodeRow {
  RowHeader header;
  DecodeShape shape;
  AttentionHeads heads;
};

std::vector<PrefillRow> read_prefill_rows(const CsvTable& table);
std::vector<DecodeRow> read_decode_rows(const CsvTable& table);

KernelOperator attention_prefill_operator();
KernelOperator attention_decode_operator();

}  // namespace roofcast::calibrate
