#pragma once
#include <filesystem>
#include <string>

namespace roofcast {

/// The file of the running program: as the system knows it, else as `argv0` names it. Empty when neither finds it.
std::filesystem::path program_path(const std::string& argv0);

}  // namespace roofcast
