#pragma once
// The next step of a rank while it is being planned.

#include <optional>
#include <vector>

#include "sim/serve/departures.h"
#include "sim/serve/rank_parts.h"

namespace roofcast {

/// Schedulers ask it what there is and tell it who runs; it keeps what every scheduler has to: places, room for caches,
/// order, and the settings of the engine.
class StepPlan {
 public:
  StepPlan(RankParts& parts, Departures& departures);

  std::int64_t budget() const { return budget_; }  ///< tokens of a step
  std::int64_t decode_tokens() const { return std::int64_t{parts_.batch.decoding()} * parts_.query_len; }
  int running() const { return parts_.batch.running(); }    ///< sequences, prefilling or decoding
  int decoding() const { return parts_.batch.decoding(); }  ///< of them
  std::size_t waiting() const { return parts_.queue.waiting().size(); }
  std::int64_t steps() const { return steps_; }          ///< before this one
  bool has_prefill() const { return !chunks_.empty(); }  ///< in this step

  /// All decoding sequences take part in the step. Others are preempted (EngineSpec::victim) until they have room for
  /// it.
  void decode();

  /// What a prompt under way does when its next chunk finds no room.
  enum class WhenFull {
    kPreempt,  ///< running sequences are preempted
    kWait,     ///< it waits while sequences decode, for they end
  };
  /// Prompts take part, with `budget` tokens in all: those under way, then waiting ones. Settings of the engine may
  /// hold them (EngineSpec::prefill_wait_steps, attention_dp_balance).
  void prefill(std::int64_t budget, WhenFull when_full);
  /// Those under way alone. False when one could not go on: then nothing younger may start either.
  bool continue_prefills(std::int64_t budget, WhenFull when_full) { return continue_within(budget, when_full); }
  /// All waiting prompts start that find places and room, even where no tokens of the budget are left for them.
  void admit_all(std::int64_t budget) { admit(budget, true); }

  /// Whether a batch is still to grow before it starts: it is not full, its first request has not waited as long as
  /// EngineSpec::batch_wait, or one that was sent by then is still on its way.
  bool waits_for_batch();

  /// Whether a request that arrives between decode steps could start. Room and places only get fewer until a sequence
  /// ends, so a first-come queue whose head was refused stays as it is.
  bool arrival_could_start() const;

  // What the replica asks of the plan
  void begin(SimTime now);
  /// Whether a prompt could take part in the step that has begun: one under way, or the first that waits, if there are
  /// a place and room for it.
  bool prompt_could_run() const;
  /// `balance`: prompts are held for those of other ranks, or not; nothing: ranks do not wait for each other.
  void plan(std::optional<bool> balance);
  const std::vector<PlannedChunk>& chunks() const { return chunks_; }
  bool decodes() const { return decodes_; }
  bool preempted() const { return preempted_; }
  bool held() const { return held_; }  ///< prompts wait for more of them
  /// When a batch starts that is not full until then; nothing: it waits for nothing else.
  std::optional<SimTime> batch_due() const { return batch_due_; }
  /// Decode steps for which the plan certainly stays the same, at most `limit`, as far as held prompts are concerned.
  std::int64_t steps_held(std::int64_t limit) const;
  void advance(std::int64_t steps);  ///< the planned step was run so many times
  bool fits_whole(const LiveRequest& request) const;

 private:
  struct Admission {
    KvPool::Hit hit;
    int tokens = 0;          ///< of the first chunk
    std::int64_t bytes = 0;  ///< to take now
    std::int64_t room = 0;   ///< that there has to be
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
  bool preempted_ = false;  ///< by this plan, which then admits nothing
  bool held_ = false;
  std::optional<bool> balance_;
  std::int64_t held_bytes_ = 0;  ///< that the first of them needs
  std::int64_t steps_ = 0;
  std::int64_t steps_waited_ = 0;  ///< of held prompts
};

}  // namespace roofcast
