#pragma once
// How many replicas an autoscaler requests.

#include <deque>
#include <span>
#include <string_view>

#include "base/config_reader.h"
#include "sim/serve/sim_time.h"

namespace roofcast {

enum class ScalingPolicy {
  kQueue,        ///< waiting prompts per replica
  kConcurrency,  ///< requests in flight per replica: waiting and running
  kUtilization,  ///< running sequences / max_num_seqs; GPU utilization would be high at any load
};

struct AutoscalingSpec {
  int min = 1, max = 8;  ///< replicas
  ScalingPolicy policy = ScalingPolicy::kConcurrency;
  double target = 32;             ///< in the policy's unit
  Seconds interval{15};           ///< between decisions (15 s in Kubernetes' horizontal pod autoscaler)
  Seconds scale_up_delay{0};      ///< scale up to the minimum requested in this window
  Seconds scale_down_delay{300};  ///< scale down to the maximum requested in this window (Kubernetes: 300 s)
};
AutoscalingSpec parse_autoscaling(ConfigReader& in);

struct ScalingPolicyName {
  std::string_view name, help;
};
std::span<const ScalingPolicyName> scaling_policies();  ///< in the order of ScalingPolicy

/// The load on the replicas that are serving or starting.
struct FleetLoad {
  double waiting = 0, running = 0;  ///< requests
  double max_sequences = 1;         ///< max_num_seqs of one replica
};

class Autoscaler {
 public:
  /// At time 0, `replicas` are serving and requested.
  Autoscaler(const AutoscalingSpec& spec, int replicas) : spec_(spec), past_{{SimTime(), replicas}} {}

  /// The number of replicas requested from `now` on; `current` are serving or starting. Concurrency and utilization
  /// request as many as bring the load per replica down to the target. Queue requests `current` * queue / target, at
  /// most twice as many as now; one fewer when nothing waits.
  int wanted(SimTime now, const FleetLoad& load, int current);

 private:
  struct Wish {
    SimTime at;
    int replicas;
  };
  int wish(const FleetLoad& load, int current) const;

  AutoscalingSpec spec_;
  std::deque<Wish> past_;  ///< history over the longer of the two delays
};

}  // namespace roofcast
