#pragma once
// What is fed with bytes of strangers. A target returns, or throws ConfigError or Unavailable; anything else is a bug.

#include <span>
#include <string_view>

namespace roofcast::fuzz {

struct Target {
  std::string_view name, help;
  std::span<const std::string_view> seeds;  ///< folders or files of the source tree
  void (*run)(std::string_view bytes);
};
std::span<const Target> targets();
const Target* find_target(std::string_view name);  ///< null when there is none

/// One input of one target. Errors of the input are taken; what else is thrown ends the program.
void feed(const Target& target, std::string_view bytes);

}  // namespace roofcast::fuzz
