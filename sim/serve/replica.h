#pragma once
// Simulates one replica of an engine as a sequence of events. An event is one step, or a run of decode steps during
// which no decision is made; its length is known in advance, and only an arrival can shorten it. Attention-DP ranks
// plan separately and step together: a step ends when the slowest rank has finished.

#include "sim/serve/host_scatter.h"
#include "sim/serve/rank_balance.h"
#include "sim/serve/step_plan.h"

namespace roofcast {

class Replica {
 public:
  Replica(std::shared_ptr<const Deployment> deployment, const ReplicaOptions& options, StepPricer& pricer,
          StepPricer* draft_pricer, RequestTable& requests, Collector& collector);

  /// The limit that keeps the request from ever running here: the model's context length, the KV pool, or the token
  /// budget if prompts are not chunked.
  TooLong too_long(const LiveRequest& request) const;
  bool can_serve(const LiveRequest& request) const { return too_long(request) == TooLong::kNot; }
  void submit(Slot slot, SimTime sent);
  /// Adds another sequence for a prompt that was prefilled here.
  void submit_fork(Slot slot, SimTime now);
  /// Adds a sequence whose prompt was prefilled elsewhere. Its cache is fetched when there is memory for it.
  void submit_prefilled(Slot slot, SimTime now);

  /// Whether an event is due; see due().
  bool pending() const;
  SimTime due() const;
  /// Raised whenever due() changes, to recognise outdated events.
  std::uint32_t generation() const { return generation_; }

  using Ended = EndedRequest;
  /// Ends the current run at due(). Appends the requests whose last token has been computed to `ended`.
  void end_run(std::vector<Ended>& ended);
  void start_run(SimTime now);
  /// The client of a request gives up. The request leaves when the current step ends, through end_run(). Returns true
  /// if no step is running and it has left at once.
  bool cancel(Slot slot, SimTime now);
  bool busy() const { return busy_; }
  /// A GPU has failed: the current run ends with its current step. After that (or now, if idle) evacuate() must be
  /// called.
  void fail(SimTime now);
  bool failed() const { return ranks_.front()->departures.failed(); }
  /// All requests leave with the tokens generated so far, to be recomputed elsewhere. Their caches are lost.
  void evacuate(SimTime now, std::vector<Slot>& out);
  void withdraw(int source, SimTime now, std::vector<Slot>& out);  ///< requests that wait for caches of a lost replica

  using Landing = CacheLink::Landing;
  std::vector<Landing> landings() const;  ///< caches in transfer to this replica
  std::vector<Landing> take_fetches();    ///< transfers started since the last call
  /// The cache held for a handed-over sequence has been sent; frees it.
  void release_held(Slot slot, SimTime now);
  bool holds_caches() const;  ///< of sequences that were handed over

  int running() const;
  int gpus() const { return deployment().sharding.gpus(); }
  int max_sequences() const { return first().max_sequences * static_cast<int>(ranks_.size()); }
  std::size_t queued() const;
  int outstanding() const { return static_cast<int>(queued()) + running(); }
  std::int64_t outstanding_tokens() const;  ///< prompt tokens of its requests
  /// Cached leading blocks of `hashes`, on the rank that has the most of them.
  std::int64_t cached_blocks(std::span<const std::uint64_t> hashes) const;
  bool empty() const;  ///< holds neither requests nor caches
  int index() const { return first().options.index; }

 private:
  struct Rank {
    Rank(const std::shared_ptr<const Deployment>& deployment, int index, const ReplicaOptions& options,
         RequestTable& requests, Collector& collector, TokenDelivery& delivery)
        : parts(deployment, index, options, requests, collector, delivery),
          departures(parts),
          plan(parts, departures) {}
    RankParts parts;
    Departures departures;
    StepPlan plan;
    std::int64_t growth = 0;         ///< bytes of cache that the current run allocated for decodes
    int prompt_tokens = 0;           ///< of this step, where prompts follow them through a pipeline
    std::int64_t padding = 0;        ///< padding tokens in its chunks
    std::int64_t recomputed = 0;     ///< tokens recomputed per step because there is no KV cache
    std::int64_t repadded = 0;       ///< part of `recomputed` that pads rows to the longest
    std::vector<EndedRequest> held;  ///< finished requests that a static batch answers at its end
  };
  const RankParts& first() const { return ranks_.front()->parts; }
  const Deployment& deployment() const { return *first().deployment; }
  const EngineSpec& engine() const { return first().engine; }
  LiveRequest& request(Slot slot) { return first().requests[slot]; }
  Rank& rank_of(Slot slot) { return *ranks_[request(slot).rank]; }

  // replica.cpp: events
  void choose_rank(LiveRequest& request);
  void arrive(Slot slot, SimTime ready);
  void wake(SimTime now);
  void cut_run(SimTime now);
  void take_arrivals(SimTime now);
  bool arrival_matters(const Rank& rank) const;
  bool someone_waits() const;
  std::size_t on_their_way() const;
  void plan_ranks(SimTime now);
  void describe_run();
  StepBatch decodes() { return run_.decodes_after(0, then_); }
  double adapters_held() const;
  void add_media(LiveRequest& request, std::vector<EncoderWork>& out) const;
  Seconds reads() const;
  SimTime planning_lag() const;
  SimTime last_start();
  std::int64_t steps_until_seen(SimTime ready, std::int64_t limit);
  std::int64_t run_length();
  void price_run(std::int64_t steps, SimTime not_before = SimTime());
  void end_run_at(SimTime not_before);
  void compute_again(Rank& rank, std::size_t index);
  StepBatch step_batch();
  StepCost price_step();

  // replica_end.cpp: the end of a step
  std::int64_t tokens_out(Rank& rank);
  std::int64_t verify_decodes(RankParts& rank);
  void count_work(std::int64_t tokens);
  void count_waste(const Rank& rank, std::int64_t prompt_tokens, Collector::Work& work) const;
  double filled_with_windows(const Rank& rank) const;
  void finish_chunk(Rank& rank, const PlannedChunk& chunk, std::vector<Ended>& ended);
  void end(Rank& rank, Slot slot, std::vector<Ended>& ended);
  void join_passes(Rank& rank, Slot slot);
  void answer_blocks(RankParts& rank);
  void hand_over(RankParts& rank, Slot slot, std::vector<Ended>& ended);
  void release_answers(Rank& rank, std::vector<Ended>& ended);

  TokenDelivery delivery_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<const RankParts*> rank_parts_;
  RankBalance balance_;
  std::vector<RankWork> work_;  ///< input of balance_
  std::size_t next_rank_ = 0;   ///< the next request is offered to this rank first
  StepPricer& pricer_;
  StepPricer* draft_pricer_;
  AcceptanceLaw law_;
  Random random_;
  HostScatter intake_, steps_;
  StepRun run_;
  std::vector<PrefillChunk> priced_chunks_;
  std::vector<EncoderWork> encodes_;
  std::vector<RankLoad> then_;
  double drawn_ = 0;  ///< of steps_, for the current run
  Seconds carry_{};   ///< rounding remainder, so that single steps add up to the same time as one run
  bool busy_ = false, woken_ = false;
  SimTime wake_, idle_since_;
  std::uint32_t generation_ = 0;
};

}  // namespace roofcast
