#pragma once
// Completions of shells. The scripts only ask the program: `roofcast complete -- WORDS...` prints what the last word
// may become, one a line, with a tab before its help.

#include <span>
#include <string_view>

namespace roofcast::cli {

struct ShellCompletion {
  std::string_view name, folder, file;  ///< folder: below /usr/share
  std::string_view script;
};
std::span<const ShellCompletion> shell_completions();

}  // namespace roofcast::cli
