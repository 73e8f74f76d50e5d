#pragma once
// Shell completions. The scripts call `roofcast complete -- WORDS...`, which prints the candidates for the last word,
// one per line, with a tab before the help text.

#include <span>
#include <string_view>

namespace roofcast::cli {

struct ShellCompletion {
  std::string_view name, folder, file;  ///< folder: below /usr/share
  std::string_view script;
};
std::span<const ShellCompletion> shell_completions();

}  // namespace roofcast::cli
