#pragma once
// A scenario of a measured run: its model and its load, as far as its file says.

#include <string>

#include "base/config_node.h"
#include "sim/plan/measured/llama_bench.h"

namespace roofcast {

struct RunScenario {
  ConfigTree tree;                   ///< without a GPU, which no file names by its model
  std::vector<std::string> assumed;  ///< what the file does not say
};
RunScenario scenario_of_run(const BenchRun& run);
RunScenario scenario_of_run(const LlamaBench& bench);

/// The same of a file of a load generator, of llama-bench or of a server's metrics page; nothing for other files.
/// `which`: of several runs, from 1; `window`: the time that a metrics page covers.
std::optional<RunScenario> read_run_scenario(const std::string& path, std::optional<std::int64_t> which,
                                             std::optional<Seconds> window);

}  // namespace roofcast
