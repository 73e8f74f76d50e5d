#pragma once

namespace roofcast {

/// A hash of the sources of base, hw and sim: results of two builds with one id are equal to the last digit.
extern const char* const kBuildId;

}  // namespace roofcast
