#pragma once
// Tables of measured streaming kernels and copies over PCIe: engine, operation, bytes, latency_us. `operation` is
// host_to_device or device_to_host (pinned memory), or the name of a kernel; `bytes` are those read and written.

#include <vector>

#include "calibrate/kernel_rows.h"
#include "calibrate/operators.h"

namespace roofcast::calibrate {

struct ElementwiseRow {
  RowHeader header;
  Bytes bytes{};
  bool host_copy = false;
};

std::vector<ElementwiseRow> read_elementwise_rows(const CsvTable& table);
KernelOperator elementwise_operator();

}  // namespace roofcast::calibrate
