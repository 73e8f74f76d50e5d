#pragma once
// Tables of DeepEP's dispatch and combine: engine, node_num, hidden_size, num_token, num_topk, num_experts, and the
// times of both directions. A rank sends num_token tokens; a node has as many ranks as the GPU's node has GPUs.

#include <vector>

#include "calibrate/operators.h"
#include "hw/exchange.h"

namespace roofcast::calibrate {

/// One direction of a table's row; each table row gives two.
struct ExchangeRow {
  RowHeader header;
  ExchangeShape shape;
};

/// Low-latency mode if the table has dispatch_avg_t_us and combine_avg_t_us; normal mode if it has transmit_us,
/// notify_us and sms of each direction.
std::vector<ExchangeRow> read_exchange_rows(const CsvTable& table, ExchangeKernel kernel, const GpuSpec& gpu);

KernelOperator low_latency_exchange_operator();
KernelOperator normal_exchange_operator();

}  // namespace roofcast::calibrate
