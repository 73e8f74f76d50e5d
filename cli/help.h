#pragma once
// What a command says of itself. --help, the man pages and the completions of shells are made of it, so none goes
// stale.

#include <string>
#include <vector>

#include "cli/command.h"

namespace roofcast {

struct FlagHelp {
  std::string name;                  ///< without dashes
  std::string value;                 ///< "FILE", "table|json|csv"; empty: a switch
  std::vector<std::string> choices;  ///< the words it takes, where these are all
  std::string fallback;              ///< its default; empty: none
  std::string text;
};

struct CommandHelp {
  std::string usage;       ///< lines that begin with "roofcast "
  std::string text;        ///< what it does, in lines of up to 110 characters
  std::string positional;  ///< the name of the words without a flag; empty: none
  std::vector<FlagHelp> flags;
};

/// What `command --help` tells. `command` has no steps of its own.
CommandHelp help_of(const Command& command);

/// For a terminal of so many columns.
std::string help_text(const CommandHelp& help, std::size_t width);
/// The commands with what each does: `roofcast --help`.
std::string overview();
/// The steps of a command that has some, such as `calibrate`.
std::string steps_text(const Command& command);

/// Man pages in the man macros of roff: of the program, and of `roofcast NAME`.
std::string man_page();
std::string man_page(const std::string& name, const Command& command);

/// How help finds its flags while --help prints nothing: see help_of(). Null outside of it.
CommandHelp*& collected_help();

}  // namespace roofcast
