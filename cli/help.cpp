#include "cli/help.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "cli/version.h"

namespace roofcast::cli {
namespace {

constexpr const char* kPurpose =
    "forecasts how a large language model will serve: TTFT, TPOT, throughput, memory, cost, energy";
constexpr const char* kExitStatus =
    "0 done, 2 bad input, 3 no answer exists or no thread could be started, 1 a bug in roofcast, 130 Ctrl-C, 143 "
    "SIGTERM.";
constexpr const char* kConfigs =
    "The folder of models, GPUs, engines and the other specs. By default share/roofcast/configs beside the folder of "
    "the program, or the source tree it was built from.";
constexpr const char* kColumns = "Width of the tables in characters, where it is not the terminal's.";

constexpr std::size_t kUsualWidth = 100;  // characters of a line

/// Breaks `text` into lines of at most `width` characters; a longer word gets its own line.
std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines{""};
  for (const std::string& word : split(text, ' ')) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

std::string described(const FlagHelp& flag) {
  const std::string fallback = flag.fallback.empty() ? "" : fmt::format("(default {})", flag.fallback);
  return flag.text + (flag.text.empty() || fallback.empty() ? "" : " ") + fallback;
}

std::string command_list(std::span<const Command> all) {
  std::string out;
  constexpr std::size_t kMargin = 13;
  for (const Command& command : all) {
    std::string line = fmt::format("  {:<10} ", command.name);
    for (const std::string& text : wrapped(std::string(command.help), kUsualWidth - kMargin)) {
      out += line + text + "\n";
      line.assign(kMargin, ' ');
    }
  }
  return out;
}

/// Text for a roff line, without escapes or requests.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += std::string("\\&") + c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string heading(const std::string& name) {
  std::string title = name;
  std::transform(title.begin(), title.end(), title.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 32 : c; });
  return fmt::format(".TH {} 1 \"\" \"roofcast {}\" \"User Commands\"\n.SH NAME\n{} \\- ", roff(title), kBuildVersion,
                     roff(name));
}

std::string item(const std::string& term, const std::string& text) {
  return fmt::format(".TP\n{}\n{}\n", term, roff(text));
}

std::string status_and_environment() {
  return fmt::format(".SH EXIT STATUS\n{}\n.SH ENVIRONMENT\n", roff(kExitStatus)) +
         item(".B ROOFCAST_CONFIGS", kConfigs) + item(".B COLUMNS", kColumns);
}

/// "roofcast-calibrate-fit(1), ..." of a command and its steps.
void append_names(std::string& names, const std::string& name, const Command& command) {
  if (!command.steps) names += fmt::format("{}\n.BR {} (1)", names.empty() ? "" : ",", roff(name));
  for (const Command& step : command.steps ? command.steps() : std::span<const Command>())
    append_names(names, fmt::format("{}-{}", name, step.name), step);
}

}  // namespace

CommandHelp*& collected_help() {
  static CommandHelp* help = nullptr;
  return help;
}

CommandHelp help_of(const Command& command) {
  CommandHelp help;
  collected_help() = &help;
  const std::vector<std::string> words{"--help"};
  command.run(words);
  collected_help() = nullptr;
  return help;
}

std::string help_text(const CommandHelp& help, std::size_t width) {
  std::string out = "usage: " + help.usage + "\n" + help.text + "\n\nOptions:\n";
  constexpr std::size_t kTermWidth = 26;
  for (const FlagHelp& flag : help.flags) {
    std::string line = fmt::format("  --{}{}{}", flag.name, flag.value.empty() ? "" : " ", flag.value);
    if (line.size() + 2 > kTermWidth && !described(flag).empty()) {
      out += line + "\n";
      line.clear();
    }
    for (const std::string& text : wrapped(described(flag), width - std::min(width - 1, kTermWidth))) {
      line.resize(std::max(line.size(), text.empty() ? 0 : kTermWidth), ' ');
      out += line + text + "\n";
      line.clear();
    }
  }
  return out;
}

std::string overview() {
  return fmt::format(
      "{}\n\n"
      "usage: roofcast COMMAND [options]     roofcast COMMAND --help: its options\n"
      "       roofcast --version\n\n{}\nExit status: {}\n"
      "ROOFCAST_CONFIGS=DIR: folder of models, GPUs, engines and other specs in place of the shipped ones.\n",
      join(wrapped(fmt::format("roofcast {}.", kPurpose), kUsualWidth), "\n"), command_list(commands()), kExitStatus);
}

std::string steps_text(const Command& command) {
  std::vector<std::string> names;
  for (const Command& step : command.steps()) names.emplace_back(step.name);
  return fmt::format("usage: roofcast {} {}     (each with --help tells more)\n{}", command.name, join(names, "|"),
                     command_list(command.steps()));
}

std::string man_page() {
  std::string out = heading("roofcast") + roff(kPurpose) +
                    "\n.SH SYNOPSIS\n.B roofcast\n.I COMMAND\n[options]\n.br\n.B roofcast \\-\\-version\n"
                    ".SH COMMANDS\n";
  std::string pages;
  for (const Command& command : commands()) {
    out += item(fmt::format(".B {}", command.name), std::string(command.help));
    append_names(pages, fmt::format("roofcast-{}", command.name), command);
  }
  out += ".SH EXAMPLES\n.nf\n" +
         roff(
             "roofcast simulate chat-70b-4xh100\n"
             "roofcast estimate --model llama-3.1-70b --gpu h100-sxm --tp 4 --weights fp8 --batch 64\n"
             "roofcast plan chat-70b --emit vllm\n") +
         ".fi\n";
  return out + status_and_environment() + ".SH SEE ALSO" + pages + "\n";
}

std::string man_page(const std::string& name, const Command& command) {
  const CommandHelp help = help_of(command);
  std::string page_name = "roofcast-" + name;
  std::replace(page_name.begin(), page_name.end(), ' ', '-');
  std::string out = heading(page_name) + roff(std::string(command.help)) + "\n.SH SYNOPSIS\n.nf\n" + roff(help.usage) +
                    "\n.fi\n.SH DESCRIPTION\n.nf\n" + roff(help.text) + "\n.fi\n.SH OPTIONS\n";
  for (const FlagHelp& flag : help.flags) {
    const std::string value = flag.value.empty() ? "" : fmt::format(" \\fI{}\\fR", roff(flag.value));
    out += item(fmt::format("\\fB\\-\\-{}\\fR{}", roff(flag.name), value), described(flag));
  }
  return out + status_and_environment() + ".SH SEE ALSO\n.BR roofcast (1)\n";
}

}  // namespace roofcast::cli
