#pragma once

namespace roofcast {

/// A hash of the sources of base, hw and sim. Builds with the same id give the same results to the last digit.
extern const char* const kBuildId;

}  // namespace roofcast
