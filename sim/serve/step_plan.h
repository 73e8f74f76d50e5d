#pragma once
// The next step of a rank while it is being planned.

#include <optional>
#include <vector>

#include "sim/serve/departures.h"
#include "sim/serve/rank_parts.h"

namespace roofcast {

/// Schedulers query what is waiting and running and choose what runs. StepPlan holds what all schedulers share: slots,
/// KV memory, order, and the settings of the engine.
class StepPlan {
 public:
  StepPlan(RankParts& parts, Departures& departures);

  std::int64_t budget() const { return budget_; }  ///< token budget of the step
  std::int64_t decode_tokens() const { return std::int64_t{parts_.batch.decoding()} * parts_.query_len; }
  int running() const { return parts_.batch.running(); }    ///< prefilling and decoding sequences
  int decoding() const { return parts_.batch.decoding(); }  ///< decoding sequences
  std::size_t waiting() const { return parts_.queue.waiting().size(); }
  std::int64_t steps() const { return steps_; }          ///< steps before this one
  bool has_prefill() const { return !chunks_.empty(); }  ///< whether this step holds prompt chunks

  /// Adds all decoding sequences to the step. If memory is short, running sequences are preempted (EngineSpec::victim).
  void decode();

  /// What happens when the next chunk of a running prompt finds no memory.
  enum class WhenFull {
    kPreempt,  ///< running sequences are preempted
    kWait,     ///< it waits as long as sequences decode, because they will end
  };
  /// Adds prompts with `budget` tokens in total: running ones first, then waiting ones. Engine settings may hold
  /// prompts (EngineSpec::prefill_wait_steps, attention_dp_balance).
  void prefill(std::int64_t budget, WhenFull when_full);
  /// Adds only prompts that are already running. False if one could not continue; then nothing younger may start
  /// either.
  bool continue_prefills(std::int64_t budget, WhenFull when_full) { return continue_within(budget, when_full); }
  /// Starts all waiting prompts that find slots and memory, even if no token of the budget is left for them.
  void admit_all(std::int64_t budget) { admit(budget, true); }

  /// Whether a batch should wait for more requests: it is not full, and its first request has waited less than
  /// EngineSpec::batch_wait, or a request sent by then is still in the front end.
  bool waits_for_batch();

  /// Whether a request that arrives between decode steps could start. Memory and slots only shrink until a sequence
  /// ends, so a first-come-first-served queue whose head was refused stays blocked.
  bool arrival_could_start() const;

  // For the replica
  void begin(SimTime now);
  /// Whether a prompt could take part in the current step: a running one, or the first waiting one if a slot and memory
  /// are free.
  bool prompt_could_run() const;
  bool waiting_could_run() const;  ///< the first waiting one alone
  /// `balance`: whether prompts are held for those of other ranks. Empty: ranks are not balanced.
  void plan(std::optional<bool> balance);
  const std::vector<PlannedChunk>& chunks() const { return chunks_; }
  bool decodes() const { return decodes_; }
  bool preempted() const { return preempted_; }
  bool held() const { return held_; }  ///< prompts wait until more of them have arrived
  /// When a partly filled batch starts. Empty: nothing to wait for.
  std::optional<SimTime> batch_due() const { return batch_due_; }
  /// The number of decode steps, at most `limit`, for which held prompts certainly leave the plan unchanged.
  std::int64_t steps_held(std::int64_t limit) const;
  void advance(std::int64_t steps);  ///< the planned step has run `steps` times
  bool fits_whole(const LiveRequest& request) const;

 private:
  struct Admission {
    KvPool::Hit hit;
    int tokens = 0;          ///< tokens of the first chunk
    std::int64_t bytes = 0;  ///< bytes to allocate now
    std::int64_t room = 0;   ///< bytes that must be free
    std::int64_t reserve = 0;
    bool possible = false;
  };
  bool continue_within(std::int64_t& budget, WhenFull when_full);
  void admit(std::int64_t budget, bool all);
  void admit_around(std::int64_t budget, bool all);
  void hold_adapter(const LiveRequest& request);
  Admission admission(Slot slot, std::int64_t budget) const;
  bool reserves(const LiveRequest& request, Admission& how) const;
  void enter(Slot slot, const Admission& how);
  void restore(LiveRequest& request, const KvPool::Hit& hit);
  void fetch(Slot slot, std::int64_t bytes);
  CacheLink::Transfer send(const LiveRequest& request, Slot slot, Bytes cache);
  void land();
  bool holds(std::int64_t budget, WhenFull when_full);
  void admit_those_back(std::int64_t budget);
  void make_room_for_decodes();
  Slot victim() const;
  Slot newest() const;
  void preempt(Slot victim);

  RankParts& parts_;
  Departures& departures_;
  std::int64_t budget_;

  SimTime now_, previous_;  ///< when this step was planned, and the one before it
  std::optional<SimTime> batch_due_;
  std::vector<PlannedChunk> chunks_;
  bool decodes_ = false;
  bool preempted_ = false;  ///< this plan preempted a sequence, so it admits nothing
  bool held_ = false;
  std::optional<bool> balance_;
  std::int64_t held_bytes_ = 0;  ///< bytes that the first held prompt needs
  std::int64_t steps_ = 0;
  std::int64_t steps_waited_ = 0;  ///< steps that held prompts have waited
};

}  // namespace roofcast
