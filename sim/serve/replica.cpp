// The events of a replica: arrivals, the start of a run and its length.
#include "sim/serve/replica.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "hw/kernels/elementwise.h"
#include "sim/serve/media.h"
#include "sim/step/rank_batch.h"

namespace roofcast {

Replica::Replica(std::shared_ptr<const Deployment> deployment, const ReplicaOptions& options, StepPricer& pricer,
                 StepPricer* draft_pricer, RequestTable& requests, Collector& collector)
    : delivery_(deployment->engine, deployment->sharding.attention_dp, options.prompt_text, pricer, collector),
      balance_(*deployment,
               (options.scheduler != nullptr ? options.scheduler() : make_scheduler(deployment->engine.scheduler))
                   ->continuous()),
      pricer_(pricer),
      draft_pricer_(draft_pricer),
      law_(options.speculation),
      random_(options.seed),
      intake_(*deployment, options.seed, 1),
      steps_(*deployment, options.seed, 2) {
  for (int i = 0; i < deployment->sharding.attention_dp; ++i) {
    ranks_.push_back(std::make_unique<Rank>(deployment, i, options, requests, collector, delivery_));
    rank_parts_.push_back(&ranks_.back()->parts);
  }
  run_.query_len = first().query_len;
  run_.decoding.resize(ranks_.size());
  if (ranks_.size() > 1) run_.ranks.resize(ranks_.size());
}

TooLong Replica::too_long(const LiveRequest& r) const {
  const Deployment& d = deployment();
  const std::int64_t total =
      first().options.prefill_only ? std::int64_t{r.target} + 1 : std::int64_t{r.prompt} + r.output;
  const double longest = d.engine.max_model_len > 0 ? d.engine.max_model_len : d.model.max_context;
  const double beside = d.model.encoder_only ? 1 : 0;  // the one output token that stands for an encoder's vector
  if (longest > 0 && static_cast<double>(total) - beside > longest) return TooLong::kContext;
  if (d.model.attends_to_encoder() && !beyond_positions(d.model, r.prompt, r.output).empty()) return TooLong::kContext;
  if (first().kv.bytes(total) > first().kv.pool().capacity()) return TooLong::kCache;
  return ranks_.front()->plan.fits_whole(r) ? TooLong::kNot : TooLong::kStep;
}

/// Engines send a request to the rank with the fewest requests (vLLM, v1/engine/core_client.py,
/// get_core_engine_for_request; TensorRT-LLM, _torch/pyexecutor/py_executor.py), or to the ranks in turn (SGLang,
/// managers/data_parallel_controller.py, round_robin).
void Replica::choose_rank(LiveRequest& r) {
  std::size_t chosen = next_rank_;
  if (engine().rank_choice == RankChoice::kFewest) {
    for (std::size_t i = 1; i < ranks_.size(); ++i) {
      const std::size_t other = (next_rank_ + i) % ranks_.size();
      if (rank_parts_[other]->outstanding() < rank_parts_[chosen]->outstanding()) chosen = other;
    }
  }
  r.rank = static_cast<std::uint16_t>(chosen);
  next_rank_ = (chosen + 1) % ranks_.size();
}

void Replica::submit(Slot slot, SimTime sent) {
  LiveRequest& r = request(slot);
  r.replica = static_cast<std::uint16_t>(index());
  arrive(slot, delivery_.receive(sent, r.prompt, intake_.factor(intake_.draw())));
}

void Replica::submit_fork(Slot slot, SimTime now) {
  request(slot).replica = static_cast<std::uint16_t>(index());
  arrive(slot, now);
}

void Replica::submit_prefilled(Slot slot, SimTime now) {
  LiveRequest& r = request(slot);
  r.replica = static_cast<std::uint16_t>(index());
  r.remote = true;
  arrive(slot, now);
}

void Replica::arrive(Slot slot, SimTime ready) {
  choose_rank(request(slot));
  Rank& rank = rank_of(slot);
  rank.parts.queue.send(ready, slot);
  if (!busy_) {
    if (rank.parts.queue.on_their_way() == 1) ++generation_;
  } else if (run_.whole && run_.steps > 1 && arrival_matters(rank)) {
    const std::int64_t steps = steps_until_seen(ready, run_.steps);
    if (steps < run_.steps) price_run(steps, ready);
  }
}

/// Wakes an idle replica after a change: a waiting request may now find memory.
void Replica::wake(SimTime now) {
  woken_ = true;
  wake_ = now;
}

/// Shortens the run to the current step.
void Replica::cut_run(SimTime now) {
  if (!busy_ || !run_.whole || run_.steps == 1) return;
  const std::int64_t steps = pricer_.steps_within(decodes(), (now - run_.start).seconds(), run_.steps);
  if (steps < run_.steps) price_run(steps, now);
}

/// Engines abort requests between steps.
bool Replica::cancel(Slot slot, SimTime now) {
  LiveRequest& r = request(slot);
  Rank& rank = rank_of(slot);
  r.cancelled = true;
  if (busy_ || landing(r)) {
    rank.departures.cancel(slot);
    cut_run(now);
    return false;
  }
  rank.departures.drop(slot);
  ++generation_;
  if (someone_waits()) wake(now);
  return true;
}

void Replica::fail(SimTime now) {
  for (const auto& rank : ranks_) rank->departures.fail();
  cut_run(now);
}

void Replica::evacuate(SimTime now, std::vector<Slot>& out) {
  for (const auto& rank : ranks_) rank->departures.evacuate(now, out);
  woken_ = false;
  carry_ = Seconds(0);
  idle_since_ = now;
  ++generation_;
}

void Replica::withdraw(int source, SimTime now, std::vector<Slot>& out) {
  const std::size_t before = out.size();
  for (const auto& rank : ranks_) rank->departures.withdraw(source, out);
  if (out.size() == before) return;
  ++generation_;
  if (busy_) return cut_run(now);
  woken_ = someone_waits();
  wake_ = now;
}

bool Replica::pending() const {
  return busy_ || woken_ || std::any_of(rank_parts_.begin(), rank_parts_.end(), [](const RankParts* rank) {
           return rank->queue.on_their_way() > 0 || !rank->link.landings().empty();
         });
}

SimTime Replica::due() const {
  if (busy_) return run_.end;
  SimTime first(std::numeric_limits<std::int64_t>::max());
  for (const RankParts* rank : rank_parts_) {
    if (rank->queue.on_their_way() > 0) first = std::min(first, rank->queue.first_ready());
    if (!rank->link.landings().empty()) first = std::min(first, rank->link.landings().front().at);
  }
  return std::max(idle_since_, woken_ ? std::min(first, wake_) : first);
}

void Replica::release_held(Slot slot, SimTime now) {
  RankParts& rank = ranks_[request(slot).source_rank]->parts;
  rank.kv.give(rank.link.release(request(slot)));
  if (busy_ || woken_ || !someone_waits()) return;
  wake(now);
  ++generation_;
}

/// How long before its start a step is planned: a step that is planned during the previous one sees no later arrivals.
/// If one thread plans and launches, it sees arrivals until it has launched the last kernel of the previous step.
SimTime Replica::planning_lag() const {
  return engine().scheduler_launches ? SimTime::of(run_.cost.launched) : SimTime(0);
}

/// Start of the last step of the run.
SimTime Replica::last_start() {
  if (run_.steps <= 1) return run_.start;
  return run_.start + SimTime::of(pricer_.run_time(decodes(), run_.steps - 1));
}

/// Accepts new requests before a step. With asynchronous scheduling the step was planned during the previous one, and
/// an engine may receive requests only every few steps.
void Replica::take_arrivals(SimTime now) {
  const bool engaged =
      std::any_of(rank_parts_.begin(), rank_parts_.end(), [](const RankParts* r) { return r->batch.engaged(); });
  const int every = engine().receive_interval;
  if (engaged && every > 1 && ranks_.front()->plan.steps() % every != 0) return;
  if (on_their_way() == 0) return;
  const bool ahead = engine().plans_ahead() && engaged;
  const SimTime seen = ahead ? std::min(now, last_start() + planning_lag()) : now;
  for (const auto& rank : ranks_) {
    RequestQueue& queue = rank->parts.queue;
    while (queue.on_their_way() > 0 && queue.first_ready() <= seen) queue.push(queue.take_arrival());
  }
}

/// Whether an arrival during a run of decode steps could change the plan of a rank. If requests are received only every
/// few steps, or wait for those of other ranks, the step that finds one must not be skipped.
bool Replica::arrival_matters(const Rank& rank) const {
  if (engine().receive_interval > 1 || balance_.active() || !rank.parts.batch.engaged()) return true;
  return rank.parts.scheduler->arrival_matters(rank.plan);
}

/// Number of steps of the run until the plan sees a request that is ready at `ready`.
std::int64_t Replica::steps_until_seen(SimTime ready, std::int64_t limit) {
  std::int64_t steps = 1;
  const SimTime latest = engine().plans_ahead() ? ready - planning_lag() : ready;
  if (latest > run_.start) {
    steps = pricer_.steps_within(decodes(), (latest - run_.start).seconds(), limit);
    if (engine().plans_ahead()) ++steps;
  }
  if (const std::int64_t every = engine().receive_interval; every > 1)
    steps += (every - (ranks_.front()->plan.steps() + steps) % every) % every;
  return std::min(steps, limit);
}

/// Number of steps for which the plan and the slowest rank stay the same.
std::int64_t Replica::run_length() {
  std::int64_t limit = first().options.max_steps_per_event;
  bool held = false;
  for (const auto& rank : ranks_) {
    if (rank->plan.preempted() || rank->departures.due()) limit = std::min<std::int64_t>(limit, 1);
    held |= rank->plan.held();
  }
  for (const auto& rank : ranks_) {
    RankParts& parts = rank->parts;
    limit = rank->plan.steps_held(parts.batch.steps_to_change(limit));
    limit = std::min(limit, parts.scheduler->steady_steps(rank->plan));
    limit = parts.batch.steps_in(parts.kv.pool().room(), limit);
  }
  if (held && balance_.active()) limit = std::min(limit, balance_.steps_until_release());
  limit = steps_to_other_rank(run_.ranks, run_.query_len, limit);
  for (const auto& rank : ranks_) {
    const RequestQueue& queue = rank->parts.queue;
    if (limit > 1 && queue.on_their_way() > 0 && arrival_matters(*rank))
      limit = steps_until_seen(queue.first_ready(), limit);
    if (const auto due = rank->plan.batch_due(); limit > 1 && due)
      limit = pricer_.steps_within(decodes(), (*due - run_.start).seconds(), limit);
    if (const auto& landings = rank->parts.link.landings(); limit > 1 && !landings.empty())
      limit = pricer_.steps_within(decodes(), (landings.front().at - run_.start).seconds(), limit);
  }
  return limit;
}

void Replica::plan_ranks(SimTime now) {
  for (const auto& rank : ranks_) rank->plan.begin(now);
  std::optional<bool> held;
  if (balance_.active()) {
    work_.clear();
    for (const auto& rank : ranks_)
      work_.push_back({.decodes = rank->parts.batch.decoding() > 0, .prompt = rank->plan.prompt_could_run()});
    held = balance_.holds(work_);
  }
  for (const auto& rank : ranks_) rank->plan.plan(held);
}

/// Number of adapters on the rank that has the most; negative without adapters.
double Replica::adapters_held() const {
  if (!deployment().adapters) return -1;
  int most = 0;
  for (const RankParts* rank : rank_parts_) most = std::max(most, rank->adapters.held());
  return most;
}

/// Describes the decodes and prefills of each rank in the planned step.
void Replica::describe_run() {
  run_.adapters = adapters_held();
  run_.rows = 0;
  run_.context = 0;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Rank& rank = *ranks_[i];
    const Batch& batch = rank.parts.batch;
    RankLoad load;
    if (rank.plan.decodes()) {
      load.decodes = batch.rows();
      load.decode_context = rank.parts.scheduler->pads() ? batch.padded_context() : batch.context();
    }
    load.prefills = static_cast<int>(rank.plan.chunks().size());
    run_.rows += load.decodes;
    run_.context += load.decode_context;
    run_.decoding[i] = load.decodes > 0 ? batch.decoding() : 0;
    if (ranks_.size() > 1) run_.ranks[i] = load;
  }
}

