// The events of a replica: arrivals, the start of a run and its length.
#include "sim/serve/replica.h"

#include <algorithm>
#include <limits>

#include "hw/kernels/elementwise.h"

namespace roofcast {
Replica::Replica(std::shared_ptr<const Deployment> deployment, const ReplicaOptions& options, StepPricer& pricer,
                 StepPricer* draft_pricer, RequestTable& requests, Collector& collector)
    : parts_(std::move(deployment), options, pricer, requests, collector),
      departures_(parts_),
      plan_(parts_, departures_),
      pricer_(pricer),
      draft_pricer_(draft_pricer),
      law_(options.speculation),
      random_(options.seed) {}

bool Replica::can_serve(const LiveRequest& r) const {
  const Deployment& d = *parts_.deployment;
  const std::int64_t total =
      parts_.options.prefill_only ? std::int64_t{r.target} + 1 : std::int64_t{r.prompt} + r.output;
  const double longest = d.engine.max_model_len > 0 ? d.engine.max_model_len : d.model.max_context;
  if (longest > 0 && static_cast<double>(total) > longest) return false;
  return parts_.kv.bytes(total) <= pool().capacity() / d.sharding.attention_dp && plan_.fits_whole(r);
}

void Replica::submit(Slot slot, SimTime sent) {
  LiveRequest& r = parts_.requests[slot];
  r.replica = static_cast<std::uint16_t>(index());
  arrive(slot, parts_.delivery.receive(sent, r.prompt));
}

void Replica::submit_prefilled(Slot slot, SimTime now) {
  LiveRequest& r = parts_.requests[slot];
  r.replica = static_cast<std::uint16_t>(index());
  r.remote = true;
  arrive(slot, now);
}

void Replica::arrive(Slot slot, SimTime ready) {
  parts_.queue.send(ready, slot);
  if (!busy_) {
    if (parts_.queue.on_their_way() == 1) ++generation_;
  } else if (run_.whole && run_.steps > 1 && arrival_matters()) {
    const std::int64_t steps = steps_until_seen(ready, run_.steps);
    if (steps < run_.steps) price_run(steps);
  }
}

/// Something has changed while idle: a waiting request may find room now.
void Replica::wake(SimTime now) {
  woken_ = true;
  wake_ = now;
}

/// The run ends with the step under way.
void Replica::cut_run(SimTime now) {
  if (!busy_ || !run_.whole || run_.steps == 1) return;
  const Seconds past = (now - run_.start).seconds();
  const std::int64_t steps = pricer_.steps_within(run_.rows, run_.context, parts_.query_len, past, run_.steps);
  if (steps < run_.steps) price_run(steps);
}

/// Between steps, as engines abort requests.
bool Replica::cancel(Slot slot, SimTime now) {
  LiveRequest& r = parts_.requests[slot];
  r.cancelled = true;
  if (busy_ || landing(r)) {
    departures_.cancel(slot);
    cut_run(now);
    return false;
  }
  departures_.drop(slot);
  ++generation_;
  if (!parts_.queue.waiting().empty()) wake(now);
  return true;
}

void Replica::fail(SimTime now) {
  departures_.fail();
  cut_run(now);
}

void Replica::evacuate(SimTime now, std::vector<Slot>& out) {
  departures_.evacuate(now, out);
  woken_ = false;
  carry_ = Seconds(0);
  idle_since_ = now;
  ++generation_;
}

void Replica::withdraw(int source, SimTime now, std::vector<Slot>& out) {
  const std::size_t before = out.size();
  departures_.withdraw(source, out);
  if (out.size() == before) return;
  ++generation_;
  if (busy_) return cut_run(now);
  woken_ = !parts_.queue.waiting().empty();
  wake_ = now;
}

SimTime Replica::due() const {
  if (busy_) return run_.end;
  SimTime first(std::numeric_limits<std::int64_t>::max());
  if (parts_.queue.on_their_way() > 0) first = parts_.queue.first_ready();
  if (!landings().empty()) first = std::min(first, landings().front().at);
  return std::max(idle_since_, woken_ ? std::min(first, wake_) : first);
}

void Replica::release_held(Slot slot, SimTime now) {
  parts_.kv.give(parts_.link.release(parts_.requests[slot]));
  if (busy_ || woken_ || parts_.queue.waiting().empty()) return;
  wake(now);
  ++generation_;
}

/// What a step that is planned while another one runs still sees of that one: nothing that comes after its start, or
/// after its last kernel was launched where one thread plans and launches.
SimTime Replica::planning_lag() const {
  return parts_.engine.scheduler_launches ? SimTime::of(run_.cost.launched) : SimTime(0);
}

/// New requests are taken before a step; with asynchronous scheduling that step was planned while the one before it
/// ran, and an engine may look for them only every so many steps.
void Replica::take_arrivals(SimTime now) {
  const EngineSpec& engine = parts_.engine;
  const bool engaged = parts_.batch.engaged();
  if (engaged && engine.receive_interval > 1 && plan_.steps() % engine.receive_interval != 0) return;
  const bool ahead = engine.async_scheduling && engaged;
  const SimTime seen = ahead ? std::min(now, run_.last_start + planning_lag()) : now;
  std::vector<int> of_ranks;
  while (parts_.queue.on_their_way() > 0 && parts_.queue.first_ready() <= seen) {
    const Slot slot = parts_.queue.take_arrival();
    if (parts_.ranks.active()) parts_.ranks.assign(parts_.requests[slot], of_ranks);
    parts_.queue.push(slot);
  }
}

/// Whether the plan could change when a request arrives during a run of decode steps. Where requests are looked for
/// only now and then, or go to the attention-DP rank with the fewest, the step that finds one must not pass unseen.
bool Replica::arrival_matters() const {
  if (parts_.engine.receive_interval > 1 || parts_.ranks.active()) return true;
  return parts_.scheduler->arrival_matters(plan_);
}

/// Steps of the run until the plan sees a request that is ready then.
std::int64_t Replica::steps_until_seen(SimTime ready, std::int64_t limit) const {
  const EngineSpec& engine = parts_.engine;
  std::int64_t steps = 1;
  const SimTime latest = engine.async_scheduling ? ready - planning_lag() : ready;
  if (latest > run_.start) {
    const Seconds left = (latest - run_.start).seconds();
    steps = pricer_.steps_within(run_.rows, run_.context, parts_.query_len, left, limit);
    if (engine.async_scheduling) ++steps;
  }
  if (const std::int64_t every = engine.receive_interval; every > 1)
    steps += (every - (plan_.steps() + steps) % every) % every;
  return std::min(steps, limit);
}

/// Steps for which the plan stays the same.
std::int64_t Replica::run_length() {
  std::int64_t limit = parts_.options.max_steps_per_event;
  if (plan_.preempted() || departures_.due()) limit = 1;
  limit = plan_.steps_held(parts_.batch.steps_to_change(limit));
  limit = std::min(limit, parts_.scheduler->steady_steps(plan_));
  limit = parts_.batch.steps_in(pool().room(), limit);
  const RequestQueue& queue = parts_.queue;
  if (limit > 1 && queue.on_their_way() > 0 && arrival_matters()) limit = steps_until_seen(queue.first_ready(), limit);
  if (limit > 1 && !landings().empty()) {
    const Seconds left = (landings().front().at - run_.start).seconds();
    limit = pricer_.steps_within(run_.rows, run_.context, parts_.query_len, left, limit);
  }
  return limit;
}

void Replica::start_run(SimTime now) {
  take_arrivals(now);
  plan_.plan(now);
  ++generation_;
  woken_ = false;
  run_.rows = plan_.decodes() ? parts_.batch.rows() : 0;
  run_.context = plan_.decodes() ? parts_.batch.context() : 0.0;
  busy_ = run_.rows > 0 || plan_.has_prefill();
  if (!busy_) {
    idle_since_ = now;
    carry_ = Seconds(0);
    SIM_CHECK(parts_.link.held() > 0 || !landings().empty() || (parts_.queue.waiting().empty() && running() == 0),
              "an idle replica has nothing to do");
    return;
  }
  const EngineSpec& engine = parts_.engine;
  run_.start = now;
  run_.whole =
      !plan_.has_prefill() && parts_.kv.moved() == Bytes(0) && !parts_.options.speculation.active() && engine.kv_cache;
  if (run_.whole) {
    // run_length() looks at what is on its way with the planning_lag() of this run's steps.
    if (engine.scheduler_launches && engine.async_scheduling && parts_.queue.on_their_way() > 0)
      run_.cost = pricer_.decode_run(run_.rows, run_.context, parts_.query_len, 1);
    return price_run(run_length());
  }
  run_.steps = 1;
  run_.cost = price_step();
  run_.last_start = now;
  run_.end = now + SimTime::of(run_.cost.time + carry_);
}

void Replica::price_run(std::int64_t steps) {
  SIM_CHECK(steps >= 1, "a run has a step");
  run_.steps = steps;
  run_.cost = pricer_.decode_run(run_.rows, run_.context, parts_.query_len, steps);
  run_.end = run_.start + SimTime::of(run_.cost.time + carry_);
  run_.last_start = run_.start;
  if (parts_.engine.async_scheduling && steps > 1) {
    run_.last_start += SimTime::of(pricer_.decode_run(run_.rows, run_.context, parts_.query_len, steps - 1).time);
  }
  ++generation_;
}

/// Chunks and decodes of the step. Without a cache every sequence is computed from its beginning.
StepBatch Replica::step_batch() {
  priced_chunks_.clear();
  for (const PlannedChunk& c : plan_.chunks()) {
    const LiveRequest& r = parts_.requests[c.slot];
    priced_chunks_.push_back(
        {.tokens = c.tokens, .context_before = static_cast<int>(r.base), .last = r.base + c.tokens == r.target});
  }
  const bool cached = parts_.engine.kv_cache;
  if (!cached && run_.rows > 0) {
    parts_.batch.for_each([&](Slot, const LiveRequest& r) {
      if (r.phase != Phase::kDecode) return;
      const int tokens = static_cast<int>(parts_.batch.tokens_of(r)) + 1;
      priced_chunks_.push_back({.tokens = tokens, .context_before = 0, .last = true});
    });
  }
  return {.decodes = cached ? run_.rows : 0,
          .decode_context = cached ? run_.context : 0.0,
          .query_len = parts_.query_len,
          .prefills = priced_chunks_,
          .rank_prefill_tokens = parts_.ranks.active() ? parts_.ranks.fullest_prefill(plan_.chunks()) : 0.0};
}

/// One step with all that belongs to it: chunks, decodes, drafts, and cache moved over PCIe.
StepCost Replica::price_step() {
  StepCost cost = pricer_.cost(step_batch());
  const SpeculationSpec& spec = parts_.options.speculation;
  if (spec.active() && run_.rows > 0) {
    cost.time += spec.draft_time;
    if (draft_pricer_ != nullptr) {
      const StepCost draft = draft_pricer_->decode_run(run_.rows, run_.context, 1, spec.num_speculative_tokens);
      cost.time += draft.time;
      cost.flops += draft.flops;
      cost.bytes += draft.bytes;
    }
  }
  const Bytes moved = parts_.kv.moved();
  if (moved > Bytes(0)) cost.time += host_copy(moved, parts_.deployment->machine()).time;
  return cost;
}

}  // namespace roofcast
