#pragma once
// Measurements as the tables of kernel times that fit and validate take.

#include <string_view>
#include <vector>

#include "base/csv.h"
#include "calibrate/record.h"
#include "hw/gpu_spec.h"

namespace roofcast {

struct MeasuredTable {
  std::string_view op;  ///< of kernel_operators()
  CsvTable table;
  /// A fit of a whole GPU takes it: a library's kernel that engines run too, or one bound by memory. Our prefill
  /// attention and grouped GEMM use instructions that every GPU has; they are fitted only when asked for by name.
  bool fit_by_default = true;
};

/// One table an operator that has rows. Records without samples, and of operators that no table has (stream, launch,
/// ...), are passed over. Throws ConfigError at a record whose shape lacks a key.
std::vector<MeasuredTable> tables_of(const RecordFile& file);

/// The device that all records share. Throws ConfigError at the first that differs, or when there are none.
const Device& device_of(const RecordFile& file);

/// Is it the GPU of that datasheet: as many SMs, and memory within 3 %?
bool is_device(const Device& device, const GpuSpec& gpu);
/// Throws ConfigError when the file was measured on another GPU.
void require_device(const RecordFile& file, const GpuSpec& gpu);

}  // namespace roofcast
