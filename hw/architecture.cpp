#include "hw/architecture.h"

#include <array>
#include <string>
#include <vector>

#include "base/choice.h"
#include "base/text.h"

namespace roofcast {
namespace {

using A = Architecture;
using M = MatrixUnits;
/// In the order of the enumeration.
constexpr std::array<ArchitectureTraits, 13> kArchitectures{{
    {A::kGeneric, "generic", M::kNone, true, "any other processor (TPU, Trainium, Gaudi): priced by a roofline"},
    {A::kCpu, "cpu", M::kNone, true, "server and desktop CPUs: priced by a roofline"},
    {A::kApple, "apple", M::kNone, true, "GPUs of Apple's M series: priced by a roofline"},
    {A::kVolta, "volta", M::kNone, true, "V100: priced by a roofline"},
    {A::kTuring, "turing", M::kNone, true, "T4, RTX 20: priced by a roofline"},
    {A::kAmpere, "ampere", M::kMmaSync, true, "A100, A10G, RTX 30"},
    {A::kAda, "ada", M::kMmaSync, true, "L4, L40S, RTX 40"},
    {A::kHopper, "hopper", M::kWgmma, true, "H100, H200, GH200, H20"},
    {A::kBlackwell, "blackwell", M::kTcgen05, true, "B200, B300, GB200, GB300"},
    {A::kBlackwellGeforce, "blackwell-geforce", M::kMmaSync, true, "RTX 50, RTX PRO, DGX Spark"},
    {A::kCdna3, "cdna3", M::kMfma, true, "MI300X, MI325X"},
    {A::kCdna4, "cdna4", M::kMfma, true, "MI350X, MI355X"},
    {A::kCdna3Untuned, "cdna3-untuned", M::kMfma, false, "MI300X with the libraries of 2024"},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kArchitectures.size(); ++i) {
    if (kArchitectures[i].architecture != static_cast<Architecture>(i)) return false;
  }
  return true;
}
static_assert(in_order());

}  // namespace

std::span<const ArchitectureTraits> architectures() { return kArchitectures; }

const ArchitectureTraits& traits_of(Architecture architecture) {
  switch (architecture) {  // every architecture needs a row
    case A::kGeneric:
    case A::kCpu:
    case A::kApple:
    case A::kVolta:
    case A::kTuring:
    case A::kAmpere:
    case A::kAda:
    case A::kHopper:
    case A::kBlackwell:
    case A::kBlackwellGeforce:
    case A::kCdna3:
    case A::kCdna4:
    case A::kCdna3Untuned:
      return kArchitectures[static_cast<std::size_t>(architecture)];
  }
  fail_check("architecture", __FILE__, __LINE__, "no such architecture");
}

MatrixUnits parse_matrix_units(std::string_view name, const SourceLocation& location) {
  static constexpr std::array<std::string_view, 5> kNames{"none", "mma_sync", "wgmma", "tcgen05", "mfma"};
  return static_cast<MatrixUnits>(choice_of("kind of matrix units", name, kNames, location));
}

Architecture parse_architecture(std::string_view name, const SourceLocation& location) {
  std::vector<std::string> names;
  for (const ArchitectureTraits& traits : kArchitectures) {
    if (traits.name == name) return traits.architecture;
    if (traits.listed) names.emplace_back(traits.name);
  }
  throw ConfigError(location, unknown_name("architecture", name, names) + "; 'generic' prices any other processor");
}

}  // namespace roofcast
