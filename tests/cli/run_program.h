#pragma once
// Runs the program as a user would.

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace roofcast::testing {

struct RunResult {
  int status = -1;
  std::string out;  ///< stdout, or stderr when asked for
};

enum class Stream { kOut, kErr };

/// A shell command in the source folder.
inline RunResult run_shell(const std::string& line, Stream stream = Stream::kOut) {
  const std::string redirect = stream == Stream::kOut ? " 2>/dev/null" : " 2>&1 >/dev/null";
  const std::string command = "cd '" ROOFCAST_SOURCE_DIR "' && { " + line + "; }" + redirect;
  RunResult result;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 65536> buffer;
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) result.out.append(buffer.data(), n);
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

/// `roofcast ARGUMENTS`; arguments are words of a shell.
inline RunResult run_roofcast(const std::string& arguments, Stream stream = Stream::kOut) {
  return run_shell("'" ROOFCAST_PROGRAM "' " + arguments, stream);
}

}  // namespace roofcast::testing
