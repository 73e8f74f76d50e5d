#pragma once
// Measurements converted to the tables of kernel times that `fit` and `validate` read.

#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/csv.h"
#include "calibrate/record.h"
#include "hw/gpu_spec.h"

namespace roofcast::calibrate {

struct MeasuredTable {
  std::string_view op;  ///< a name in kernel_operators()
  CsvTable table;       ///< its rows say whose kernels they time, and whether the GPU was under load
};

/// One table per operator that has rows. Records without samples are skipped, as are those of operators without tables
/// (stream, launch, ...). Throws ConfigError at a record whose shape lacks a key.
std::vector<MeasuredTable> tables_of(const RecordFile& file);

/// Whether most points were throttled, so that the GPU is never cool. Such points are then used as rows of a GPU under
/// load; otherwise throttled points are left out.
bool is_always_held_down(const RecordFile& file);

/// The device of all records. Throws ConfigError at the first record of another device, or if there are no records.
const Device& device_of(const RecordFile& file);

/// Whether it is the GPU of that datasheet: the same number of SMs, and memory within 3 %.
bool is_device(const Device& device, const GpuSpec& gpu);
/// The shipped GPU that matches the device; null if there is none.
ConfigTree gpu_of_device(const Device& device);
/// Throws ConfigError if the file was measured on another GPU.
void require_device(const RecordFile& file, const GpuSpec& gpu);

}  // namespace roofcast::calibrate
