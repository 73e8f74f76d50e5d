#pragma once
#include <charconv>
#include <concepts>

namespace roofcast {

/// std::from_chars, also for doubles, which libc++ has only from LLVM 20 on. The fallback is strtod in the "C" locale,
/// which gives the same values.
std::from_chars_result from_chars(const char* first, const char* last, double& value);

template <std::integral Number>
std::from_chars_result from_chars(const char* first, const char* last, Number& value) {
  return std::from_chars(first, last, value);
}

}  // namespace roofcast
