#pragma once
// The version of the library, read by CMake from here. Before 1.0, a new minor version may change these headers.

#define ROOFCAST_VERSION_MAJOR 0
#define ROOFCAST_VERSION_MINOR 1
#define ROOFCAST_VERSION_PATCH 0

namespace roofcast {
inline namespace v0 {

/// The version of the linked library, such as "0.1.0".
const char* version();

}  // namespace v0
}  // namespace roofcast
