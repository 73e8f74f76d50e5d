#include "base/error.h"

#include <doctest/doctest.h>

using namespace roofcast;

TEST_CASE("a ConfigError begins with what is known of its place") {
  CHECK(std::string(ConfigError(SourceLocation{"a.yaml", 3, 7}, "no").what()) == "a.yaml:3:7: no");
  CHECK(std::string(ConfigError(SourceLocation{"a.csv", 3, 0}, "no").what()) == "a.csv:3: no");
  CHECK(std::string(ConfigError(SourceLocation{"--gpu", 0, 0}, "no").what()) == "--gpu: no");
  CHECK(std::string(ConfigError(SourceLocation{"a.yaml", 0, 7}, "no").what()) == "a.yaml: no");
  CHECK(std::string(ConfigError(SourceLocation{}, "no").what()) == "no");
  CHECK(std::string(ConfigError(SourceLocation{"", 2, 1}, "no").what()) == "2:1: no");
}

TEST_CASE("a ConfigError is one line whatever the user wrote") {
  CHECK(std::string(ConfigError(SourceLocation{"a"}, "got 'x\ny\tz\x1b[0m'").what()) == "a: got 'x\\ny\\tz\\x1b[0m'");
}

TEST_CASE("SIM_CHECK throws only when its condition fails, and names it") {
  CHECK_NOTHROW(SIM_CHECK(1 + 1 == 2, "arithmetic"));
  try {
    SIM_CHECK(1 + 1 == 3, "arithmetic");
    FAIL("it must throw");
  } catch (const InternalError& error) {
    const std::string message = error.what();
    CHECK(message.starts_with("error_test.cpp:"));
    CHECK(message.ends_with(": check failed: 1 + 1 == 3: arithmetic"));
  }
}
