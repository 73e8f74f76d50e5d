#pragma once
// The scenario of a measured run: its model and load, as far as its file states them.

#include <string>

#include "base/config_node.h"
#include "sim/plan/measured/llama_bench.h"

namespace roofcast {

struct RunScenario {
  ConfigTree tree;                   ///< without a GPU, because no file names it
  std::vector<std::string> assumed;  ///< what the file does not state
};
RunScenario scenario_of_run(const BenchRun& run);
RunScenario scenario_of_run(const LlamaBench& bench);

/// Reads a file of a load generator, of llama-bench or of a server's metrics page; empty for other files. `which`:
/// number of the run in the file, from 1. `window`: the time that a metrics page covers.
std::optional<RunScenario> read_run_scenario(const std::string& path, std::optional<std::int64_t> which,
                                             std::optional<Seconds> window);

}  // namespace roofcast
