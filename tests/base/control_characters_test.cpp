#include "base/control_characters.h"

#include <doctest/doctest.h>

using namespace roofcast;
using namespace std::string_literals;

TEST_CASE("control characters: those that a terminal obeys are escaped, all other text stays") {
  CHECK(without_controls("a\x1b[31mb\x07\r"s) == "a\\x1b[31mb\\x07\\x0d");
  CHECK(without_controls("\x7f\0"s) == "\\x7f\\x00");
  CHECK(without_controls("\u009b31m") == "\\xc2\\x9b31m");
  CHECK(without_controls("\u202etxt\u2066") == "\\xe2\\x80\\xaetxt\\xe2\\x81\\xa6");
  for (const char* shown : {"", " ~\n\t", "\u00a0\u00c2", "\u20ac", "\u2029\u202f", "\u2065\u206a", "\xe2\x80", "\xc2"})
    CHECK(without_controls(shown) == shown);
}
