#include "base/program_path.h"

#include <cstdlib>
#include <system_error>

#include "base/text.h"

#if defined(__APPLE__)
#include <mach-o/dyld.h>

#include <array>
#endif

namespace roofcast {
namespace {

namespace fs = std::filesystem;

/// Empty where the system does not say, as in a chroot without /proc.
fs::path known_to_the_system() {
#if defined(__APPLE__)
  std::array<char, 4096> path{};
  std::uint32_t size = path.size();
  return _NSGetExecutablePath(path.data(), &size) == 0 ? fs::path(path.data()) : fs::path();
#else
  std::error_code error;
  const fs::path path = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : path;
#endif
}

}  // namespace

fs::path program_path(const std::string& argv0) {
  std::error_code error;
  if (const fs::path known = known_to_the_system(); !known.empty()) return known;
  if (argv0.find('/') != std::string::npos) return fs::canonical(argv0, error);
  const char* folders = std::getenv("PATH");
  for (const std::string& folder : split(folders == nullptr ? "" : folders, ':')) {
    const fs::path path = fs::path(folder) / argv0;
    if (!argv0.empty() && fs::is_regular_file(path, error)) return fs::canonical(path, error);
  }
  return {};
}

}  // namespace roofcast
