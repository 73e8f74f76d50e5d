#pragma once
// Tables of measured latent attention: engine, kernel, attn_dtype, kv_dtype, batch, seq_len or context_len, heads,
// latency_us.

#include <vector>

#include "calibrate/kernel_rows.h"
#include "calibrate/operators.h"
#include "hw/kernels/latent_attention.h"

namespace roofcast::calibrate {

struct LatentPrefillRow {
  RowHeader header;
  PrefillShape shape;
  LatentHeads heads;
};
struct LatentDecodeRow {
  RowHeader header;
  DecodeShape shape;
  LatentHeads heads;
};

std::vector<LatentPrefillRow> read_latent_prefill_rows(const CsvTable& table);
std::vector<LatentDecodeRow> read_latent_decode_rows(const CsvTable& table);

KernelOperator latent_prefill_operator();
KernelOperator latent_decode_operator();

}  // namespace roofcast::calibrate