void Replica::start_run(SimTime now) {
  take_arrivals(now);
  plan_ranks(now);
  ++generation_;
  woken_ = false;
  describe_run();
  bool prefill = false, moved = false, waits = false, idle_for_caches = false;
  for (const auto& rank : ranks_) {
    prefill |= rank->plan.has_prefill();
    moved |= rank->parts.kv.moved() > Bytes(0);
    idle_for_caches |= rank->parts.link.held() > 0 || !rank->parts.link.landings().empty();
    waits |= !rank->parts.queue.waiting().empty() || rank->parts.batch.running() > 0;
  }
  busy_ = run_.rows > 0 || prefill;
  if (!prefill)  // the next prompt follows none of the last step
    for (const auto& rank : ranks_) rank->prompt_tokens = 0;
  if (!busy_) {
    idle_since_ = now;
    carry_ = Seconds(0);
    for (const auto& rank : ranks_) {
      const auto due = rank->plan.batch_due();
      if (due) wake_ = woken_ ? std::min(wake_, *due) : *due, woken_ = true;
    }
    SIM_CHECK(woken_ || on_their_way() > 0 || idle_for_caches || !waits, "an idle replica has nothing to do");
    return;
  }
  run_.start = now;
  drawn_ = steps_.draw();
  run_.whole = !prefill && !moved && !first().options.speculation.active() && engine().kv_cache;
  if (run_.whole) {
    // run_length() uses the planning_lag() of the steps of this run.
    if (engine().scheduler_launches && engine().plans_ahead() && on_their_way() > 0)
      run_.cost = pricer_.decode_run(decodes(), 1);
    return price_run(run_length());
  }
  run_.steps = 1;
  run_.cost = price_step();
  end_run_at(now);
}

