#pragma once
// The constants of a GPU as they stand in files: blocks by kernel and format, each with what lies beneath it.
//   {KERNEL: {FORMAT: {extends: KERNEL.FORMAT, constant: value, ..., fit: {...}}}}
// A block states what its own rows tell. What it leaves out holds as in the block that it `extends` (FORMAT alone: of
// the same kernel), else as in the block beneath (a file read before, or another GPU's by carry-over), else its
// default.

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
/// The kernel of a place; null where there is no such kernel.
const Kernel* kernel_at(std::string_view place);
/// The block at a place; null where there is none.
ConstantsBlock block_at(const Efficiency& efficiency, std::string_view place);

/// By place: what a block would be without constants of its own. A block with nothing beneath is not in the map.
using BlocksBeneath = std::map<std::string, ConstantsBlock>;

/// The map that every set of kernels reads; the others bear the name of theirs.
inline constexpr std::string_view kSharedMap = "shared";
/// Keys of `efficiency` that are no set of kernels.
inline constexpr std::array<std::string_view, 8> kEfficiencyKeys{
    kSharedMap,     "pooled_with", "carried_over_from",  "ampere_kernels_from",
    "matrix_limit", "memory_ecc",  "another_generation", "without_aiter"};

/// The blocks of a map over `beneath`. `record`, if given, gets what lies beneath each. Throws ConfigError for an
/// unknown kernel, format or constant, and for a block that extends none, or itself.
Efficiency read_blocks(ConfigReader in, Efficiency beneath, BlocksBeneath* record = nullptr);

/// A map as it is, or the file beside the document that names it.
ConfigTree constants_map(const ConfigTree& value);
/// The map under efficiency.<whose> of a GPU file, inline or in the file it names; null when there is none.
ConfigTree constants_in(const ConfigNode& gpu, std::string_view whose);
/// The block at a place of a map of blocks; null where it has none, or is null.
ConfigTree block_in(const ConfigTree& map, std::string_view place);
/// What lies beneath every block that one map of a GPU has, or could have, where a set of kernels reads it. `whose`:
/// kSharedMap, the set, or one that it extends.
BlocksBeneath blocks_beneath(const ConfigTree& gpu, const std::string& kernels, std::string_view whose);
/// The same of each block in the map that a fit of the set puts it into: fits start there.
BlocksBeneath blocks_beneath(const ConfigTree& gpu, const std::string& kernels);
/// One of some maps by the name of its set; null where it is none of them.
inline ConfigTree map_named(const std::map<std::string, ConfigTree, std::less<>>& maps, std::string_view whose) {
  const auto found = maps.find(whose);
  return found != maps.end() ? found->second : nullptr;
}
/// Whether a fit of a set puts a block into the shared map: it stands there, and in no map over it.
/// `map_of` gives the map of a name, or null.
bool goes_to_shared(std::string_view place, const std::string& kernels,
                    const std::function<ConfigTree(std::string_view whose)>& map_of);

}  // namespace roofcast
