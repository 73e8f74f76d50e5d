#pragma once
// Chooses a fleet for each of several services so that the total cost is least. Services share limits, stocks of GPUs,
// and instances, which are bought whole.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace roofcast {

/// GPUs bought in the same instances: one kind, offer and size. Replicas of several services share an instance if they
/// fit.
struct GpuPool {
  std::string gpu;
  double usd_per_gpu_hour = 0;
  int host = 1;  ///< GPUs per instance
  auto operator<=>(const GpuPool&) const = default;
};

/// Replicas of one size in one pool. A replica larger than an instance takes whole instances.
struct PooledReplicas {
  std::size_t pool = 0;
  int gpus = 1, replicas = 0;
};

/// A fleet that one service may get.
struct FleetOption {
  std::vector<PooledReplicas> parts;
  double watts = 0;  ///< counted against the limit
};

/// Limits of all services together.
struct SharedLimits {
  int max_gpus = 0;
  std::optional<double> max_usd_per_hour = std::nullopt, max_watts = std::nullopt;
  std::vector<std::pair<std::string, int>> available = {};  ///< GPUs of a kind, where limited
};

/// A replica in an instance, or the part of it that the instance holds.
struct PackedReplica {
  std::size_t service = 0, part = 0;  ///< part: index in the service's fleet
  int gpus = 0;
  auto operator<=>(const PackedReplica&) const = default;
};

/// Replicas of services in one instance.
struct Instance {
  std::size_t pool = 0;
  std::vector<std::pair<std::size_t, int>> gpus;  ///< service and its GPUs, in the order of services
  std::vector<PackedReplica> replicas;            ///< in the order of services and parts
};

struct Assignment {
  std::vector<std::size_t> chosen;  ///< option of each service
  int gpus = 0;                     ///< GPUs that replicas use
  double paid_gpus = 0, usd_per_hour = 0, watts = 0;
  bool proven = true;  ///< false: too many choices to try them all
};

struct AssignmentOutcome {
  std::optional<Assignment> best;  ///< empty: no choice that was tried keeps the limits
  bool decided = true;             ///< false: none was found, and there were too many to try them all
};

/// Choices that are tried: one or two seconds.
inline constexpr std::size_t kMostTried = 2'000'000;

/// The criterion that is compared first; the other one breaks ties.
enum class Cheapest { kUsd, kGpus };

/// GPUs of an option's replicas.
int gpus_of(const FleetOption& option);

/// The instances of these fleets, one fleet per service: largest replicas first, each into the fullest instance with
/// room for it. If each size divides the next larger one, no packing needs fewer instances.
std::vector<Instance> packed(const std::vector<GpuPool>& pools, const std::vector<FleetOption>& fleets);

/// The first GPU of each replica of an instance. Larger ones come first: where sizes divide each other, each begins at
/// a multiple of its own, as pairs and halves of a board are linked.
std::vector<int> first_gpus(const Instance& instance);

/// The cheapest choice of an option for each service within the limits, by depth-first search; what is chosen so far,
/// with the GPUs of the cheapest rest and no instance wasted, bounds a branch from below. Of equals the first options
/// win. A price that is not known keeps no limit of cost.
AssignmentOutcome cheapest_assignment(const std::vector<GpuPool>& pools,
                                      const std::vector<std::vector<FleetOption>>& services, const SharedLimits& limits,
                                      Cheapest by = Cheapest::kUsd, std::size_t most_tried = kMostTried);

}  // namespace roofcast
