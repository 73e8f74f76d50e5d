#pragma once
#include <cstddef>
#include <string>

namespace roofcast {

/// The whole file as bytes. Throws ConfigError `path: message` for a missing file, a directory, or a file larger than
/// `limit_bytes`, which also guards against endless files such as /dev/zero.
std::string read_file(const std::string& path, std::size_t limit_bytes);

}  // namespace roofcast
