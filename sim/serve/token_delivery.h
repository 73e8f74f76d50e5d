#pragma once
// Delivers tokens from the steps of a replica to its clients.

#include <array>
#include <vector>

#include "sim/serve/front_end.h"
#include "sim/serve/gap_recorder.h"
#include "sim/serve/replica_run.h"
#include "sim/serve/step_pricer.h"

namespace roofcast {

/// The front end shared by all ranks, and the gaps between tokens after it.
class TokenDelivery {
 public:
  TokenDelivery(const EngineSpec& engine, int ranks, double prompt_text, StepPricer& pricer, Collector& collector)
      : front_end_(engine, ranks, prompt_text),
        gaps_(static_cast<std::size_t>(ranks), GapRecorder(collector, engine.stream_interval)),
        pricer_(pricer) {}

  /// When the engine sees a request.
  SimTime receive(SimTime sent, int prompt_tokens, double longer) {
    return front_end_.receive(sent, prompt_tokens, longer);
  }
  /// How long this many tokens keep the front end busy.
  Seconds front_end_busy(std::int64_t tokens) const { return front_end_.busy(tokens).seconds(); }

  /// Delivers the tokens of a run to their clients.
  void deliver(const StepRun& run, std::int64_t tokens);
  SimTime delivered() const { return delivered_; }  ///< when the last tokens of the last run are delivered
  /// The same for first and last tokens of requests, which also wait in the queue of the front end.
  SimTime answered() const { return delivered_ + wait_; }

  /// A sequence starts to decode on a rank; its client received its latest token at `last_token`.
  void join(int rank, SimTime last_token) { gaps(rank).join(last_token); }
  /// A sequence leaves before its end. `fresh`: no token since it joined. Returns the time of its latest token.
  SimTime leave(int rank, bool fresh) { return gaps(rank).leave(fresh); }
  /// A preempted sequence continues: records the gap since its last token.
  void resume(int rank, SimTime last_token) { gaps(rank).single(delivered_ - last_token); }

 private:
  GapRecorder& gaps(int rank) { return gaps_[static_cast<std::size_t>(rank)]; }
  SimTime wait_of(const StepRun& run, std::int64_t tokens);
  bool first_step_matters(const StepRun& run, std::size_t rank) const;
  void record_gaps(const StepRun& run, const FrontEnd::Delivery& delivery, std::size_t rank);
  void record_run_gaps(const StepRun& run, SimTime span, std::int64_t skip, std::size_t rank);

  FrontEnd front_end_;
  std::vector<GapRecorder> gaps_;  ///< of each rank
  StepPricer& pricer_;
  struct Piece {
    SimTime gap;
    std::int64_t steps;
  };
  const std::vector<Piece>& pieces_of(const StepRun& run, SimTime span, std::int64_t skip);

  std::vector<RankLoad> then_;
  std::array<std::vector<Piece>, 2> pieces_;  ///< pieces of the run being delivered, with and without its first step
  SimTime delivered_, wait_;
};

}  // namespace roofcast
