#pragma once
// What connects the GPUs of a node or rack, and what it can do.

#include <span>
#include <string_view>

#include "base/error.h"

namespace roofcast {

enum class Fabric {
  kPcie,        ///< PCIe switches and the host bridges alone
  kNvlinkMesh,  ///< NVLinks from GPU to GPU, without a switch
  kNvSwitch,    ///< NVLink switches of one node
  kNvlDomain,   ///< NVLink switches of a rack
  kXgmiMesh,    ///< AMD Infinity Fabric from GPU to GPU
  kMesh,        ///< direct links of another vendor
  kSwitch,      ///< switches of another vendor
  kTorus,       ///< links to the neighbours in a torus
};

struct FabricTraits {
  Fabric fabric;
  std::string_view name;  ///< key `fabric` of a node
  bool switched;          ///< any two GPUs reach each other; else each pair has links of its own
  std::string_view help;
};

const FabricTraits& traits_of(Fabric fabric);
/// Is it made of NVLinks?
inline bool is_nvlink(Fabric f) {
  return f == Fabric::kNvlinkMesh || f == Fabric::kNvSwitch || f == Fabric::kNvlDomain;
}
/// The share of a GPU's links that a group of `local` GPUs in a domain of `domain` can use. In a mesh each pair has
/// links of its own: (local - 1) of (domain - 1). A slice of a torus passes data on along rings and is assumed to use
/// half of the links; the whole torus uses all.
double share_of_links(Fabric fabric, double local, double domain);
inline std::string_view name_of(Fabric fabric) { return traits_of(fabric).name; }
/// Throws ConfigError at `mark` that names the nearest fabric.
Fabric parse_fabric(std::string_view name, const Mark& mark);

}  // namespace roofcast
