#pragma once
// Several services, each with its own model, load and objectives, that share a budget, GPUs, power and instances. Each
// service gets its own fleet, because a replica serves one model; all fleets are chosen together.

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/search/assignment.h"
#include "sim/plan/search/plan_answer.h"

namespace roofcast {

/// One service as a plan of its own, with the common keys merged into it.
struct Service {
  std::string name;
  ConfigTree plan;
};

struct ServicesSpec {
  std::vector<Service> services;
  PlanGoal goal = PlanGoal::kCost;
  SharedLimits limits;
};

/// Whether the plan has several services (the key `services`).
bool has_services(const ConfigTree& plan);

/// Reads
///   services:
///     - {name: chat, model: ..., workload: ..., objectives: ..., search: {tp: [...], growth: ...}}
///     - ...
///   search: {gpus: [...], max_gpus: 32, max_cost, max_power, ...}
/// Keys next to `services`, and those of `search`, are common; no key may be in both places. `gpus` with their
/// `available`, `max_gpus`, `max_cost`, `max_power` and `goal` apply to all services together; `gpus` of a service
/// restricts it to some of them. Throws ConfigError without services, for invalid names (missing, duplicate, longer
/// than 40, other characters than lower-case letters, digits and '-', or '-' at an end), and for a key in both places.
ServicesSpec parse_services(const ConfigTree& plan);

struct ServiceAnswer {
  std::string name;
  PlanAnswer answer;        ///< its first row is its part of the joint plan; planned alone if there is none
  double usd_per_hour = 0;  ///< its share, by GPUs, of the cost of the joint plan's instances
  double usd_alone = 0;     ///< cost of the fleet that it would have alone
  std::size_t options = 0;  ///< number of fleets considered
};

/// The part of a service's FleetOption that prefills.
inline constexpr std::size_t kPrefillPart = 1;

/// GPUs of one offer that the joint plan rents.
struct PoolUse {
  GpuPool pool;
  PriceQuote quote;
  int gpus = 0, paid_gpus = 0;
  std::optional<int> available;  ///< available GPUs of this type
};

/// A limit on all services, and what they would use without it.
struct BindingLimit {
  std::string what;  ///< "max_gpus (16)"
  int gpus = 0;
  double usd_per_hour = 0;
  bool all = false;  ///< all limits together: lifting a single one is not enough
};

/// All services in a month in which some fleet changes.
struct ServicesStage {
  int month = 0;  ///< 0: now
  int gpus = 0, paid_gpus = 0;
  double usd_per_hour = 0;
  std::vector<std::string> beyond;  ///< common limits that are exceeded
};

struct ServicesAnswer {
  ServicesSpec spec;
  std::vector<ServiceAnswer> services;
  std::optional<Assignment> joint;    ///< of the services that have a fleet; empty: they do not fit together
  bool decided = true;                ///< false: no joint plan was found, but not every choice was tried
  std::vector<Instance> shared;       ///< instances with replicas of several services; `pool` as in `pools`
  std::vector<PoolUse> pools;         ///< pools that the joint plan uses
  std::vector<BindingLimit> binds;    ///< limits without which it would be cheaper, or would fit
  bool binds_proven = true;           ///< false: not every choice without some limit was tried
  std::vector<ServicesStage> growth;  ///< if loads grow

  /// Whether every service has a fleet.
  bool complete() const;
  /// Sums over the services: means, and upper ends of the 90 % intervals.
  Watts power() const, power_bound() const;
};

/// Plans each service alone, and with each type of GPU alone, within the common limits. Every fleet found that holds
/// with the plan's confidence is an option, except those dominated in the same pool and size. cheapest_assignment()
/// chooses among the options and their offers. A single service is planned as usual. Throws ConfigError for several
/// services with loads other than a steady rate or users.
ServicesAnswer answer_services(const ConfigTree& plan, const SearchOptions& options,
                               PlanDetail detail = PlanDetail::kAll);

}  // namespace roofcast
