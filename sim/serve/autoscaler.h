#pragma once
// How many replicas an autoscaler wants.

#include <deque>
#include <span>
#include <string_view>

#include "base/config_reader.h"
#include "sim/serve/sim_time.h"

namespace roofcast {

enum class ScalingPolicy {
  kQueue,        ///< prompts that wait per replica
  kConcurrency,  ///< requests in flight per replica: waiting and running
  kUtilization,  ///< share of the engine's places (max_num_seqs) in use; a GPU that decodes is busy at any load
};

struct AutoscalingSpec {
  int min = 1, max = 8;  ///< replicas
  ScalingPolicy policy = ScalingPolicy::kConcurrency;
  double target = 32;             ///< in the policy's unit
  Seconds interval{15};           ///< between decisions (Kubernetes' horizontal pod autoscaler has 15 s)
  Seconds scale_up_delay{0};      ///< the fewest replicas wanted over this time are started
  Seconds scale_down_delay{300};  ///< the most replicas wanted over this time are kept (Kubernetes: 300 s)
};
AutoscalingSpec parse_autoscaling(ConfigReader& in);

struct ScalingPolicyName {
  std::string_view name, help;
};
std::span<const ScalingPolicyName> scaling_policies();  ///< in the order of ScalingPolicy

/// The load of the replicas that serve or are starting.
struct FleetLoad {
  double waiting = 0, running = 0;  ///< requests
  double places = 1;                ///< max_num_seqs of one replica
};

class Autoscaler {
 public:
  /// `replicas`: how many serve, and are wanted, at time 0.
  Autoscaler(const AutoscalingSpec& spec, int replicas) : spec_(spec), past_{{SimTime(), replicas}} {}

  /// The number of replicas wanted from now on; `current` serve or start. Concurrency and utilization: as many as bring
  /// the load of each down to the target. Queue: `current` times the queue over its target, at most twice as many; one
  /// fewer when nothing waits.
  int wanted(SimTime now, const FleetLoad& load, int current);

 private:
  struct Wish {
    SimTime at;
    int replicas;
  };
  int wish(const FleetLoad& load, int current) const;

  AutoscalingSpec spec_;
  std::deque<Wish> past_;  ///< as far back as the longer delay
};

}  // namespace roofcast
