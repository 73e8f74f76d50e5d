#include "hw/dtype.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"

namespace roofcast {
namespace {

struct Format {
  std::string_view name;
  double bits;    ///< of one element, without scales
  Scales scales;  ///< the format's own
};

// In the order of the enum. Scales that a checkpoint chooses (int4 in groups of 128, for example) are not part of the
// format; its quantization config has them.
// fp8_block: one fp32 scale per 128 x 128 block (DeepSeek-V3 report, arXiv 2412.19437, section 3.3).
// nvfp4: one fp8 scale per 16 values (NVIDIA, "Introducing NVFP4", 2025; the fp32 scale per tensor is not counted).
// mxfp4: one e8m0 scale per 32 values (OCP Microscaling Formats v1.0, table 1).
//   ternary: log2(3) = 1.58 bits, the name under which BitNet b1.58 is known (arXiv 2402.17764).
constexpr std::array<Format, kDtypeCount> kFormats{{
    {"fp32", 32.0, {}},
    {"tf32", 32.0, {}},
    {"bf16", 16.0, {}},
    {"fp16", 16.0, {}},
    {"fp8", 8.0, {}},
    {"fp8_block", 8.0, {.group_size = 128.0 * 128.0, .bits = 32.0}},
    {"nvfp4", 4.0, {.group_size = 16.0, .bits = 8.0}},
    {"mxfp4", 4.0, {.group_size = 32.0, .bits = 8.0}},
    {"int8", 8.0, {}},
    {"int4", 4.0, {}},
    {"int3", 3.0, {}},
    {"int2", 2.0, {}},
    {"ternary", 1.58, {}},
}};

constexpr std::array<std::string_view, kDtypeCount> names_in_order() {
  std::array<std::string_view, kDtypeCount> names;
  for (std::size_t i = 0; i < kDtypeCount; ++i) names[i] = kFormats[i].name;
  return names;
}
constexpr std::array<std::string_view, kDtypeCount> kNames = names_in_order();

struct Alias {
  std::string_view name;
  Dtype dtype;
};
// Other names, as checkpoints and engines write them.
constexpr Alias kAliases[] = {
    {"float32", Dtype::kFp32}, {"float", Dtype::kFp32}, {"bfloat16", Dtype::kBf16}, {"float16", Dtype::kFp16},
    {"half", Dtype::kFp16},    {"e4m3", Dtype::kFp8},   {"fp8_e4m3", Dtype::kFp8},  {"float8_e4m3fn", Dtype::kFp8},
};

const Format& format_of(Dtype dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  SIM_CHECK(index < kDtypeCount, "no such number format");
  return kFormats[index];
}

}  // namespace

std::span<const std::string_view> dtype_names() { return kNames; }

std::string_view name_of(Dtype dtype) { return format_of(dtype).name; }

Dtype parse_dtype(std::string_view name, const SourceLocation& location) {
  const std::string word = lower(trim(name));
  const auto found = std::find(kNames.begin(), kNames.end(), word);
  if (found != kNames.end()) return static_cast<Dtype>(found - kNames.begin());
  for (const Alias& alias : kAliases) {
    if (alias.name == word) return alias.dtype;
  }
  // All names are listed here: a shortened list would hide some.
  const std::vector<std::string> valid(kNames.begin(), kNames.end());
  const std::string nearest = nearest_name(word, valid);
  throw ConfigError(location, "unknown number format '" + std::string(name) + "'" +
                                  (nearest.empty() ? "" : "; nearest is '" + nearest + "'") +
                                  " (valid: " + join(valid, ", ") + ")");
}

double element_bits(Dtype dtype) { return format_of(dtype).bits; }

Scales native_scales(Dtype dtype) { return format_of(dtype).scales; }

double bytes_per_element(Dtype dtype, const Scales& scales) {
  double bits = element_bits(dtype);
  if (scales.group_size > 0.0) bits += (scales.bits + scales.zero_point_bits) / scales.group_size;
  return bits / 8.0;
}

double bytes_per_element(Dtype dtype) { return bytes_per_element(dtype, native_scales(dtype)); }

double cached_bytes(Dtype dtype, double width) {
  const bool integer = dtype == Dtype::kInt8 || dtype == Dtype::kInt4 || dtype == Dtype::kInt3 || dtype == Dtype::kInt2;
  return width * bytes_per_element(dtype) + (integer && width > 0 ? 4.0 : 0.0);
}

}  // namespace roofcast
