#pragma once
// The interconnect of the GPUs in a node or rack, and its capabilities.

#include <span>
#include <string_view>

#include "base/error.h"

namespace roofcast {

enum class Fabric {
  kPcie,        ///< only PCIe switches and host bridges
  kNvlinkMesh,  ///< direct NVLinks between GPUs, without a switch
  kNvSwitch,    ///< NVLink switches within a node
  kNvlDomain,   ///< NVLink switches within a rack
  kXgmiMesh,    ///< direct AMD Infinity Fabric links between GPUs
  kMesh,        ///< direct links of another vendor
  kSwitch,      ///< switches of another vendor
  kTorus,       ///< links to neighbours in a torus
};

struct FabricTraits {
  Fabric fabric;
  std::string_view name;  ///< key `fabric` of a node
  bool switched;          ///< any two GPUs have the full bandwidth; else each pair has its own links
  std::string_view help;
};

const FabricTraits& traits_of(Fabric fabric);
/// Whether it consists of NVLinks.
inline bool is_nvlink(Fabric f) {
  return f == Fabric::kNvlinkMesh || f == Fabric::kNvSwitch || f == Fabric::kNvlDomain;
}
/// The share of a GPU's links that a group of `local` GPUs can use in a domain of `domain`. In a mesh each pair has its
/// own links: (local - 1) / (domain - 1). A slice of a torus sends along rings and is assumed to use half of the links;
/// the whole torus uses all.
double share_of_links(Fabric fabric, double local, double domain);
inline std::string_view name_of(Fabric fabric) { return traits_of(fabric).name; }
/// Throws ConfigError at `location`; the message names the nearest fabric.
Fabric parse_fabric(std::string_view name, const SourceLocation& location);

}  // namespace roofcast
