#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/help.h"

namespace roofcast::cli {

std::span<const Command> commands() {
  static constexpr std::array kCommands{
      Command{"estimate", "one deployment in closed form, operator by operator", run_estimate},
      Command{"simulate", "a scenario under load, request by request", run_simulate},
      Command{"ladder", "techniques switched on one after another, and what each gains", run_ladder},
      Command{"lecture", "worked examples of the lectures, with inputs to change", run_lecture},
      Command{"sweep", "a grid of scenarios, in parallel, resumable", run_sweep_command},
      Command{"plan", "the cheapest deployment that meets the objectives", run_plan},
      Command{"compare", "a measured run against its prediction, and what explains the difference", run_compare},
      Command{"validate", "predictions against measurements: kernels, serving, local", run_validate, validate_steps},
      Command{"calibrate", "measure a GPU, fit its constants, show them", run_calibrate, calibrate_steps},
      Command{"report", "results as one HTML page, as plots, or as characters", run_report},
      Command{"explore", "an interactive page in the browser", run_explore},
      Command{"models", "the models", run_models},
      Command{"gpus", "the GPUs", run_gpus},
      Command{"kernels", "the kernels that price the operators, and their constants", run_kernels},
      Command{"engines", "the engines and their releases", run_engines},
      Command{"recipes", "launch recipes", run_recipes},
      Command{"clients", "benchmark clients", run_clients},
      Command{"workloads", "the workloads", run_workloads},
      Command{"schema", "the JSON Schema of a kind of result", run_schema},
      Command{"import", "a Hugging Face config.json as a model, a measured run as a scenario", run_import},
      Command{"help", "the flags of a command; man pages and shell completions", run_help},
  };
  return kCommands;
}

std::span<const Command> calibrate_steps() {
  static constexpr std::array kSteps{
      Command{"measure", "microkernels on a CUDA GPU, one JSON line per point", run_calibrate_measure},
      Command{"fit", "constants of a GPU from kernel times", run_calibrate_fit},
      Command{"show", "constants, and ceilings beside the datasheet", run_calibrate_show},
      Command{"host", "host costs of an engine from serving runs", run_calibrate_host},
      Command{"acceptance", "acceptance of drafts inferred from runs with multi-token prediction",
              run_calibrate_acceptance},
      Command{"power", "the power curve of GPUs from measured servers", run_calibrate_power},
  };
  return kSteps;
}

std::span<const Command> validate_steps() {
  static constexpr std::array kSteps{
      Command{"kernels", "predicted against measured kernel times", run_validate_kernels},
      Command{"serving", "measured runs, each simulated as a scenario", run_validate_serving},
      Command{"local", "published single-user speeds of llama.cpp, MLX and ExLlama", run_validate_local},
  };
  return kSteps;
}

int run_one_of(std::span<const Command> all, std::string_view kind, std::span<const std::string> arguments) {
  std::vector<std::string> names;
  for (const Command& command : all) {
    if (command.name == arguments.front()) return command.run(arguments.subspan(1));
    names.emplace_back(command.name);
  }
  throw ConfigError(unknown_name(kind, arguments.front(), names));
}

namespace {

int run_steps(std::string_view name, std::span<const std::string> arguments) {
  const std::span<const Command> all = commands();
  const Command& command = *std::find_if(all.begin(), all.end(), [&](const Command& c) { return c.name == name; });
  if (arguments.empty()) {
    std::vector<std::string> names;
    for (const Command& step : command.steps()) names.emplace_back(step.name);
    throw ConfigError(fmt::format("{}: what? one of {}", name, join(names, ", ")));
  }
  if (arguments[0] == "--help" || arguments[0] == "-h") {
    fmt::print("{}", steps_text(command));
    return kDone;
  }
  return run_one_of(command.steps(), fmt::format("{} command", name), arguments);
}

}  // namespace

int run_calibrate(std::span<const std::string> arguments) { return run_steps("calibrate", arguments); }
int run_validate(std::span<const std::string> arguments) { return run_steps("validate", arguments); }

}  // namespace roofcast::cli
