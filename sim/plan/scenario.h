#pragma once
// A scenario file, or the equivalent flags, as validated inputs of the layers below.

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

/// The contents of a scenario.
struct Scenario {
  std::shared_ptr<const Deployment> deployment;
  std::optional<WorkloadSpec> workload;
  ServingOptions serving;
  std::vector<Objective> objectives;
  double goodput = 0;  ///< in a plan: required fraction of requests within all limits; 0: limits are judged separately
  std::vector<std::string> doubts;  ///< why it may not run as written (sim/plan/support.h)

  /// Replaces the objectives and the limits of single requests.
  void set_objectives(std::vector<Objective> wanted);
};

/// Throws ConfigError for an invalid file. A deployment that does not fit sets `deployment->memory.infeasible`.
Scenario read_scenario(const ConfigTree& tree, Fidelity fidelity);
/// Whether the load of the scenario is final. If it varies, as in a plan's search, recipe amounts that depend on the
/// concurrency fall back to the engine's defaults.
enum class LoadIs { kFixed, kVaried };
/// The same with shared specs.
Scenario read_scenario(const ConfigTree& tree, Fidelity fidelity, SpecCache& specs, LoadIs load = LoadIs::kFixed);

/// Reads only the deployment's keys: model, gpu, engine, recipe, parallelism, precision, routing. Other keys stay
/// unread in `in`.
std::shared_ptr<const Deployment> read_deployment(ConfigReader& in, Fidelity fidelity);
/// Facts outside of the deployment that a recipe may use.
struct DeploymentUse {
  const WorkloadSpec* workload = nullptr;  ///< null: unknown
  bool disaggregated = false;              ///< separate prefill and decode workers
  LoadIs load = LoadIs::kFixed;
};
/// The same with shared specs; sets `replicas` if the parallelism states it.
std::shared_ptr<const Deployment> read_deployment(ConfigReader& in, Fidelity fidelity, int& replicas, SpecCache& specs,
                                                  const DeploymentUse& use);

}  // namespace roofcast
