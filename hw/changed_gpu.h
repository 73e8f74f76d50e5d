#pragma once
// GPUs that differ from one in configs/hardware. Its measured constants do not apply to them directly.

#include <string>

#include "base/config_node.h"
#include "hw/gpu_spec.h"

namespace roofcast {

/// `gpu` with the constants of the GPU `name`, transferred, if that GPU's document has any.
ConfigTree with_constants_of(const ConfigTree& gpu, const std::string& name, const SourceLocation& named_at);

/// Handles `gpu: {name: h100-sxm, sm_count: 160}`. Such a chip is a different GPU and gets the named GPU's constants
/// transferred. Changes of memory size, price, node or constants alone do not count. `gpu` is the resolved form of
/// `written` (resolve_named).
ConfigTree with_changed_figures(const ConfigTree& written, const ConfigTree& gpu);

/// Whether two GPUs differ only in name, memory size, node and machine shares.
bool same_chip(const GpuSpec& a, const GpuSpec& b);

}  // namespace roofcast
