#pragma once
// A command's description of itself, the source of --help, the man pages and the shell completions.

#include <string>
#include <vector>

#include "cli/command.h"

namespace roofcast::cli {

struct FlagHelp {
  std::string name;                  ///< without dashes
  std::string value;                 ///< "FILE", "table|json|csv"; empty: takes no value
  std::vector<std::string> choices;  ///< its possible values, if these are all
  std::string fallback;              ///< default value; empty: none
  std::string text;
};

struct CommandHelp {
  std::string usage;       ///< lines starting with "roofcast "
  std::string text;        ///< what it does, in lines of up to 110 characters
  std::string positional;  ///< the name of the positional arguments; empty: none
  std::vector<FlagHelp> flags;
};

/// The text of `command --help`. `command` has no steps of its own.
CommandHelp help_of(const Command& command);

/// For a terminal with this many columns.
std::string help_text(const CommandHelp& help, std::size_t width);
/// The commands with a line of help each: `roofcast --help`.
std::string overview();
/// The steps of a command that has them, such as `calibrate`.
std::string steps_text(const Command& command);

/// Man pages in roff's man macros: of the program, and of `roofcast NAME`.
std::string man_page();
std::string man_page(const std::string& name, const Command& command);

/// Where help_of() collects flags instead of printing --help; null at other times.
CommandHelp*& collected_help();

}  // namespace roofcast::cli
