#pragma once

namespace roofcast::cli {

/// Of the program: "0.1.0" at the tag v0.1.0, else with the commits since: "0.1.0+12.g61fc490". cmake/version.cmake
/// writes it.
extern const char* const kBuildVersion;

}  // namespace roofcast::cli
