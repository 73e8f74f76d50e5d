#pragma once
// GPUs that differ from one of configs/hardware: its constants no longer hold for them as measured.

#include <string>

#include "base/config_node.h"
#include "hw/gpu_spec.h"

namespace roofcast {

/// `gpu` with the constants of the GPU `name`, if it has any in its own document, as carried over from it.
ConfigTree with_constants_of(const ConfigTree& gpu, const std::string& name, const Mark& named_at);

/// A scenario may write `gpu: {name: h100-sxm, sm_count: 160}`. Such a chip is another one: it takes the named GPU's
/// constants as carried over. Changes of memory size, price, node or constants alone leave them. `gpu`: what `written`
/// stands for (resolve_named).
ConfigTree with_changed_figures(const ConfigTree& written, const ConfigTree& gpu);

/// Whether two GPUs differ in nothing but their names, memory sizes, nodes and the shares that a machine delivers.
bool same_chip(const GpuSpec& a, const GpuSpec& b);

}  // namespace roofcast
