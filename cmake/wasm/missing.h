#pragma once
// Parts of the C++ library that emscripten 3.1.6 lacks: std::bit_cast, and std::from_chars for double. Included before
// every file of the wasm build. musl's strtod rounds correctly, like that of other systems.

#ifdef __cplusplus
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

namespace std {

template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}

inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  const bool minus = first != last && *first == '-';
  const char* digits = first + (minus ? 1 : 0);
  // strtod also accepts blanks, a plus sign and hexadecimal numbers; from_chars does not.
  const bool number = digits != last && ((*digits >= '0' && *digits <= '9') || *digits == '.' || *digits == 'i' ||
                                         *digits == 'I' || *digits == 'n' || *digits == 'N');
  if (!number) return {first, errc::invalid_argument};
  const std::string text(first, last);
  const bool hex = digits + 1 < last && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
  if (hex) {
    value = minus ? -0.0 : 0.0;
    return {digits + 1, errc()};
  }
  errno = 0;
  char* end = nullptr;
  const double read = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return {first, errc::invalid_argument};
  const char* stop = first + (end - text.c_str());
  if (errno == ERANGE) return {stop, errc::result_out_of_range};
  value = read;
  return {stop, errc()};
}

}  // namespace std
#endif