void Replica::price_run(std::int64_t steps, SimTime not_before) {
  SIM_CHECK(steps >= 1, "a run has a step");
  run_.steps = steps;
  run_.cost = pricer_.decode_run(decodes(), steps);
  end_run_at(not_before);
  ++generation_;
}

/// The priced run lasts as its draw says, but to `not_before`: what cuts it was found by the mean times of its steps.
void Replica::end_run_at(SimTime not_before) {
  if (steps_.active()) run_.cost.time += run_.cost.host * (steps_.factor(drawn_, run_.steps) - 1.0);
  run_.end = run_.start + SimTime::of(run_.cost.time + carry_);
  if (!steps_.active() || run_.end >= not_before) return;
  run_.end = not_before;
  run_.cost.time = (run_.end - run_.start).seconds() - carry_;
}

/// Without a KV cache each row of a decode step is recomputed from its first token. In a padded batch all rows are as
/// long as the longest.
void Replica::compute_again(Rank& rank, std::size_t i) {
  rank.recomputed = rank.repadded = 0;
  const Batch& batch = rank.parts.batch;
  const int rows = rank.plan.decodes() ? batch.rows() : 0;
  if (rows == 0 || run_.decoding[i] == 0) return;
  if (!then_.empty()) then_[i] = {.prefills = then_[i].prefills + rows};
  const bool pads = rank.parts.scheduler->pads();
  const auto padded = static_cast<int>(batch.longest()) + 1;
  const auto add = [&](int tokens) {
    priced_chunks_.push_back({.tokens = tokens, .context_before = 0, .last = true});
    rank.recomputed += tokens - 1;
  };
  batch.for_each([&](Slot, const LiveRequest& r) {
    if (r.phase != Phase::kDecode) return;
    const int tokens = static_cast<int>(batch.tokens_of(r)) + 1;
    add(pads ? padded : tokens);
    rank.repadded += priced_chunks_.back().tokens - tokens;
  });
  for (int ended = rows - run_.decoding[i]; ended > 0; --ended) {
    add(padded);
    rank.repadded += padded - 1;
  }
}

