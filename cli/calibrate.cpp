// roofcast calibrate measure, fit, show, host, acceptance, power.

#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"

namespace roofcast {

int run_calibrate(std::span<const std::string> arguments) {
  static constexpr std::array kSteps{
      Command{"measure", "microkernels on a CUDA GPU, one JSON line a point", run_calibrate_measure},
      Command{"fit", "constants of a GPU from kernel times", run_calibrate_fit},
      Command{"show", "constants, and ceilings beside the datasheet", run_calibrate_show},
      Command{"host", "host costs of an engine from serving runs", run_calibrate_host},
      Command{"acceptance", "which acceptance explains runs with multi-token prediction", run_calibrate_acceptance},
      Command{"power", "the power curve of GPUs from measured servers", run_calibrate_power},
  };
  std::vector<std::string> names;
  for (const Command& step : kSteps) {
    if (!arguments.empty() && arguments[0] == step.name) return step.run(arguments.subspan(1));
    names.emplace_back(step.name);
  }
  if (!arguments.empty() && (arguments[0] == "--help" || arguments[0] == "-h")) {
    fmt::print("usage: roofcast calibrate {}     (each with --help tells more)\n", join(names, "|"));
    for (const Command& step : kSteps) fmt::print("  {:<10} {}\n", step.name, step.help);
    return kDone;
  }
  if (arguments.empty()) throw ConfigError("calibrate: what? one of " + join(names, ", "));
  throw ConfigError(unknown_name("calibrate command", arguments[0], names));
}

}  // namespace roofcast
