#pragma once
// Replicas that an autoscaler starts and stops, or that fail with a GPU.

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
  std::optional<Seconds> mtbf;  ///< mean time between failures of one GPU; exponentially distributed
  Seconds repair{1800};         ///< until the replica can start again, cold
  SourceLocation location{};    ///< position of `failures` in the scenario
  bool requeue = true;          ///< requests move to other replicas and keep their tokens; false: they fail
  std::vector<Event> events{};  ///< failures at given times
};

/// The fleet settings of a scenario. Empty: all replicas serve all the time.
struct FleetSpec {
  std::optional<AutoscalingSpec> autoscaling;          ///< for the replicas that decode
  std::optional<AutoscalingSpec> prefill_autoscaling;  ///< for prefill-only replicas
  std::optional<FailureSpec> failures;
  Seconds cold_start{};                       ///< time to load the weights and start the engine
  std::optional<Seconds> prefill_cold_start;  ///< the same for prefill-only replicas, if separate
  const std::optional<AutoscalingSpec>& scaling(bool prefill) const {
    return prefill ? prefill_autoscaling : autoscaling;
  }
  bool scaled() const { return autoscaling || prefill_autoscaling; }
  bool active() const { return scaled() || failures; }
};

enum class ReplicaState : std::uint8_t { kOff, kStarting, kActive, kDraining, kDown };

/// States of the replicas and the time paid for. Independent of requests.
class FleetStates {
 public:
  /// The number of replicas of one kind, and how many of them serve at time 0 (the first ones).
  struct Kind {
    int replicas = 0, serving = 0;
  };
  /// Prefill-only replicas have the lowest numbers.
  FleetStates(const FleetSpec& spec, Kind prefill, Kind decode, std::uint64_t seed);

  ReplicaState state(int i) const { return members_[static_cast<std::size_t>(i)].state; }
  int count(ReplicaState state, bool prefill) const { return counts_[prefill][static_cast<std::size_t>(state)]; }
  int count(ReplicaState state) const { return count(state, false) + count(state, true); }
  int size() const { return static_cast<int>(members_.size()); }
  /// Sets the state of replica `i` at `now`; for kStarting, also records when the start ends.
  void set(int i, ReplicaState state, SimTime now);
  SimTime ready_at(int i) const { return members_[static_cast<std::size_t>(i)].ready; }
  /// Time of the next random failure of one of the replica's GPUs. Empty without mtbf, or beyond the longest simulated
  /// time.
  std::optional<SimTime> next_failure(int i, SimTime now);

  /// The state after all changes up to `now`.
  FleetRecord record(SimTime now) const;
  /// Paid seconds (starting, serving or draining), summed over the replicas of a kind, between two times.
  double paid_seconds(SimTime from, SimTime to, bool prefill) const;
  /// The same, split by the number of replicas of each kind that were paid for at once.
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
  double failure_rate_ = 0;                     ///< per GPU, 1/s
  std::vector<Member> members_;
  std::vector<Change> changes_;
};

/// The cold start of a replica that loads `weights` bytes in total.
Seconds cold_start(Bytes weights, Seconds engine_start);

/// The fleet settings of one kind of replica.
struct FleetPart {
  int replicas = 1;
  Bytes weights{};  ///< weights that one replica loads
  Seconds engine_start{};
  std::optional<ConfigReader> autoscaling{};  ///< `autoscaling: {...}`
};
/// `failures: {...}` applies to all replicas.
FleetSpec parse_fleet(FleetPart decode, std::optional<FleetPart> prefill, std::optional<ConfigReader> failures);

}  // namespace roofcast