/// Media are encoded before the first chunk of their prompt, unless they lie in its cached part.
void Replica::add_media(LiveRequest& r, std::vector<EncoderWork>& out) const {
  const auto& by_client = first().options.media;
  if (r.encoded || r.client >= by_client.size()) return;
  r.encoded = true;
  double left = static_cast<double>(r.target - r.base);
  for (const EncoderWork& work : by_client[r.client]) {
    EncoderWork mine = work;
    mine.items = std::min(work.items, std::ceil(left / std::max(work.tokens, 1.0)));
    left = std::max(0.0, left - mine.items * mine.tokens);
    if (mine.items > 0) out.push_back(mine);
  }
}

/// Chunks and decodes of the step. Without a KV cache every sequence is recomputed from its first token.
StepBatch Replica::step_batch() {
  priced_chunks_.clear();
  encodes_.clear();
  const bool cached = engine().kv_cache, pipeline = deployment().sharding.pp > 1;
  const std::int64_t budget = engine().max_num_batched_tokens;
  bool followed = false;
  if (!run_.ranks.empty()) then_ = run_.ranks;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = *ranks_[i];
    rank.padding = 0;
    std::vector<EncoderWork> media;
    int longest = 0;  // longest prompt of the batch; the others are padded to it
    if (rank.parts.scheduler->pads())
      rank.parts.batch.for_each([&](Slot, const LiveRequest& r) { longest = std::max(longest, r.target); });
    const int ahead = std::exchange(rank.prompt_tokens, 0);
    for (const PlannedChunk& c : rank.plan.chunks()) {
      LiveRequest& r = rank.parts.requests[c.slot];
      const bool last = r.base + c.tokens == r.target;
      if (!first().options.media.empty()) add_media(r, media);
      const int padding = last ? std::max(0, longest - r.target) : 0;
      rank.padding += padding;
      const auto own = static_cast<int>(std::clamp<std::int64_t>(r.base - r.cached, 0, budget));
      priced_chunks_.push_back({.tokens = c.tokens + padding,
                                .context_before = static_cast<int>(r.base),
                                .last = last,
                                .ahead = std::max(own, ahead)});
      if (pipeline) rank.prompt_tokens += c.tokens;
    }
    followed |= rank.prompt_tokens > 0 && rank.parts.scheduler->continuous() && rank.plan.waiting_could_run();
    if (patches_of(media) > patches_of(encodes_)) encodes_ = std::move(media);
    if (!cached) compute_again(rank, i);
  }
  if (!followed) {
    for (const auto& rank : ranks_) rank->prompt_tokens = 0;
  }
  return {.decodes = cached ? run_.rows : 0,
          .decode_context = cached ? run_.context : 0.0,
          .query_len = run_.query_len,
          .prefills = priced_chunks_,
          .ranks = then_,
          .adapters = run_.adapters,
          .encodes = encodes_,
          .followed = followed};
}

/// Time to read from disk and tiers; ranks read in parallel.
Seconds Replica::reads() const {
  Seconds most{};
  for (const RankParts* rank : rank_parts_) most = std::max(most, rank->reads);
  return most;
}

/// The cost of one whole step: chunks, decodes, drafts, and cache copies over PCIe.
StepCost Replica::price_step() {
  StepCost cost = pricer_.cost(step_batch());
  const SpeculationSpec& spec = first().options.speculation;
  if (spec.active() && run_.rows > 0) {
    cost.time += spec.draft_time;
    if (draft_pricer_ != nullptr) {
      const StepCost draft = draft_cost(*draft_pricer_, spec, decodes());
      cost.time += draft.time;
      cost.flops += draft.flops;
      cost.bytes += draft.bytes;
    }
  }
  Bytes moved{};
  for (const RankParts* rank : rank_parts_) moved = std::max(moved, rank->kv.moved());
  if (moved > Bytes(0)) cost.time += host_copy(moved, deployment().machine()).time;
  if (deployment().adapters || !engine().kv_tiers.empty()) cost.time += reads();
  return cost;
}

}  // namespace roofcast
