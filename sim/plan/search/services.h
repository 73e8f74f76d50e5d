#pragma once
// Several services, each with a model, a load and objectives of its own, that share a budget, GPUs, power and
// instances. An engine serves one model a replica, so each gets a fleet; all of them are chosen together.

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/search/assignment.h"
#include "sim/plan/search/plan_answer.h"

namespace roofcast {

/// One service of a plan, with what is common to all laid under it: a plan of its own.
struct Service {
  std::string name;
  ConfigTree plan;
};

struct ServicesSpec {
  std::vector<Service> services;
  PlanGoal goal = PlanGoal::kCost;
  SharedLimits limits;
};

/// Whether the plan is of several services (it has the key `services`).
bool has_services(const ConfigTree& plan);

/// Reads
///   services:
///     - {name: chat, model: ..., workload: ..., objectives: ..., search: {tp: [...], growth: ...}}
///     - ...
///   search: {gpus: [...], max_gpus: 32, max_cost, max_power, ...}
/// Keys beside `services`, and of `search`, are common: each stands in one place. `gpus`, their `available`,
/// `max_gpus`, `max_cost`, `max_power` and `goal` are of all services together; a service's own `gpus` names those of
/// them that it may use. Throws ConfigError for no service, for names that are missing, taken, longer than 40, not of
/// lower-case letters, digits and '-', or with '-' at an end, and for a key in both places.
ServicesSpec parse_services(const ConfigTree& plan);

struct ServiceAnswer {
  std::string name;
  PlanAnswer answer;        ///< the first of its ranking is its part of the joint plan; by itself where there is none
  double usd_per_hour = 0;  ///< its share, by GPUs, of what the joint plan's instances cost
  double usd_alone = 0;     ///< of the fleet that it would have by itself: the first of its ranking
  std::size_t options = 0;  ///< fleets that were weighed
};

/// The part of a service's FleetOption that prefills.
inline constexpr std::size_t kPrefillPart = 1;

/// GPUs of one offer that the joint plan buys.
struct PoolUse {
  GpuPool pool;
  PriceQuote quote;
  int gpus = 0, paid_gpus = 0;
  std::optional<int> available;  ///< of the kind
};

/// A limit of all services, and what they would take without it.
struct BindingLimit {
  std::string what;  ///< "max_gpus (16)"
  int gpus = 0;
  double usd_per_hour = 0;
  bool all = false;  ///< all of the limits: no single one is enough
};

/// All services in a month in which some fleet changes.
struct ServicesStage {
  int month = 0;  ///< 0: now
  int gpus = 0, paid_gpus = 0;
  double usd_per_hour = 0;
  std::vector<std::string> beyond;  ///< limits of all that are not kept any more
};

struct ServicesAnswer {
  ServicesSpec spec;
  std::vector<ServiceAnswer> services;
  std::optional<Assignment> joint;    ///< of the services that have a fleet at all; none: they do not fit together
  bool decided = true;                ///< false: no joint plan was found, but not every choice was tried
  std::vector<Instance> shared;       ///< instances with replicas of several services; `pool` as in `pools`
  std::vector<PoolUse> pools;         ///< that the joint plan uses
  std::vector<BindingLimit> binds;    ///< without which it would be cheaper, or, where nothing fits, would fit
  bool binds_proven = true;           ///< false: not every choice without some limit was tried
  std::vector<ServicesStage> growth;  ///< where loads grow

  /// Every service has a fleet.
  bool complete() const;
  /// Means and upper ends of the 90 % intervals, summed up.
  Watts power() const, power_bound() const;
};

/// Each service is planned alone, and with each kind of GPU alone, within the limits of all; every fleet so found that
/// holds with the plan's confidence is an option, save those of which another of the same pool and size takes less.
/// cheapest_assignment() chooses among them, and among the offers each may be rented at. One service is planned as if
/// it stood alone. Throws ConfigError for loads of several services that are no steady rate or users.
ServicesAnswer answer_services(const ConfigTree& plan, const SearchOptions& options,
                               PlanDetail detail = PlanDetail::kAll);

}  // namespace roofcast
