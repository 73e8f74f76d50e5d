#pragma once
// Gaps between tokens as clients see them, computed from the steps of one replica.

#include <vector>

#include "sim/serve/collector.h"

namespace roofcast {

/// Every decode step gives each decoding sequence one token, so all sequences have the same gap, except those that
/// joined since the last decode step: their first gap counts from their own last token.
///
/// With a stream interval of s tokens a client receives its first token, then chunks of s tokens. The gap of a chunk is
/// the sum of the last s step gaps, and each step ends a chunk for one sequence in s (phases are spread evenly).
class GapRecorder {
 public:
  GapRecorder(Collector& collector, int stream_interval) : collector_(&collector), interval_(stream_interval) {}

  /// A sequence starts to decode; its client received its latest token at `last_token`.
  void join(SimTime last_token);
  /// A sequence leaves before its end. `fresh`: no token since it joined. Returns the time of its latest token.
  SimTime leave(bool fresh);

  /// Whether the first gap of a run that starts now differs from the later gaps of the run.
  bool uneven(SimTime run_start, int sequences) const;
  /// Starts a run: records the gaps up to its first delivery (unless they are even), then those of the following steps.
  void begin(int sequences);
  void first(SimTime delivered, int sequences);
  void rest(SimTime gap, std::int64_t steps, int sequences) { add(gap, steps, sequences); }
  void end(SimTime delivered);

  /// Records the gap caused by a preemption.
  void single(SimTime gap, double sequences = 1) {
    if (interval_ <= 1) collector_->gap(gap, sequences);
  }

 private:
  struct Fresh {
    SimTime last_token;
    double sequences;
  };
  struct Past {
    SimTime gap;
    std::int64_t steps;
  };
  double fresh_sequences() const;
  void add(SimTime gap, std::int64_t steps, double sequences);
  SimTime last(std::int64_t steps) const;  ///< sum of the last `steps` gaps

  Collector* collector_;
  std::int64_t interval_;
  SimTime delivered_;         ///< when the tokens of the last decode step were delivered
  std::vector<Fresh> fresh_;  ///< joined after that
  std::vector<Past> past_;    ///< newest last; enough to cover one stream interval
  std::int64_t known_ = 0;    ///< steps in past_
};

}  // namespace roofcast
