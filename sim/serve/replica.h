#pragma once
// One replica of an engine as a sequence of events. An event is one step, or a run of decode steps between which
// nothing is decided: its length is known beforehand and only an arrival can shorten it.

#include "sim/serve/step_plan.h"

namespace roofcast {

class Replica {
 public:
  Replica(std::shared_ptr<const Deployment> deployment, const ReplicaOptions& options, StepPricer& pricer,
          StepPricer* draft_pricer, RequestTable& requests, Collector& collector);

  /// Whether the request can ever run here: its length against model and pool, an uncut prompt's against the budget.
  bool can_serve(const LiveRequest& request) const;
  void submit(Slot slot, SimTime sent);
  /// A sequence whose prompt was prefilled elsewhere: its cache is fetched when there is room for it.
  void submit_prefilled(Slot slot, SimTime now);

  /// When something happens next here; nothing while idle with nothing under way.
  bool pending() const { return busy_ || woken_ || parts_.queue.on_their_way() > 0 || !parts_.link.landings().empty(); }
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
  bool failed() const { return departures_.failed(); }
  /// All requests leave, with the tokens they have had, to be computed again elsewhere; caches are lost.
  void evacuate(SimTime now, std::vector<Slot>& out);
  void withdraw(int source, SimTime now, std::vector<Slot>& out);  ///< who waits for caches of a lost replica

  using Landing = CacheLink::Landing;
  const std::deque<Landing>& landings() const { return parts_.link.landings(); }  ///< caches under way
  std::vector<Landing> take_fetches() { return parts_.link.take_fetches(); }      ///< those that it began to fetch
  /// The cache that was held for a sequence handed over has been sent.
  void release_held(Slot slot, SimTime now);

  int running() const { return parts_.batch.running(); }
  int gpus() const { return parts_.deployment->sharding.gpus(); }
  int places() const { return parts_.places; }
  std::size_t queued() const { return parts_.queue.size(); }
  int outstanding() const { return static_cast<int>(queued()) + running(); }
  std::int64_t outstanding_tokens() const { return parts_.queue.prompt_tokens(); }  ///< of their prompts
  const KvPool& pool() const { return parts_.kv.pool(); }
  int index() const { return parts_.options.index; }

 private:
  // replica.cpp: events
  void arrive(Slot slot, SimTime ready);
  void wake(SimTime now);
  void cut_run(SimTime now);
  void take_arrivals(SimTime now);
  bool arrival_matters() const;
  SimTime planning_lag() const;
  std::int64_t steps_until_seen(SimTime ready, std::int64_t limit) const;
  std::int64_t run_length();
  void price_run(std::int64_t steps);
  StepBatch step_batch();
  StepCost price_step();

  // replica_end.cpp: what a step leaves behind
  std::int64_t tokens_out();
  std::int64_t verify_decodes();
  void count_work();
  void finish_chunk(const PlannedChunk& chunk, std::vector<Ended>& ended);
  void end(Slot slot, std::vector<Ended>& ended);
  void hand_over(Slot slot, std::vector<Ended>& ended);

  ReplicaParts parts_;
  Departures departures_;
  StepPlan plan_;
  StepPricer& pricer_;
  StepPricer* draft_pricer_;
  AcceptanceLaw law_;
  Random random_;

  StepRun run_;
  std::vector<PrefillChunk> priced_chunks_;
  Seconds carry_{};  ///< what rounding to picoseconds left over, so that many short steps last as long as one run
  bool busy_ = false, woken_ = false;
  SimTime wake_, idle_since_;
  std::uint32_t generation_ = 0;
};

}  // namespace roofcast
