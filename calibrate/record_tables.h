#pragma once
// Measurements as the tables of kernel times that fit and validate take.

#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/csv.h"
#include "calibrate/record.h"
#include "hw/gpu_spec.h"

namespace roofcast::calibrate {

struct MeasuredTable {
  std::string_view op;  ///< of kernel_operators()
  CsvTable table;       ///< its rows say whose kernels they time, and whether the clock was that of a loaded GPU
};

/// One table an operator that has rows. Records without samples, and of operators that no table has (stream, launch,
/// ...), are passed over. Throws ConfigError at a record whose shape lacks a key.
std::vector<MeasuredTable> tables_of(const RecordFile& file);

/// Whether its clock was held down at most points, so that it is never cool: such points are rows as those of a loaded
/// device are. Elsewhere what was held down is left out.
bool is_always_held_down(const RecordFile& file);

/// The device that all records share. Throws ConfigError at the first that differs, or when there are none.
const Device& device_of(const RecordFile& file);

/// Is it the GPU of that datasheet: as many SMs, and memory within 3 %?
bool is_device(const Device& device, const GpuSpec& gpu);
/// The shipped GPU that the device is; null when there is none.
ConfigTree gpu_of_device(const Device& device);
/// Throws ConfigError when the file was measured on another GPU.
void require_device(const RecordFile& file, const GpuSpec& gpu);

}  // namespace roofcast::calibrate
