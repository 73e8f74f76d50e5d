#pragma once
// The file format of a GPU's constants: one block per kernel and number format.
//   {KERNEL: {FORMAT: {extends: KERNEL.FORMAT, constant: value, ..., fit: {...}}}}
// A block states the constants that its own rows determine. The others come from the block that it `extends` (FORMAT
// alone: of the same kernel), else from the same block in a file read earlier or transferred from another GPU, else
// from the defaults.

#include <array>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/config_node.h"
#include "base/config_reader.h"
#include "hw/efficiency.h"

namespace roofcast {

/// "KERNEL.FORMAT"
std::string place_of(const Kernel& kernel, Dtype dtype);
/// The kernel of such a place; null if there is none.
const Kernel* kernel_at(std::string_view place);
/// The block at a place; null if there is none.
ConstantsBlock block_at(const Efficiency& efficiency, std::string_view place);

/// By place, the block without its own constants. Blocks that inherit nothing are not in the map.
using BlocksBeneath = std::map<std::string, ConstantsBlock>;

/// Name of the map that applies to every kernel set. Other maps have the name of their set.
inline constexpr std::string_view kSharedMap = "shared";
/// Keys of `efficiency` that are not kernel sets.
inline constexpr std::array<std::string_view, 8> kEfficiencyKeys{
    kSharedMap,     "pooled_with", "carried_over_from",  "ampere_kernels_from",
    "matrix_limit", "memory_ecc",  "another_generation", "without_aiter"};

/// The blocks of a map laid over `beneath`. `record`, if given, receives what each block inherits. Throws ConfigError
/// for an unknown kernel, format or constant, and for a block that extends itself or a missing block.
Efficiency read_blocks(ConfigReader in, Efficiency beneath, BlocksBeneath* record = nullptr);

/// The map itself, or the contents of the file that it names, relative to the GPU's document.
ConfigTree constants_map(const ConfigTree& value);
/// The map efficiency.<whose> of a GPU file, inline or in its own file; null if there is none.
ConfigTree constants_in(const ConfigNode& gpu, std::string_view whose);
/// The block at a place in a map; null if absent or null.
ConfigTree block_in(const ConfigTree& map, std::string_view place);
/// What every block of a GPU's map inherits, or would inherit, when the kernel set `kernels` reads it. `whose`:
/// kSharedMap, the set, or a set that it extends.
BlocksBeneath blocks_beneath(const ConfigTree& gpu, const std::string& kernels, std::string_view whose);
/// The same, but each block in the map that a fit of the set writes it to. Fits start from it.
BlocksBeneath blocks_beneath(const ConfigTree& gpu, const std::string& kernels);
/// A map by the name of its set; null if there is none.
inline ConfigTree map_named(const std::map<std::string, ConfigTree, std::less<>>& maps, std::string_view whose) {
  const auto found = maps.find(whose);
  return found != maps.end() ? found->second : nullptr;
}
/// Whether a fit of a set writes a block to the shared map: that map has the block, and no map of the set overrides it.
/// `map_of` returns the map of a name, or null.
bool goes_to_shared(std::string_view place, const std::string& kernels,
                    const std::function<ConfigTree(std::string_view whose)>& map_of);

}  // namespace roofcast
