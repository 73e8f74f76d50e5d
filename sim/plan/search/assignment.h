#pragma once
// Chooses one fleet for each of several services at the lowest total cost. Services share limits, stocks of GPUs, and
// instances, which are rented whole.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace roofcast {

/// GPUs rented as the same instances: one GPU type, offer and size. Replicas of several services share an instance if
/// they fit.
struct GpuPool {
  std::string gpu;
  double usd_per_gpu_hour = 0;
  int host = 1;  ///< GPUs per instance
  auto operator<=>(const GpuPool&) const = default;
};

/// Replicas of one size in one pool. A replica larger than an instance occupies whole instances.
struct PooledReplicas {
  std::size_t pool = 0;
  int gpus = 1, replicas = 0;
};

/// A candidate fleet of one service.
struct FleetOption {
  std::vector<PooledReplicas> parts;
  double watts = 0;  ///< counts towards the power limit
};

/// Limits on all services together.
struct SharedLimits {
  int max_gpus = 0;
  std::optional<double> max_usd_per_hour = std::nullopt, max_watts = std::nullopt;
  std::vector<std::pair<std::string, int>> available = {};  ///< available GPUs per type, where limited
};

/// A replica in an instance, or the part of it in this instance.
struct PackedReplica {
  std::size_t service = 0, part = 0;  ///< part: index in the service's fleet
  int gpus = 0;
  auto operator<=>(const PackedReplica&) const = default;
};

/// Replicas of services in one instance.
struct Instance {
  std::size_t pool = 0;
  std::vector<std::pair<std::size_t, int>> gpus;  ///< per service: its GPUs
  std::vector<PackedReplica> replicas;            ///< in the order of services and parts
};

struct Assignment {
  std::vector<std::size_t> chosen;  ///< option of each service
  int gpus = 0;                     ///< GPUs that replicas use
  double paid_gpus = 0, usd_per_hour = 0, watts = 0;
  bool proven = true;  ///< false: too many choices to try all of them
};

struct AssignmentOutcome {
  std::optional<Assignment> best;  ///< empty: no tried choice is within the limits
  bool decided = true;             ///< false: none was found, and not all could be tried
};

/// Maximum number of choices that are tried; takes one or two seconds.
inline constexpr std::size_t kMostTried = 2'000'000;

/// The criterion compared first; the other one breaks ties.
enum class Cheapest { kUsd, kGpus };

/// GPUs of all replicas of an option.
int gpus_of(const FleetOption& option);

/// Packs one fleet per service into instances: largest replicas first, each into the fullest instance that has room. If
/// each size divides the next larger one, the number of instances is minimal.
std::vector<Instance> packed(const std::vector<GpuPool>& pools, const std::vector<FleetOption>& fleets);

/// The first GPU of each replica in an instance. Larger replicas come first. If sizes divide each other, each starts at
/// a multiple of its size, matching the link topology of a board.
std::vector<int> first_gpus(const Instance& instance);

/// The cheapest choice of one option per service within the limits, by depth-first search. The lower bound of a branch
/// is the cost so far plus the cheapest GPUs of the rest without unused instances. Ties prefer the first options. An
/// option without a price violates any cost limit.
AssignmentOutcome cheapest_assignment(const std::vector<GpuPool>& pools,
                                      const std::vector<std::vector<FleetOption>>& services, const SharedLimits& limits,
                                      Cheapest by = Cheapest::kUsd, std::size_t most_tried = kMostTried);

}  // namespace roofcast
