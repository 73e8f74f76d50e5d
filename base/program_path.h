#pragma once
#include <filesystem>
#include <string>

namespace roofcast {

/// The file of the running program, from the operating system or else from `argv0`. Empty if neither finds it.
std::filesystem::path program_path(const std::string& argv0);

}  // namespace roofcast
