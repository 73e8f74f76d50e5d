#pragma once
// Number formats: how they are stored, and in which format a GPU computes with them.

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/units.h"

namespace roofcast {

enum class Dtype { kFp32, kTf32, kBf16, kFp16, kFp8, kFp8Block, kNvfp4, kMxfp4, kInt8, kInt4, kInt3, kInt2, kTernary };
inline constexpr std::size_t kDtypeCount = 13;
inline constexpr double kHalfBytes = 2.0;  ///< of a 16-bit value

/// Names as on the command line, in the order of the enum.
std::span<const std::string_view> dtype_names();
std::string_view name_of(Dtype dtype);
/// Also accepts bfloat16, float16, half, float32, e4m3, nvfp4. Throws ConfigError at `location`.
Dtype parse_dtype(std::string_view name, const SourceLocation& location);

/// Bits of one element without its scales. Ternary counts as 1.58 (log2 3); tf32 is stored in 32.
double element_bits(Dtype dtype);

/// How many values share one scale, and the width of that scale.
struct Scales {
  double group_size = 0.0;     ///< 0: scales are negligible (per tensor or per channel)
  double bits = 16.0;          ///< of one scale
  double zero_point_bits = 0;  ///< of one zero point, asymmetric integer formats
};
/// The format's own scales: fp8_block one fp32 scale per 128 x 128, nvfp4 an fp8 scale per 16, mxfp4 an e8m0 scale per
/// 32.
Scales native_scales(Dtype dtype);

/// Bytes of one stored element, including its share of the scales.
double bytes_per_element(Dtype dtype, const Scales& scales);
double bytes_per_element(Dtype dtype);  ///< with native_scales

/// Bytes of `width` values of one head in a KV cache. Integer formats have a 16-bit scale and zero point per token and
/// head (KIVI's values, Liu et al. 2024; QServe, Lin et al. 2024; LMDeploy's int8 and int4). fp8 has one scale per
/// tensor, 4-bit floats have their block scales.
double cached_bytes(Dtype dtype, double width);

}  // namespace roofcast
