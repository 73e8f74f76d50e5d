#include "cli/completion.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "base/config_library.h"
#include "calibrate/operators.h"
#include "cli/command.h"
#include "cli/help.h"
#include "hw/dtype.h"
#include "hw/kernel.h"
#include "reports/result_schema.h"
#include "sim/plan/lectures/lecture.h"

namespace roofcast::cli {
namespace {

// bash splits words at '=' and '@', and replaces only the last part.
constexpr std::string_view kBash = R"(# Completion of roofcast for bash.
_roofcast() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("${line%%$'\t'*}")
  done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o bashdefault -o default -F _roofcast roofcast
)";

constexpr std::string_view kZsh = R"(#compdef roofcast
# Completion of roofcast for zsh.
_roofcast() {
  local line
  local -a found
  for line in "${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( ${#found} )); then
    _describe roofcast found
  else
    _files
  fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _roofcast "$@"
else
  compdef _roofcast roofcast
fi
)";

constexpr std::string_view kFish = R"(# Completion of roofcast for fish.
function __roofcast_complete
  set -l words (commandline -opc)
  set -l found ($words[1] complete -- $words[2..-1] (commandline -ct) 2>/dev/null)
  if test (count $found) -gt 0
    printf '%s\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c roofcast -f -a '(__roofcast_complete)'
)";

struct Candidate {
  std::string word, help;
};

/// Values for a flag, a positional argument or, for `NAME`, the specs of a command.
std::vector<std::string> names_for(std::string_view word) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kKinds{{{"model", "models"},
                                                                                         {"models", "models"},
                                                                                         {"gpu", "hardware"},
                                                                                         {"gpus", "hardware"},
                                                                                         {"engine", "engines"},
                                                                                         {"engines", "engines"},
                                                                                         {"recipes", "recipes"},
                                                                                         {"clients", "clients"},
                                                                                         {"workloads", "workloads"},
                                                                                         {"scenario", "scenarios"},
                                                                                         {"sweep", "sweeps"},
                                                                                         {"plan", "plans"},
                                                                                         {"show", "hardware"},
                                                                                         {"workload", "workloads"}}};
  std::vector<std::string> names;
  const auto add = [&](std::string_view name) { names.emplace_back(name); };
  if (word == "kernels") {
    for (const Kernel* kernel : kernels()) add(kernel->name());
  } else if (word == "op") {
    for (const calibrate::KernelOperator& op : calibrate::kernel_operators()) add(op.name);
  } else if (word == "kind") {
    for (const reports::ResultSchema& schema : reports::kResultSchemas) add(schema.name);
  } else if (word == "lecture") {
    for (const Lecture& lecture : lectures()) add(lecture.name);
  } else if (word == "weights" || word == "activations" || word == "kv-cache-dtype") {
    for (const std::string_view name : dtype_names()) add(name);
  }
  if (!names.empty()) return names;
  for (const auto& [of, kind] : kKinds) {
    if (of == word) return names_of(kind);
  }
  return {};
}

std::vector<Candidate> with_names(const std::vector<std::string>& names, const std::string& prefix = "") {
  std::vector<Candidate> out;
  for (const std::string& name : names) out.push_back({prefix + name, ""});
  return out;
}

const FlagHelp* find_flag(const CommandHelp& help, std::string_view word) {
  for (const FlagHelp& flag : help.flags) {
    if (word.starts_with("--") && word.substr(2) == flag.name) return &flag;
  }
  return nullptr;
}

std::vector<Candidate> values_of(const FlagHelp& flag, const std::string& prefix = "") {
  return with_names(flag.choices.empty() ? names_for(flag.name) : flag.choices, prefix);
}

/// `words` are those after the command; the last one is incomplete.
std::vector<Candidate> words_of(const Command& command, std::span<const std::string> words) {
  const CommandHelp help = help_of(command);
  const std::string& last = words.back();
  const std::string before = words.size() > 1 ? words[words.size() - 2] : "";
  // bash: "--model", "=", "qw"
  const std::string flag_word = before == "=" && words.size() > 2 ? words[words.size() - 3] : last == "=" ? before : "";
  if (const FlagHelp* flag = find_flag(help, flag_word)) return values_of(*flag);
  if (const FlagHelp* flag = find_flag(help, before); flag && !flag->value.empty()) return values_of(*flag);
  if (const std::size_t equals = last.find('='); last.starts_with("--") && equals != std::string::npos) {
    const FlagHelp* flag = find_flag(help, std::string_view(last).substr(0, equals));
    return flag ? values_of(*flag, last.substr(0, equals + 1)) : std::vector<Candidate>{};
  }
  if (!last.starts_with("-")) {
    const bool by_command = help.positional == "name" || help.positional == "file";
    return with_names(names_for(by_command ? command.name : std::string_view(help.positional)));
  }
  std::vector<Candidate> flags;
  for (const FlagHelp& flag : help.flags) flags.push_back({"--" + flag.name, flag.text});
  return flags;
}

std::vector<Candidate> candidates(std::span<const Command> all, std::span<const std::string> words) {
  if (words.size() <= 1) {
    std::vector<Candidate> out;
    for (const Command& command : all) out.push_back({std::string(command.name), std::string(command.help)});
    return out;
  }
  const auto command = std::find_if(all.begin(), all.end(), [&](const Command& c) { return c.name == words.front(); });
  if (command == all.end()) return {};
  const bool flags = words[1].starts_with("-");
  if (command->name == "help" && !flags) return candidates(all, words.subspan(1));
  return command->steps ? candidates(command->steps(), words.subspan(1)) : words_of(*command, words.subspan(1));
}

}  // namespace

std::span<const ShellCompletion> shell_completions() {
  static constexpr std::array kShells{
      ShellCompletion{"bash", "bash-completion/completions", "roofcast", kBash},
      ShellCompletion{"zsh", "zsh/vendor-completions", "_roofcast", kZsh},
      ShellCompletion{"fish", "fish/vendor_completions.d", "roofcast.fish", kFish},
  };
  return kShells;
}

int run_complete(std::span<const std::string> arguments) {
  if (!arguments.empty() && arguments.front() == "--") arguments = arguments.subspan(1);
  const std::string last = arguments.empty() || arguments.back() == "=" ? "" : arguments.back();
  for (const Candidate& c : candidates(commands(), arguments)) {
    if (c.word.starts_with(last)) fmt::print("{}\t{}\n", c.word, c.help);
  }
  return kDone;
}

}  // namespace roofcast::cli
