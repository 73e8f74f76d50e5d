#pragma once
// Replicas that come and go: started and stopped by an autoscaler, and lost when a GPU fails.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/random.h"
#include "sim/serve/autoscaler.h"
#include "sim/serve/observer.h"

namespace roofcast {

struct FailureSpec {
  struct Event {
    Seconds at{};
    int replica = 0;
  };
  std::optional<Seconds> mtbf;  ///< mean time between failures of one GPU; exponential
  Seconds repair{1800};         ///< until the replica can start again, cold
  Mark mark{};                  ///< where the scenario asks for them
  bool requeue = true;          ///< its requests go to other replicas, tokens so far kept; false: they fail
  std::vector<Event> events{};  ///< failures at known times
};

/// What a scenario says of its fleet; empty: the replicas are there all the time.
struct FleetSpec {
  std::optional<AutoscalingSpec> autoscaling;          ///< of the replicas that decode
  std::optional<AutoscalingSpec> prefill_autoscaling;  ///< of replicas that only prefill
  std::optional<FailureSpec> failures;
  Seconds cold_start{};                       ///< weights loaded and engine started
  std::optional<Seconds> prefill_cold_start;  ///< ... of replicas that only prefill, where these are others
  const std::optional<AutoscalingSpec>& scaling(bool prefill) const {
    return prefill ? prefill_autoscaling : autoscaling;
  }
  bool scaled() const { return autoscaling || prefill_autoscaling; }
  bool active() const { return scaled() || failures; }
};

enum class ReplicaState : std::uint8_t { kOff, kStarting, kActive, kDraining, kDown };

/// States and what they cost. Knows nothing of requests.
class FleetStates {
 public:
  /// Replicas of one kind, and how many of them serve at time 0: the first ones.
  struct Kind {
    int replicas = 0, serving = 0;
  };
  /// Those that only prefill have the first numbers.
  FleetStates(const FleetSpec& spec, Kind prefill, Kind decode, std::uint64_t seed);

  ReplicaState state(int i) const { return members_[static_cast<std::size_t>(i)].state; }
  int count(ReplicaState state, bool prefill) const { return counts_[prefill][static_cast<std::size_t>(state)]; }
  int count(ReplicaState state) const { return count(state, false) + count(state, true); }
  int size() const { return static_cast<int>(members_.size()); }
  /// Changes a state at that time; kStarting notes when it ends.
  void set(int i, ReplicaState state, SimTime now);
  SimTime ready_at(int i) const { return members_[static_cast<std::size_t>(i)].ready; }
  /// Time of the next failure by chance of one of the replica's GPUs; nothing without mtbf or beyond the longest
  /// simulated time.
  std::optional<SimTime> next_failure(int i, SimTime now);

  /// The state after all changes up to `now`.
  FleetRecord record(SimTime now) const;
  /// Seconds that replicas of a kind were paid for (starting, serving or draining) between two times.
  double paid_seconds(SimTime from, SimTime to, bool prefill) const;
  /// The same, split by how many of each kind were paid for at once.
  std::vector<PaidFleet> paid_fleets(SimTime from, SimTime to) const;
  int most_paid(bool prefill) const;

 private:
  struct Member {
    ReplicaState state = ReplicaState::kOff;
    SimTime ready;
    Random failures;
  };
  struct Change {
    SimTime at;
    std::array<int, 2> paid;  ///< decoding replicas, prefill-only replicas
  };
  int paid(bool prefill) const;
  void note(SimTime now);

  FleetSpec spec_;
  int prefill_;
  std::array<std::array<int, 5>, 2> counts_{};  ///< decoding, prefill-only; by ReplicaState
  double failure_rate_ = 0;                     ///< of a GPU, 1/s
  std::vector<Member> members_;
  std::vector<Change> changes_;
};

/// The cold start of a replica that loads so many bytes in all.
Seconds cold_start(Bytes weights, Seconds engine_start);

/// What a scenario says of the replicas of one kind.
struct FleetPart {
  int replicas = 1;
  Bytes weights{};  ///< weights that a whole replica loads
  Seconds engine_start{};
  std::optional<ConfigReader> autoscaling{};  ///< `autoscaling: {...}`
};
/// `failures: {...}` applies to all replicas.
FleetSpec parse_fleet(FleetPart decode, std::optional<FleetPart> prefill, std::optional<ConfigReader> failures);

}  // namespace roofcast
