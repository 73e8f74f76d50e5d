#include <array>

#include "cli/command.h"

namespace roofcast {

std::span<const Command> commands() {
  static constexpr std::array kCommands{
      Command{"estimate", "one deployment in closed form, operator by operator", run_estimate},
      Command{"simulate", "a scenario under load, request by request", run_simulate},
      Command{"ladder", "the techniques one after another, and what each buys", run_ladder},
      Command{"sweep", "a grid of scenarios, in parallel, resumable", run_sweep_command},
      Command{"plan", "the cheapest deployment that meets the objectives", run_plan},
      Command{"compare", "a measured run beside its prediction, and why they differ", run_compare},
      Command{"validate", "predictions beside measurements: kernels, serving", run_validate},
      Command{"calibrate", "measure a GPU, fit its constants, show them", run_calibrate},
      Command{"report", "results as one page, as plots, as characters", run_report},
      Command{"explore", "a page in the browser where every slider moves every picture", run_explore},
      Command{"models", "the models that names stand for", run_models},
      Command{"gpus", "the GPUs", run_gpus},
      Command{"kernels", "the kernels that operators are priced by, and their constants", run_kernels},
      Command{"engines", "the engines and their releases", run_engines},
      Command{"recipes", "launch recipes", run_recipes},
      Command{"clients", "benchmark clients", run_clients},
      Command{"workloads", "the workloads", run_workloads},
      Command{"import", "a Hugging Face config.json as a model of ours", run_import},
  };
  return kCommands;
}

}  // namespace roofcast
