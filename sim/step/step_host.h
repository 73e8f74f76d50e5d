#pragma once
// The time that the host and CUDA graphs add to a step.

#include <algorithm>

#include "sim/step/deployment.h"
#include "sim/step/rank_batch.h"

namespace roofcast {

/// Whether SGLang's plain prefill graphs support this model: text only, multi-head or grouped attention in all layers,
/// one attention-DP rank.
bool has_plain_prefill(const Deployment& deployment);

/// The time that the host adds to one step, in seconds.
struct HostTime {
  bool eager = false;        ///< launched without CUDA graphs
  double kernel_launch = 0;  ///< 0 under CUDA graphs
  double gap = 0;            ///< between two kernels of a graph
  double before = 0;         ///< while the GPU waits
  double meanwhile = 0;      ///< while the GPU works; a lower bound on the step

  double launching(double launches) const { return kernel_launch * launches; }
  double least(double launches) const { return std::max(meanwhile, launching(launches)); }
  Seconds launched(double launches) const { return Seconds(eager ? before + launching(launches) : 0.0); }
};

/// `deployment` must outlive this object.
class StepHost {
 public:
  explicit StepHost(const Deployment& deployment);

  HostTime time(const StepBatch& batch, const RankBatch& rank) const;
  /// Decode graphs are captured per number of sequences (query_len tokens each if drafts are verified), prefill per
  /// token.
  double padded_tokens(const StepBatch& batch, const RankBatch& rank) const;
  /// The time to launch `launches` kernels outside of any graph, in seconds.
  double eager_seconds(double launches) const {
    return ideal_ ? 0.0 : launches * deployment_.engine.host.launch_time.base() / launching_pace();
  }
  /// Seconds between the arrivals of the ranks at a collective.
  double rank_skew() const { return ideal_ ? 0.0 : deployment_.engine.host.rank_skew.base(); }

 private:
  bool runs_eager(const StepBatch& batch, const RankBatch& rank) const;
  double padded(double tokens, int largest) const;
  double launch_speed() const { return deployment_.gpu.node.launch_speed * deployment_.engine.launch_speed; }
  double launching_pace() const { return deployment_.gpu.node.host_speed * launch_speed(); }
  double scheduler_seconds(double sequences) const;
  double host_seconds(double sequences, bool prefill, bool launching) const;

  const Deployment& deployment_;
  bool ideal_;
  int prefill_graph_tokens_;  ///< tokens of the largest step with prefill that is replayed
};

}  // namespace roofcast
