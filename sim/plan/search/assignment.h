#pragma once
// Which fleet each of several services gets, so that all of them together cost the least: they share limits, stocks of
// GPUs, and instances, which are bought whole.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace roofcast {

/// GPUs that are bought in the same instances: one kind, one offer, one size. Replicas of several services share an
/// instance where they fit.
struct GpuPool {
  std::string gpu;
  double usd_per_gpu_hour = 0;
  int host = 1;  ///< GPUs of an instance
  auto operator<=>(const GpuPool&) const = default;
};

/// So many replicas of so many GPUs each, all in one pool. A replica larger than an instance takes whole ones.
struct PooledReplicas {
  std::size_t pool = 0;
  int gpus = 1, replicas = 0;
};

/// A fleet that one service may get.
struct FleetOption {
  std::vector<PooledReplicas> parts;
  double watts = 0;  ///< counted against the limit
};

/// Of all services together.
struct SharedLimits {
  int max_gpus = 0;
  std::optional<double> max_usd_per_hour = std::nullopt, max_watts = std::nullopt;
  std::vector<std::pair<std::string, int>> available = {};  ///< GPUs of a kind, where limited
};

/// A replica in an instance, or as much of it as the instance holds.
struct PackedReplica {
  std::size_t service = 0, part = 0;  ///< the part of the service's fleet that it is of
  int gpus = 0;
  auto operator<=>(const PackedReplica&) const = default;
};

/// Replicas of services in one instance.
struct Instance {
  std::size_t pool = 0;
  std::vector<std::pair<std::size_t, int>> gpus;  ///< service, its GPUs; in the order of services
  std::vector<PackedReplica> replicas;            ///< in the order of services and parts
};

struct Assignment {
  std::vector<std::size_t> chosen;  ///< of each service, its option
  int gpus = 0;                     ///< that replicas use
  double paid_gpus = 0, usd_per_hour = 0, watts = 0;
  bool proven = true;  ///< false: there were too many to try them all
};

struct AssignmentOutcome {
  std::optional<Assignment> best;  ///< none: no choice that was tried keeps the limits
  bool decided = true;             ///< false: none was found, and there were too many to try them all
};

/// Choices that are tried: a second or two.
inline constexpr std::size_t kMostTried = 2'000'000;

/// What is weighed first; the other decides between equals.
enum class Cheapest { kUsd, kGpus };

/// GPUs of an option's replicas.
int gpus_of(const FleetOption& option);

/// The instances of these fleets, one of each service: replicas of most GPUs first, each into the fullest instance that
/// has room for it. No packing needs fewer instances where each size divides the next larger one.
std::vector<Instance> packed(const std::vector<GpuPool>& pools, const std::vector<FleetOption>& fleets);

/// The first GPU of each replica of an instance. Larger ones come first: where sizes divide each other, each begins at a
/// multiple of its own, as pairs and halves of a board are linked.
std::vector<int> first_gpus(const Instance& instance);

/// The cheapest choice of an option for each service within the limits, by depth-first search; what is chosen so far,
/// with the GPUs of the cheapest rest and no instance wasted, bounds a branch from below. Of equals the first options
/// win. A price that is not known keeps no limit of cost.
AssignmentOutcome cheapest_assignment(const std::vector<GpuPool>& pools,
                                      const std::vector<std::vector<FleetOption>>& services, const SharedLimits& limits,
                                      Cheapest by = Cheapest::kUsd, std::size_t most_tried = kMostTried);

}  // namespace roofcast
