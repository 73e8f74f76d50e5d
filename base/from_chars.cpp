#include "base/from_chars.h"

#ifndef __cpp_lib_to_chars
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string>
#if defined(__APPLE__)
#include <xlocale.h>
#else
#include <locale.h>
#endif
#endif

namespace roofcast {

#ifdef __cpp_lib_to_chars

std::from_chars_result from_chars(const char* first, const char* last, double& value) {
  return std::from_chars(first, last, value);
}

#else

namespace {

/// The number's text without what strtod accepts and std::from_chars does not: leading blanks, a plus sign, "0x".
std::string number_text(const char* first, const char* last) {
  const char* at = first;
  if (at != last && *at == '-') ++at;
  if (at == last || !((*at >= '0' && *at <= '9') || *at == '.' || *at == 'i' || *at == 'I' || *at == 'n' || *at == 'N'))
    return "";
  if (*at == '0' && at + 1 != last && (at[1] == 'x' || at[1] == 'X')) return std::string(first, at + 1);
  return std::string(first, last);
}

}  // namespace

std::from_chars_result from_chars(const char* first, const char* last, double& value) {
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  const std::string text = number_text(first, last);
  char* end = nullptr;
  errno = 0;
  const double read = strtod_l(text.c_str(), &end, plain);
  const std::ptrdiff_t length = end - text.c_str();
  if (length == 0) return {first, std::errc::invalid_argument};
  if (errno == ERANGE && (std::isinf(read) || read == 0)) return {first + length, std::errc::result_out_of_range};
  value = read;
  return {first + length, std::errc()};
}

#endif

}  // namespace roofcast
