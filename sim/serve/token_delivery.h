#pragma once
// Tokens on their way from the steps of a replica to its clients.

#include "sim/serve/front_end.h"
#include "sim/serve/gap_recorder.h"
#include "sim/serve/replica_run.h"
#include "sim/serve/step_pricer.h"

namespace roofcast {

/// The front end that requests and tokens pass, and the gaps between tokens behind it.
class TokenDelivery {
 public:
  TokenDelivery(const EngineSpec& engine, double prompt_text, int query_len, StepPricer& pricer, Collector& collector)
      : front_end_(engine, prompt_text),
        gaps_(collector, engine.stream_interval),
        pricer_(pricer),
        query_len_(query_len) {}

  /// When the engine sees a request.
  SimTime receive(SimTime sent, int prompt_tokens) { return front_end_.receive(sent, prompt_tokens); }

  /// The tokens of a run reach their clients; so many sequences decode in it.
  void deliver(const StepRun& run, std::int64_t tokens, int decoding);
  SimTime delivered() const { return delivered_; }  ///< tokens of the last run
  /// ... and first and last tokens among them, which wait longer behind a server that varies.
  SimTime answered() const { return delivered_ + wait_; }

  /// A sequence decodes from here on; its client had its latest token then.
  void join(SimTime last_token) { gaps_.join(last_token); }
  /// A sequence leaves before its end; `fresh`: it has had no token since it joined. Returns when it had its latest.
  SimTime leave(bool fresh) { return gaps_.leave(fresh); }
  /// A preempted sequence goes on: the gap since its last token before that.
  void resume(SimTime last_token) { gaps_.single(delivered_ - last_token); }

 private:
  SimTime wait_of(const StepRun& run, std::int64_t tokens) const;
  bool first_step_matters(const StepRun& run, int sequences) const;
  void record_gaps(const StepRun& run, const FrontEnd::Delivery& delivery, int sequences);
  void record_run_gaps(const StepRun& run, SimTime span, std::int64_t skip, int sequences);

  FrontEnd front_end_;
  GapRecorder gaps_;
  StepPricer& pricer_;
  int query_len_;
  SimTime delivered_, wait_;
};

}  // namespace roofcast
