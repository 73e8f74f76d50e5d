#pragma once
// A scenario file, or the flags that stand for one, as checked inputs of the layers below.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "hw/cost.h"
#include "sim/plan/objectives.h"
#include "sim/serve/simulation.h"
#include "sim/serve/workload.h"

namespace roofcast {

struct Deployment;
class SpecCache;

/// Everything a scenario says.
struct Scenario {
  std::shared_ptr<const Deployment> deployment;
  std::optional<WorkloadSpec> workload;
  ServingOptions serving;
  std::vector<Objective> objectives;
  double goodput = 0;  ///< in a plan: share of requests within all limits at once; 0: each limit is judged by itself
  std::vector<std::string> doubts;  ///< why it may not run as it is written (sim/plan/support.h)

  /// Replaces the objectives, and with them the limits of single requests.
  void set_objectives(std::vector<Objective> wanted);
};

/// Throws ConfigError for whatever is wrong with the file; a deployment that does not fit is
/// `deployment->memory.infeasible`.
Scenario read_scenario(const ConfigTree& tree, Fidelity fidelity);
/// Whether a scenario's load is what will be played. Where it is varied, as in the search of a plan, a recipe's amounts
/// that ask for the concurrency are left to the engine's defaults.
enum class LoadIs { kFixed, kVaried };
/// The same with specs that other scenarios share.
Scenario read_scenario(const ConfigTree& tree, Fidelity fidelity, SpecCache& specs, LoadIs load = LoadIs::kFixed);

/// Only the keys of the deployment: model, gpu, engine, recipe, parallelism, precision, routing; the others stay unread
/// in `in`.
std::shared_ptr<const Deployment> read_deployment(ConfigReader& in, Fidelity fidelity);
/// The facts beside the deployment that a recipe may ask about.
struct DeploymentUse {
  const WorkloadSpec* workload = nullptr;  ///< null: not known
  bool disaggregated = false;              ///< one of two kinds of workers
  LoadIs load = LoadIs::kFixed;
};
/// The same with shared specs; `replicas` is set where the parallelism says so.
std::shared_ptr<const Deployment> read_deployment(ConfigReader& in, Fidelity fidelity, int& replicas, SpecCache& specs,
                                                  const DeploymentUse& use);

}  // namespace roofcast
