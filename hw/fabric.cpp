#include "hw/fabric.h"

#include <array>
#include <string>
#include <vector>

#include "base/text.h"

namespace roofcast {
namespace {

/// In the order of the enumeration.
constexpr std::array<FabricTraits, 6> kFabrics{{
    {Fabric::kPcie, "pcie", false, "PCIe alone"},
    {Fabric::kNvlinkMesh, "nvlink_mesh", false, "NVLinks between pairs of GPUs, no switch"},
    {Fabric::kNvSwitch, "nvswitch", true, "NVLink switches in the node: HGX, DGX"},
    {Fabric::kNvlDomain, "nvl_domain", true, "NVLink switches over a rack: NVL72"},
    {Fabric::kXgmiMesh, "xgmi_mesh", false, "Infinity Fabric links between pairs of GPUs: MI300X"},
    {Fabric::kMesh, "mesh", false, "links of another kind between pairs of processors"},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kFabrics.size(); ++i) {
    if (kFabrics[i].fabric != static_cast<Fabric>(i)) return false;
  }
  return true;
}
static_assert(in_order());

}  // namespace

std::span<const FabricTraits> fabrics() { return kFabrics; }

const FabricTraits& traits_of(Fabric fabric) {
  switch (fabric) {  // a new one needs a row
    case Fabric::kPcie:
    case Fabric::kNvlinkMesh:
    case Fabric::kNvSwitch:
    case Fabric::kNvlDomain:
    case Fabric::kXgmiMesh:
    case Fabric::kMesh:
      return kFabrics[static_cast<std::size_t>(fabric)];
  }
  fail_check("fabric", __FILE__, __LINE__, "no such fabric");
}

Fabric parse_fabric(std::string_view name, const Mark& mark) {
  std::vector<std::string> names;
  for (const FabricTraits& traits : kFabrics) {
    if (traits.name == name) return traits.fabric;
    names.emplace_back(traits.name);
  }
  throw ConfigError(mark, unknown_name("fabric", name, names));
}

}  // namespace roofcast
