#pragma once
// The implementation of `roofcast COMMAND`. Only this folder uses Boost.Program_options.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/program_options.hpp>

namespace roofcast::cli {

/// Exit status of the program: see docs/command-line.md. kInterrupted is added to the signal number.
enum ExitStatus { kDone = 0, kBug = 1, kBadInput = 2, kNoAnswer = 3, kInterrupted = 128 };

struct Command {
  std::string_view name, help;
  int (*run)(std::span<const std::string> arguments);
  std::span<const Command> (*steps)() = nullptr;  ///< steps selected by its first word, such as `calibrate fit`
};

/// Every subcommand, in the order of the help.
std::span<const Command> commands();
std::span<const Command> calibrate_steps();
std::span<const Command> validate_steps();
/// Runs the command or step that starts `arguments` with the words after it. Throws ConfigError `unknown KIND 'x'`.
int run_one_of(std::span<const Command> all, std::string_view kind, std::span<const std::string> arguments);

int run_estimate(std::span<const std::string> arguments);
int run_simulate(std::span<const std::string> arguments);
int run_sweep_command(std::span<const std::string> arguments);
int run_compare(std::span<const std::string> arguments);
int run_plan(std::span<const std::string> arguments);
int run_report(std::span<const std::string> arguments);
int run_explore(std::span<const std::string> arguments);
int run_models(std::span<const std::string> arguments);
int run_gpus(std::span<const std::string> arguments);
int run_gpus_new(std::span<const std::string> arguments);
int run_kernels(std::span<const std::string> arguments);
int run_engines(std::span<const std::string> arguments);
int run_recipes(std::span<const std::string> arguments);
int run_clients(std::span<const std::string> arguments);
int run_workloads(std::span<const std::string> arguments);
int run_import(std::span<const std::string> arguments);
int run_ladder(std::span<const std::string> arguments);
int run_lecture(std::span<const std::string> arguments);
int run_schema(std::span<const std::string> arguments);
int run_validate(std::span<const std::string> arguments);
int run_validate_kernels(std::span<const std::string> arguments);
int run_validate_serving(std::span<const std::string> arguments);
int run_validate_local(std::span<const std::string> arguments);
int run_calibrate(std::span<const std::string> arguments);
int run_calibrate_fit(std::span<const std::string> arguments);
int run_calibrate_measure(std::span<const std::string> arguments);
int run_calibrate_show(std::span<const std::string> arguments);
int run_calibrate_host(std::span<const std::string> arguments);
int run_calibrate_acceptance(std::span<const std::string> arguments);
int run_calibrate_power(std::span<const std::string> arguments);
int run_help(std::span<const std::string> arguments);
int run_complete(std::span<const std::string> arguments);  ///< for completions of shells; not in the help

}  // namespace roofcast::cli
