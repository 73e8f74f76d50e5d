// The events of a replica: arrivals, the start of a run and its length.
#include "sim/serve/replica.h"

#include <algorithm>
#include <limits>

#include "hw/kernels/elementwise.h"

namespace roofcast {
Replica::Replica(std::shared_ptr<const Deployment> deployment, const ReplicaOptions& options, StepPricer& pricer,
                 StepPricer* draft_pricer, RequestTable& requests, Collector& collector)
    : deployment_(std::move(deployment)),
      engine_(deployment_->engine),
      options_(options),
      rules_(make_scheduler(engine_.scheduler)),
      pricer_(pricer),
      draft_pricer_(draft_pricer),
      requests_(requests),
      collector_(collector),
      front_end_(engine_, options_.prompt_text),
      gaps_(collector, engine_.stream_interval),
      pool_(*deployment_),
      growth_(pool_.layout()),
      law_(options.speculation),
      random_(options.seed),
      max_seqs_(std::max(1, deployment_->seats())),
      budget_(std::int64_t{std::max(1, engine_.max_num_batched_tokens)} * deployment_->sharding.attention_dp),
      rank_budget_(std::max(1, engine_.max_num_batched_tokens)),
      query_len_(options.speculation.query_len()),
      waiting_(options.policy) {}

bool Replica::can_serve(const LiveRequest& r) const {
  const std::int64_t total = options_.prefill_only ? std::int64_t{r.target} + 1 : std::int64_t{r.prompt} + r.output;
  const double longest = engine_.max_model_len > 0 ? engine_.max_model_len : deployment_->model.max_context;
  if (longest > 0 && static_cast<double>(total) > longest) return false;
  if (pool_.layout().bytes(total) > pool_.capacity() / deployment_->sharding.attention_dp) return false;
  return engine_.chunked_prefill || rules_.whole_batch || r.prompt <= rank_budget_;
}

void Replica::submit(Slot slot, SimTime sent) {
  LiveRequest& r = requests_[slot];
  r.replica = static_cast<std::uint16_t>(options_.index);
  arrive(slot, front_end_.receive(sent, r.prompt));
}

void Replica::arrive(Slot slot, SimTime ready) {
  inbox_.push_back({ready, slot});
  prompt_tokens_ += requests_[slot].prompt;
  if (!busy_) {
    if (inbox_.size() == 1) ++generation_;
  } else if (run_.whole && run_.steps > 1 && arrival_matters()) {
    const std::int64_t steps = steps_until_seen(ready, run_.steps);
    if (steps < run_.steps) price_run(steps);
  }
}

/// The run ends with the step under way.
void Replica::cut_run(SimTime now) {
  if (!busy_ || !run_.whole || run_.steps == 1) return;
  const Seconds past = (now - run_.start).seconds();
  const std::int64_t steps = pricer_.steps_within(run_.rows, run_.context, query_len_, past, run_.steps);
  if (steps < run_.steps) price_run(steps);
}

/// Between steps, as engines abort requests.
bool Replica::cancel(Slot slot, SimTime now) {
  LiveRequest& r = requests_[slot];
  r.cancelled = true;
  if (busy_ || landing(r)) {
    cancelled_.push_back(slot);
    cut_run(now);
    return false;
  }
  drop(slot);
  ++generation_;
  if (!waiting_.empty()) {
    woken_ = true;
    wake_ = now;
  }
  return true;
}

void Replica::fail(SimTime now) {
  failed_ = true;
  cut_run(now);
}

/// A cache under way does not arrive; it is still where it came from, as one that waits there to be fetched, unless
/// that has failed, too. One that has arrived is lost, and its client has had its first token.
void Replica::evacuate(SimTime now, std::vector<Slot>& out) {
  for (const auto& [at, slot] : landings_) {
    LiveRequest& r = requests_[slot];
    if (r.held) {
      r.remote = true;
      ++r.epoch;
    } else if (at > now) {
      lose_remote_cache(r);
      ++r.epoch;
    } else if (r.produced == 1) {
      r.last_token = at;
    }
  }
  landings_.clear();
  cancelled_.clear();
  link_free_ = now;
  while (oldest_ != kNoSlot) {
    out.push_back(oldest_);
    (void)suspend(oldest_);
  }
  for (; !waiting_.empty(); waiting_.pop()) out.push_back(waiting_.front());
  for (const Arrival& arrival : inbox_) out.push_back(arrival.slot);
  for (const Slot slot : out) {
    LiveRequest& r = requests_[slot];
    r.phase = Phase::kWaiting;
    if (r.remote) continue;
    r.swapped = false;
    r.base = 0;
    r.target = r.prompt + r.produced;
  }
  inbox_.clear();
  waiting_tokens_ = prompt_tokens_ = 0;
  close_batch();
  pool_.forget();
  failed_ = woken_ = false;
  carry_ = Seconds(0);
  idle_since_ = now;
  ++generation_;
}

void Replica::withdraw(int source, SimTime now, std::vector<Slot>& out) {
  const std::size_t before = out.size();
  const auto take = [&](Slot slot) {
    const LiveRequest& r = requests_[slot];
    if (r.remote && r.source == source && !r.cancelled) out.push_back(slot);
  };
  waiting_.for_each(take);
  for (const Arrival& arrival : inbox_) take(arrival.slot);
  if (out.size() == before) return;
  for (std::size_t i = before; i < out.size(); ++i) drop(out[i]);
  ++generation_;
  if (busy_) return cut_run(now);
  woken_ = !waiting_.empty();
  wake_ = now;
}

void Replica::submit_prefilled(Slot slot, SimTime now) {
  LiveRequest& r = requests_[slot];
  r.replica = static_cast<std::uint16_t>(options_.index);
  r.remote = true;
  arrive(slot, now);
}

SimTime Replica::due() const {
  if (busy_) return run_.end;
  SimTime first(std::numeric_limits<std::int64_t>::max());
  if (!inbox_.empty()) first = inbox_.front().ready;
  if (!landings_.empty()) first = std::min(first, landings_.front().at);
  return std::max(idle_since_, woken_ ? std::min(first, wake_) : first);
}

void Replica::release_held(Slot slot, SimTime now) {
  LiveRequest& r = requests_[slot];
  SIM_CHECK(r.held && held_ > 0, "a cache is given back once");
  pool_.give(r.held_bytes);
  r.held_bytes = 0;
  r.held = false;
  --held_;
  if (busy_ || woken_ || waiting_.empty()) return;
  woken_ = true;
  wake_ = now;
  ++generation_;
}

/// What a step that is planned while another one runs still sees of that one: nothing that comes after its start, or
/// after its last kernel was launched where one thread plans and launches.
SimTime Replica::planning_lag() const {
  return engine_.scheduler_launches ? SimTime::of(run_.cost.launched) : SimTime(0);
}

/// New requests are taken before a step; with asynchronous scheduling that step was planned while the one before it
/// ran, and an engine may look for them only every so many steps.
void Replica::take_arrivals(SimTime now) {
  if (engaged() && engine_.receive_interval > 1 && steps_ % engine_.receive_interval != 0) return;
  const bool ahead = engine_.async_scheduling && engaged();
  const SimTime seen = ahead ? std::min(now, run_.last_start + planning_lag()) : now;
  std::vector<int> of_ranks;
  while (!inbox_.empty() && inbox_.front().ready <= seen) {
    const Slot slot = inbox_.front().slot;
    inbox_.pop_front();
    waiting_tokens_ += requests_[slot].target;
    if (ranks_wait()) assign_rank(requests_[slot], of_ranks);
    waiting_.push(slot, requests_[slot]);
  }
}

/// Whether the plan could change when a request arrives during a run of decode steps. Memory and places only get
/// fewer until a sequence ends, so a queue whose head was refused stays as it is. Where requests are looked for only
/// now and then, or go to the attention-DP rank with the fewest, the step that finds one must not pass unseen.
bool Replica::arrival_matters() const {
  if (engine_.receive_interval > 1 || ranks_wait()) return true;
  if (rules_.whole_batch || running_ >= max_seqs_) return false;
  if (engine_.prefill_wait_steps > 0) return true;
  return waiting_.empty() || !waiting_.first_come();
}

/// Steps of the run until the plan sees a request that is ready then.
std::int64_t Replica::steps_until_seen(SimTime ready, std::int64_t limit) const {
  std::int64_t steps = 1;
  const SimTime latest = engine_.async_scheduling ? ready - planning_lag() : ready;
  if (latest > run_.start) {
    steps = pricer_.steps_within(run_.rows, run_.context, query_len_, (latest - run_.start).seconds(), limit);
    if (engine_.async_scheduling) ++steps;
  }
  if (const std::int64_t every = engine_.receive_interval; every > 1)
    steps += (every - (steps_ + steps) % every) % every;
  return std::min(steps, limit);
}

std::int64_t Replica::run_length() {
  std::int64_t limit = options_.max_steps_per_event;
  const auto leaves = [&](Slot slot) { return !landing(requests_[slot]); };
  if (preempted_ || std::any_of(cancelled_.begin(), cancelled_.end(), leaves)) limit = 1;  // one leaves after this step
  limit =
      std::min(finishes_.next(requests_, counter_ + limit), level_ends_.next(requests_, counter_ + limit)) - counter_;
  if (waiting_for_more_) {
    const std::int64_t held = ranks_wait() ? rank_clock_ % engine_.prefill_wait_steps : held_steps_;
    limit = std::min(limit, engine_.prefill_wait_steps - held);
  }
  if (waiting_for_more_ && pool_.room() - growth_.bytes(counter_, limit + 1) < held_bytes_)
    limit = 1;  // may stop fitting
  limit = growth_.steps_in(counter_, pool_.room(), limit);
  if (limit > 1 && !inbox_.empty() && arrival_matters()) limit = steps_until_seen(inbox_.front().ready, limit);
  if (limit > 1 && !landings_.empty()) {
    const Seconds left = (landings_.front().at - run_.start).seconds();
    limit = pricer_.steps_within(run_.rows, run_.context, query_len_, left, limit);
  }
  return limit;
}

void Replica::start_run(SimTime now) {
  take_arrivals(now);
  plan(now);
  ++generation_;
  woken_ = false;
  busy_ = run_.rows > 0 || !chunks_.empty();
  if (!busy_) {
    idle_since_ = now;
    carry_ = Seconds(0);
    SIM_CHECK(held_ > 0 || !landings_.empty() || (waiting_.empty() && running_ == 0),
              "an idle replica has nothing to do");
    return;
  }
  run_.start = now;
  run_.whole = chunks_.empty() && swapped_ == Bytes(0) && !options_.speculation.active() && engine_.kv_cache;
  if (run_.whole) {
    // run_length() looks at what is on its way with the planning_lag() of this run's steps.
    if (engine_.scheduler_launches && engine_.async_scheduling && !inbox_.empty())
      run_.cost = pricer_.decode_run(run_.rows, run_.context, query_len_, 1);
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
  run_.cost = pricer_.decode_run(run_.rows, run_.context, query_len_, steps);
  run_.end = run_.start + SimTime::of(run_.cost.time + carry_);
  run_.last_start = run_.start;
  if (engine_.async_scheduling && steps > 1) {
    run_.last_start += SimTime::of(pricer_.decode_run(run_.rows, run_.context, query_len_, steps - 1).time);
  }
  ++generation_;
}

/// One step with all that belongs to it: chunks, decodes, drafts, and cache moved over PCIe.
StepCost Replica::price_step() {
  priced_chunks_.clear();
  for (const Chunk& c : chunks_) {
    const LiveRequest& r = requests_[c.slot];
    priced_chunks_.push_back(
        {.tokens = c.tokens, .context_before = static_cast<int>(r.base), .last = r.base + c.tokens == r.target});
  }
  if (!engine_.kv_cache && run_.rows > 0) {  // every sequence is computed from its beginning
    for (Slot s = oldest_; s != kNoSlot; s = requests_[s].newer) {
      if (requests_[s].phase == Phase::kDecode) {
        priced_chunks_.push_back(
            {.tokens = static_cast<int>(tokens_of(requests_[s])) + 1, .context_before = 0, .last = true});
      }
    }
  }
  StepCost cost = pricer_.cost({.decodes = engine_.kv_cache ? run_.rows : 0,
                                .decode_context = engine_.kv_cache ? run_.context : 0.0,
                                .query_len = query_len_,
                                .prefills = priced_chunks_,
                                .rank_prefill_tokens = ranks_wait() ? fullest_rank_prefill() : 0.0});
  const SpeculationSpec& spec = options_.speculation;
  if (spec.active() && run_.rows > 0) {
    cost.time += spec.draft_time;
    if (draft_pricer_ != nullptr) {
      const StepCost draft = draft_pricer_->decode_run(run_.rows, run_.context, 1, spec.num_speculative_tokens);
      cost.time += draft.time;
      cost.flops += draft.flops;
      cost.bytes += draft.bytes;
    }
  }
  if (swapped_ > Bytes(0)) cost.time += host_copy(swapped_, deployment_->machine()).time;
  return cost;
}

}  // namespace roofcast
