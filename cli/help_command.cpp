// roofcast help: a command's flags as text, as man pages, as shell completions.

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/output_file.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/help.h"
#include "cli/options.h"

namespace roofcast::cli {
namespace po = boost::program_options;
namespace {

void write_page(const std::filesystem::path& folder, const std::string& name, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw ConfigError(fmt::format("--share: cannot make '{}': {}", folder.string(), error.message()));
  write_file("--share", (folder / name).string(), text);
}

void write_man_pages(const std::filesystem::path& folder, const std::string& prefix, std::span<const Command> all) {
  for (const Command& command : all) {
    const std::string name = prefix + std::string(command.name);
    if (command.steps) {
      write_man_pages(folder, name + " ", command.steps());
      continue;
    }
    std::string file = "roofcast-" + name + ".1";
    std::replace(file.begin(), file.end(), ' ', '-');
    write_page(folder, file, man_page(name, command));
  }
}

/// Writes the layout of /usr/share.
void write_share(const std::filesystem::path& share) {
  write_page(share / "man/man1", "roofcast.1", man_page());
  write_man_pages(share / "man/man1", "", commands());
  for (const ShellCompletion& shell : shell_completions())
    write_page(share / shell.folder, std::string(shell.file), std::string(shell.script));
}

const ShellCompletion& find_shell(const std::string& name) {
  std::vector<std::string> names;
  for (const ShellCompletion& shell : shell_completions()) {
    if (shell.name == name) return shell;
    names.emplace_back(shell.name);
  }
  throw ConfigError("--completion: " + unknown_name("shell", name, names));
}

}  // namespace

int run_help(std::span<const std::string> arguments) {
  Options options("roofcast help [COMMAND] | --completion SHELL | --share DIR",
                  "What a command takes. Shells complete commands, flags and names with the script of --completion.");
  options.add().add_options()("completion", po::value<std::string>(), "bash | zsh | fish: the script for this shell")(
      "share", po::value<std::string>(),
      "DIR: writes the man pages and every completion below it, as /usr/share has them");
  options.positional("command", 2);
  if (!options.parse(arguments)) return kDone;
  if (options.has("share")) write_share(options.text("share"));
  if (options.has("completion")) options.write(std::string(find_shell(options.text("completion")).script));
  if (options.has("share") || options.has("completion")) return kDone;
  if (!options.has("command")) {
    fmt::print("{}", overview());
    return kDone;
  }
  std::vector<std::string> words = options.value<std::vector<std::string>>("command");
  words.emplace_back("--help");
  return run_one_of(commands(), "command", words);
}

}  // namespace roofcast::cli
