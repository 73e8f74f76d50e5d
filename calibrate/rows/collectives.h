#pragma once
// Tables of measured collectives.
//   allreduce   engine, dtype, gpus, elements, mode (blank or graph: from a CUDA graph; eager), latency_us
// nccl        engine, op, dtype, gpus, elements, latency_us; elements of the whole message (all_gather: of the gathered
// one)

#include <vector>

#include "calibrate/kernel_rows.h"
#include "calibrate/operators.h"
#include "hw/collectives.h"

namespace roofcast::calibrate {

struct CollectiveRow {
  RowHeader header;
  Collective kind = Collective::kAllReduce;
  Bytes bytes{};  ///< as hw/collectives.h counts them
  Group group;
};

std::vector<CollectiveRow> read_all_reduce_rows(const CsvTable& table);
std::vector<CollectiveRow> read_nccl_rows(const CsvTable& table);

KernelOperator all_reduce_operator();
KernelOperator nccl_operator();

}  // namespace roofcast::calibrate
