#include "hw/fabric.h"

#include <array>
#include <string>
#include <vector>

#include "base/text.h"

namespace roofcast {
namespace {

/// In the order of the enumeration.
constexpr std::array<FabricTraits, 8> kFabrics{{
    {Fabric::kPcie, "pcie", false, "PCIe alone"},
    {Fabric::kNvlinkMesh, "nvlink_mesh", false, "NVLinks between pairs of GPUs, no switch"},
    {Fabric::kNvSwitch, "nvswitch", true, "NVLink switches in the node: HGX, DGX"},
    {Fabric::kNvlDomain, "nvl_domain", true, "NVLink switches in a rack: NVL72"},
    {Fabric::kXgmiMesh, "xgmi_mesh", false, "Infinity Fabric links between pairs of GPUs: MI300X"},
    {Fabric::kMesh, "mesh", false, "other direct links between pairs of processors"},
    {Fabric::kSwitch, "switch", true, "other switches: a rack of MI455X"},
    {Fabric::kTorus, "torus", true, "links to neighbours in a torus: TPUs, Trainium"},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kFabrics.size(); ++i) {
    if (kFabrics[i].fabric != static_cast<Fabric>(i)) return false;
  }
  return true;
}
static_assert(in_order());

}  // namespace

const FabricTraits& traits_of(Fabric fabric) {
  switch (fabric) {  // every fabric needs a row
    case Fabric::kPcie:
    case Fabric::kNvlinkMesh:
    case Fabric::kNvSwitch:
    case Fabric::kNvlDomain:
    case Fabric::kXgmiMesh:
    case Fabric::kMesh:
    case Fabric::kSwitch:
    case Fabric::kTorus:
      return kFabrics[static_cast<std::size_t>(fabric)];
  }
  fail_check("fabric", __FILE__, __LINE__, "no such fabric");
}

double share_of_links(Fabric fabric, double local, double domain) {
  if (domain <= 1.0 || local >= domain) return 1.0;
  if (fabric == Fabric::kTorus) return 0.5;
  return traits_of(fabric).switched ? 1.0 : (local - 1.0) / (domain - 1.0);
}

Fabric parse_fabric(std::string_view name, const SourceLocation& location) {
  std::vector<std::string> names;
  for (const FabricTraits& traits : kFabrics) {
    if (traits.name == name) return traits.fabric;
    names.emplace_back(traits.name);
  }
  throw ConfigError(location, unknown_name("fabric", name, names));
}

}  // namespace roofcast
