#pragma once
// Measured data for tests: a sample in tests/data, always there, and the whole tables where they are at hand.

#include <filesystem>
#include <string>

namespace roofcast::testing {

inline const std::string kSampleData = ROOFCAST_SOURCE_DIR "/tests/data";
inline const std::string kWholeData = ROOFCAST_SHARED_DATA;

/// Says why and has the program end with the status that ctest counts as skipped, unless a check failed.
void skip_test(const std::string& reason);

/// Whether `path` is there; skips the test otherwise.
inline bool there_or_skip(const std::string& path) {
  if (std::filesystem::exists(path)) return true;
  skip_test("no " + path);
  return false;
}

}  // namespace roofcast::testing
