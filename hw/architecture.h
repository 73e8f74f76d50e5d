#pragma once
// GPU architectures. The instructions of the matrix units decide which kernels exist for an architecture.

#include <span>
#include <string_view>

#include "base/error.h"

namespace roofcast {

enum class Architecture {
  kGeneric,
  kCpu,
  kApple,
  kVolta,
  kTuring,
  kAmpere,
  kAda,
  kHopper,
  kBlackwell,
  kBlackwellGeforce,
  kCdna3,
  kCdna4,
  kCdna3Untuned,
};

/// Instructions that feed the matrix units. A kernel is written for one of them.
enum class MatrixUnits {
  kNone,     ///< no kernel model: operators are priced by a roofline, without tiles or waves
  kMmaSync,  ///< mma.sync of a warp: Ampere, Ada, consumer Blackwell
  kWgmma,    ///< wgmma of a group of four warps: Hopper
  kTcgen05,  ///< tcgen05 from tensor memory: data-center Blackwell
  kMfma,     ///< MFMA of a wavefront: AMD CDNA
};

struct ArchitectureTraits {
  Architecture architecture;
  std::string_view name;  ///< key `architecture` of a GPU file
  MatrixUnits matrix_units;
  bool listed;  ///< listed for users; the others exist for archived files
  std::string_view help;
};

std::span<const ArchitectureTraits> architectures();
const ArchitectureTraits& traits_of(Architecture architecture);
inline std::string_view name_of(Architecture architecture) { return traits_of(architecture).name; }
/// Whether no kernel model exists for its matrix units. Its operators are then priced by a roofline (hw/rooflines.h).
inline bool by_roofline(Architecture architecture) {
  return traits_of(architecture).matrix_units == MatrixUnits::kNone;
}
/// "mma_sync", "wgmma", "tcgen05", "mfma", "none". Throws ConfigError at `location`.
MatrixUnits parse_matrix_units(std::string_view name, const SourceLocation& location);
/// Throws ConfigError at `location`; the message names the nearest architecture.
Architecture parse_architecture(std::string_view name, const SourceLocation& location);

}  // namespace roofcast
