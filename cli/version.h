#pragma once

namespace roofcast::cli {

/// The program's version: "0.1.0" at the tag v0.1.0, else with the commits since: "0.1.0+12.g61fc490". Written by
/// cmake/version.cmake.
extern const char* const kBuildVersion;

}  // namespace roofcast::cli
