#pragma once
// One replica of an engine as a sequence of events. An event is one step, or a run of decode steps between which
// nothing is decided: its length is known beforehand and only an arrival can shorten it. Attention-DP ranks plan for
// themselves and step together: a step ends when the slowest of them has.

#include "sim/serve/rank_balance.h"
#include "sim/serve/step_plan.h"

namespace roofcast {

class Replica {
 public:
  Replica(std::shared_ptr<const Deployment> deployment, const ReplicaOptions& options, StepPricer& pricer,
          StepPricer* draft_pricer, RequestTable& requests, Collector& collector);

  /// Whether the request can ever run here: its length against model and pool, an uncut prompt's against the budget.
  TooLong too_long(const LiveRequest& request) const;
  bool can_serve(const LiveRequest& request) const { return too_long(request) == TooLong::kNot; }
  void submit(Slot slot, SimTime sent);
  /// Another sequence of a prompt that was prefilled here.
  void submit_fork(Slot slot, SimTime now);
  /// A sequence whose prompt was prefilled elsewhere: its cache is fetched when there is room for it.
  void submit_prefilled(Slot slot, SimTime now);

  /// When something happens next here; nothing while idle with nothing under way.
  bool pending() const;
  SimTime due() const;
  /// Counts changes of due(), so that what was scheduled before can be told apart.
  std::uint32_t generation() const { return generation_; }

  using Ended = EndedRequest;
  /// Ends the run under way at due(); `ended` takes the requests whose last token is out.
  void end_run(std::vector<Ended>& ended);
  void start_run(SimTime now);
  /// The client of a request that is here has given up: it leaves at the end of the step under way, among what
  /// end_run() ends. True when no step is under way and it has left at once.
  bool cancel(Slot slot, SimTime now);
  bool busy() const { return busy_; }
  /// A GPU has failed: the run under way ends with its step. After that, or at once when idle, evacuate() is due.
  void fail(SimTime now);
  bool failed() const { return ranks_.front()->departures.failed(); }
  /// All requests leave, with the tokens they have had, to be computed again elsewhere; caches are lost.
  void evacuate(SimTime now, std::vector<Slot>& out);
  void withdraw(int source, SimTime now, std::vector<Slot>& out);  ///< who waits for caches of a lost replica

  using Landing = CacheLink::Landing;
  std::vector<Landing> landings() const;  ///< caches under way
  std::vector<Landing> take_fetches();    ///< those that it began to fetch
  /// The cache that was held for a sequence handed over has been sent.
  void release_held(Slot slot, SimTime now);

  int running() const;
  int gpus() const { return deployment().sharding.gpus(); }
  int places() const { return first().places * static_cast<int>(ranks_.size()); }
  std::size_t queued() const;
  int outstanding() const { return static_cast<int>(queued()) + running(); }
  std::int64_t outstanding_tokens() const;  ///< of their prompts
  /// Leading blocks of `hashes` that the cache of a rank has, at best.
  std::int64_t cached_blocks(std::span<const std::uint64_t> hashes) const;
  bool empty() const;  ///< no request is here, nor any cache of one
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
    std::int64_t growth = 0;         ///< bytes of cache that the run under way took for its decodes
    std::int64_t padding = 0;        ///< tokens of its chunks that fill prompts up
    std::int64_t recomputed = 0;     ///< tokens beside the new one of each row, where there is no cache
    std::int64_t repadded = 0;       ///< of them, those that fill rows up to the longest
    std::vector<EndedRequest> held;  ///< answers that leave together with the last of their batch
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
  void price_run(std::int64_t steps);
  void compute_again(Rank& rank, std::size_t index);
  StepBatch step_batch();
  StepCost price_step();

  // replica_end.cpp: what a step leaves behind
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
  std::vector<RankWork> work_;  ///< that balance_ looks at
  std::size_t next_rank_ = 0;   ///< that a request is offered to first
  StepPricer& pricer_;
  StepPricer* draft_pricer_;
  AcceptanceLaw law_;
  Random random_;

  StepRun run_;
  std::vector<PrefillChunk> priced_chunks_;
  std::vector<EncoderWork> encodes_;
  std::vector<RankLoad> then_;
  Seconds carry_{};  ///< what rounding to picoseconds left over, so that many short steps last as long as one run
  bool busy_ = false, woken_ = false;
  SimTime wake_, idle_since_;
  std::uint32_t generation_ = 0;
};

}  // namespace roofcast
