#pragma once
// One replica of an engine as a sequence of events. An event is one step, or a run of decode steps between which
// nothing is decided: its length is known beforehand and only an arrival can shorten it.

#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "sim/serve/decode_growth.h"
#include "sim/serve/front_end.h"
#include "sim/serve/gap_recorder.h"
#include "sim/serve/kv_pool.h"
#include "sim/serve/replica_options.h"
#include "sim/serve/replica_run.h"
#include "sim/serve/scheduler.h"
#include "sim/serve/step_heap.h"

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
  bool pending() const { return busy_ || woken_ || !inbox_.empty() || !landings_.empty(); }
  SimTime due() const;
  /// Counts changes of due(), so that what was scheduled before can be told apart.
  std::uint32_t generation() const { return generation_; }

  struct Ended {
    Slot slot;
    SimTime delivered;
    bool handed_over = false;  ///< prefilled, and to be decoded elsewhere
  };
  /// Ends the run under way at due(); `ended` takes the requests whose last token is out.
  void end_run(std::vector<Ended>& ended);
  void start_run(SimTime now);
  /// The client of a request that is here has given up: it leaves at the end of the step under way, among what
  /// end_run() ends. True when no step is under way and it has left at once.
  bool cancel(Slot slot, SimTime now);
  bool busy() const { return busy_; }
  /// A GPU has failed: the run under way ends with its step. After that, or at once when idle, evacuate() is due.
  void fail(SimTime now);
  bool failed() const { return failed_; }
  /// All requests leave, with the tokens they have had, to be computed again elsewhere; caches are lost.
  void evacuate(SimTime now, std::vector<Slot>& out);
  void withdraw(int source, SimTime now, std::vector<Slot>& out);  ///< who waits for caches of a lost replica

  using Landing = CacheLanding;
  const std::deque<Landing>& landings() const { return landings_; }            ///< caches under way
  std::vector<Landing> take_fetches() { return std::exchange(fetches_, {}); }  ///< those that it began to fetch
  /// The cache that was held for a sequence handed over has been sent.
  void release_held(Slot slot, SimTime now);

  int running() const { return running_; }
  int gpus() const { return deployment_->sharding.gpus(); }
  int places() const { return max_seqs_; }
  std::size_t queued() const { return inbox_.size() + waiting_.size(); }
  int outstanding() const { return static_cast<int>(inbox_.size() + waiting_.size()) + running_; }
  std::int64_t outstanding_tokens() const { return prompt_tokens_; }  ///< of their prompts
  const KvPool& pool() const { return pool_; }
  int index() const { return options_.index; }

 private:
  using Arrival = ReplicaArrival;
  using Admission = PlannedAdmission;
  using Chunk = PlannedChunk;
  using Run = StepRun;

  // replica_plan.cpp: who runs in the next step
  void plan(SimTime now);
  void plan_prefills(SimTime now, std::int64_t budget);
  bool hold_prefill(std::int64_t budget);
  // replica_ranks.cpp: prompts of attention-DP ranks that wait for each other
  bool ranks_wait() const {
    return engine_.attention_dp_balance && engine_.prefill_wait_steps > 0 && !rules_.whole_batch &&
           deployment_->sharding.attention_dp > 1;
  }
  struct RankLoad;
  RankLoad rank_load() const;
  std::vector<std::int64_t> rank_room() const;
  void assign_rank(LiveRequest& request, std::vector<int>& requests) const;
  bool hold_for_ranks() const;
  void plan_prefills_by_rank(SimTime now, std::int64_t budget);
  void admit_by_rank(SimTime now, std::int64_t budget);
  double fullest_rank_prefill() const;
  void make_room_for_decodes();
  bool continue_prefills(std::int64_t& budget);
  void admit(SimTime now, std::int64_t& budget);
  Admission admission(Slot slot, std::int64_t budget) const;
  bool admission_reserves(const LiveRequest& request, Admission& how) const;
  void enter(Slot slot, const Admission& how, SimTime now);
  void fetch(Slot slot, std::int64_t bytes, SimTime now);
  void land(SimTime now);
  void preempt(Slot victim);
  void leave_blocks(Slot victim);
  std::int64_t suspend(Slot victim);
  std::int64_t room() const { return pool_.room() - step_growth_; }
  std::int64_t growth_of_step() const;

  // replica.cpp: events
  void arrive(Slot slot, SimTime ready);
  void cut_run(SimTime now);
  void take_arrivals(SimTime now);
  bool arrival_matters() const;
  SimTime planning_lag() const;
  std::int64_t steps_until_seen(SimTime ready, std::int64_t limit) const;
  std::int64_t run_length();
  void price_run(std::int64_t steps);
  StepCost price_step();

  // replica_end.cpp: what a step leaves behind
  std::int64_t tokens_out();
  void deliver(std::int64_t tokens);
  SimTime wait_of(std::int64_t tokens) const;
  void count_work();
  void advance_decodes();
  std::int64_t verify_decodes();
  bool first_step_matters() const;
  void record_gaps(const FrontEnd::Delivery& delivery, int sequences);
  void record_run_gaps(SimTime span, std::int64_t skip, int sequences);
  void finish_chunk(const Chunk& chunk, std::vector<Ended>& ended);
  void pop_finished(std::vector<Ended>& ended);
  void end(Slot slot, std::vector<Ended>& ended);
  void hand_over(Slot slot, std::vector<Ended>& ended);
  bool engaged() const { return decoding_ > 0 || !partial_.empty(); }
  int output_of(const LiveRequest& r) const { return options_.prefill_only ? 1 : r.output; }
  void drop_cancelled(std::vector<Ended>& ended);
  bool landing(const LiveRequest& r) const { return r.phase == Phase::kPrefill && r.base == r.target; }
  /// Waits for room for its whole cache, which is elsewhere: nothing of it is left to prefill.
  bool comes_back(const LiveRequest& r) const { return (r.swapped || r.remote) && r.base == r.target; }
  void drop(Slot slot);
  void release(LiveRequest& request, Slot slot, bool keep_room);
  void share(LiveRequest& request, std::int64_t bytes);
  void idle_row(const LiveRequest& request);
  void close_batch();
  void join_decodes(Slot slot);
  void leave_decodes(Slot slot);
  void raise_levels();
  void link(Slot slot);
  void unlink(Slot slot);
  std::int64_t tokens_of(const LiveRequest& r) const { return r.phase == Phase::kDecode ? r.base + counter_ : r.base; }
  int produced_of(const LiveRequest& r) const {
    return r.phase == Phase::kDecode ? r.output - static_cast<int>(r.finish - counter_) : r.produced;
  }

  std::shared_ptr<const Deployment> deployment_;
  const EngineSpec& engine_;
  ReplicaOptions options_;
  SchedulerRules rules_;
  StepPricer& pricer_;
  StepPricer* draft_pricer_;
  RequestTable& requests_;
  Collector& collector_;
  FrontEnd front_end_;
  GapRecorder gaps_;
  KvPool pool_;
  DecodeGrowth growth_;
  AcceptanceLaw law_;
  Random random_;
  int max_seqs_;
  std::int64_t budget_, rank_budget_;
  int query_len_;

  std::deque<Arrival> inbox_;  ///< sent here, by the time at which the engine sees them
  WaitingQueue waiting_;
  std::int64_t waiting_tokens_ = 0, prompt_tokens_ = 0;  ///< to prefill of those; of the prompts of all that is here
  std::vector<Slot> partial_;                            ///< prompts under way, by admission
  Slot oldest_ = kNoSlot, newest_ = kNoSlot;
  int running_ = 0;  ///< prefilling and decoding
  int decoding_ = 0;
  int idle_rows_ = 0;  ///< static: ended sequences that the batch still computes
  std::int64_t idle_context_ = 0, idle_bytes_ = 0;
  std::int64_t context_ = 0;  ///< tokens in the caches of the decoding ones
  std::int64_t reserved_ = 0, held_steps_ = 0;
  std::int64_t counter_ = 0;  ///< decode steps so far
  std::int64_t steps_ = 0;    ///< steps so far
  StepHeap finishes_, level_ends_;

  std::vector<Slot> cancelled_;   ///< to leave when the step under way ends
  std::deque<Landing> landings_;  ///< caches under way
  std::vector<Landing> fetches_;
  int held_ = 0;  ///< sequences handed over whose cache is still here
  SimTime link_free_, wake_, idle_since_;

  bool busy_ = false, failed_ = false, woken_ = false;
  Run run_;
  Seconds carry_{};  ///< what rounding to picoseconds left over, so that many short steps last as long as one run
  std::uint32_t generation_ = 0;
  std::vector<Chunk> chunks_;
  std::vector<PrefillChunk> priced_chunks_;
  std::int64_t step_growth_ = 0;   ///< set aside for the decodes of the step being planned
  Bytes swapped_{};                ///< moved over PCIe before the step
  bool preempted_ = false;         ///< by this plan, which then admits nothing
  bool waiting_for_more_ = false;  ///< prefill waits for more of it
  std::int64_t rank_clock_ = 0;    ///< steps since ranks last prefilled together, or gave up waiting for it
  std::int64_t held_bytes_ = 0;    ///< that the first of the held prompts needs
  SimTime delivered_;              ///< tokens of the step that ends now
  SimTime wait_;                   ///< of first and last tokens among them, behind a server that varies
};

}  // namespace roofcast
