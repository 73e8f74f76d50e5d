#pragma once
#include <charconv>
#include <concepts>

namespace roofcast {

/// std::from_chars, of doubles too: libc++ has those from LLVM 20 on alone. Without them strtod of the "C" locale reads
/// the same texts to the same values.
std::from_chars_result from_chars(const char* first, const char* last, double& value);

template <std::integral Number>
std::from_chars_result from_chars(const char* first, const char* last, Number& value) {
  return std::from_chars(first, last, value);
}

}  // namespace roofcast
