// A changing fleet: autoscaling decisions, cold starts, failures, and what happens to the requests.
#include <algorithm>

#include <fmt/format.h>

#include "sim/serve/simulation_run.h"

namespace roofcast {
namespace {

using Kind = EventQueue::Kind;

/// LiveRequest::replica of a request that waits at the gateway.
constexpr std::uint16_t kNowhere = 0xffff;

/// After this many failures (plus one per replica) without a finished request, no request will ever finish.
constexpr std::int64_t kMostFruitless = 10'000;

}  // namespace

void Simulation::begin_fleet() {
  const FleetSpec& spec = options_.fleet;
  const int all = static_cast<int>(replicas_.size());
  const auto kind = [&](bool prefill, int there, int asked) {
    const auto& scaling = spec.scaling(prefill);
    return FleetStates::Kind{there, scaling ? std::clamp(asked, scaling->min, scaling->max) : there};
  };
  const FleetStates::Kind decode = kind(false, all - prefill_replicas_, options_.replicas);
  FleetStates::Kind prefill;
  if (options_.disaggregation) prefill = kind(true, prefill_replicas_, options_.disaggregation->prefill_replicas);
  fleet_.emplace(spec, prefill, decode, options_.seed);
  for (int i = 0; i < all; ++i) {
    if (fleet_->state(i) == ReplicaState::kOff) role_of(i).remove(at(i));
  }
  for (const bool prefills : {false, true}) {
    const auto& scaling = spec.scaling(prefills);
    if (!scaling || first_of(prefills) == end_of(prefills)) continue;
    autoscalers_[prefills].emplace(*scaling, (prefills ? prefill : decode).serving);
    push_fleet(SimTime::of(scaling->interval), FleetEvent::kDecide, prefills ? 1 : 0);
  }
  if (spec.failures) {
    for (int i = 0; i < all; ++i) {
      if (const auto when = next_failure(i, SimTime())) push_fleet(*when, FleetEvent::kFailure, i);
    }
    for (const FailureSpec::Event& e : spec.failures->events) {
      push_fleet(SimTime::of(e.at), FleetEvent::kListedFailure, e.replica);
    }
  }
  collector_.fleet(fleet_->record(SimTime()));
}

/// A replica fails when the first of its GPUs does.
std::optional<SimTime> Simulation::next_failure(int replica, SimTime now) {
  std::optional<SimTime> first;
  for (int gpu = 0; gpu < at(replica).gpus(); ++gpu) {
    const std::optional<SimTime> when = fleet_->next_failure(replica, now);
    if (when && (!first || *when < *first)) first = when;
  }
  return first;
}

void Simulation::push_fleet(SimTime when, FleetEvent what, int replica) {
  ++housekeeping_;
  events_.push(when, Kind::kFleet, replica, static_cast<std::uint32_t>(what));
}

/// The run is over if no request is left and only fleet events remain, because these create no requests.
void Simulation::fleet_event(FleetEvent what, int replica, SimTime now) {
  --housekeeping_;
  if (requests_.live() == 0 && (exhausted_ || events_.size() == housekeeping_)) return;
  switch (what) {
    case FleetEvent::kDecide:
      return decide(replica == 1, now);
    case FleetEvent::kReady:
      if (fleet_->state(replica) != ReplicaState::kStarting || fleet_->ready_at(replica) != now) return;
      change(replica, ReplicaState::kActive, now);
      return serves(replica, now);
    case FleetEvent::kFailure:
      return fail_by_chance(replica, now);
    case FleetEvent::kListedFailure:
      return fail_replica(replica, now);
    case FleetEvent::kRepaired:
      if (fleet_->state(replica) != ReplicaState::kDown) return;
      change(replica, autoscalers_[prefills_only(replica)] ? ReplicaState::kOff : ReplicaState::kStarting, now);
      return;
  }
}

/// Sends the requests that waited for a replica of this role.
void Simulation::serves(int replica, SimTime now) {
  role_of(replica).add(at(replica));
  while (front_.replicas() > 0 && !gateway_.empty()) {
    const Slot slot = gateway_.front();
    gateway_.pop_front();
    send_again(slot, now);
  }
  while (decode_.replicas() > 0 && !prefilled_.empty()) {
    const Slot slot = prefilled_.front();
    prefilled_.pop_front();
    hand_over(slot, now);
  }
}

void Simulation::change(int replica, ReplicaState state, SimTime now) {
  fleet_->set(replica, state, now);
  if (state == ReplicaState::kStarting) {
    ++collector_.metrics().replica_starts;
    if (prefills_only(replica)) ++collector_.metrics().prefill_replica_starts;
    push_fleet(fleet_->ready_at(replica), FleetEvent::kReady, replica);
  }
  collector_.fleet(fleet_->record(now));
}

/// Without a prefill replica, prompts wait at the gateway; without a decode replica, prefilled sequences wait.
void Simulation::decide(bool prefill, SimTime now) {
  push_fleet(now + SimTime::of(options_.fleet.scaling(prefill)->interval), FleetEvent::kDecide, prefill ? 1 : 0);
  const std::size_t outside = prefill_replicas_ > 0 && !prefill ? prefilled_.size() : gateway_.size();
  FleetLoad load{.waiting = static_cast<double>(outside),
                 .running = 0,
                 .max_sequences = double(at(first_of(prefill)).max_sequences())};
  for (int i = first_of(prefill); i < end_of(prefill); ++i) {
    if (fleet_->state(i) != ReplicaState::kActive) continue;
    load.waiting += static_cast<double>(at(i).queued());
    load.running += at(i).running();
  }
  int current = fleet_->count(ReplicaState::kActive, prefill) + fleet_->count(ReplicaState::kStarting, prefill);
  const int wanted = autoscalers_[prefill]->wanted(now, load, current);
  while (current < wanted && start_one(prefill, now)) ++current;
  while (current > wanted && stop_one(prefill, now)) --current;
}

/// Keeps a draining replica; if there is none, starts a cold one.
bool Simulation::start_one(bool prefill, SimTime now) {
  for (const ReplicaState from : {ReplicaState::kDraining, ReplicaState::kOff}) {
    for (int i = first_of(prefill); i < end_of(prefill); ++i) {
      if (fleet_->state(i) != from) continue;
      const bool draining = from == ReplicaState::kDraining;
      change(i, draining ? ReplicaState::kActive : ReplicaState::kStarting, now);
      if (draining) serves(i, now);
      return true;
    }
  }
  return false;  // the others are down
}

/// Stops a replica that has not started yet; if there is none, drains the one with the fewest requests.
bool Simulation::stop_one(bool prefill, SimTime now) {
  int chosen = -1;
  for (int i = end_of(prefill) - 1; i >= first_of(prefill); --i) {
    if (fleet_->state(i) == ReplicaState::kStarting) {
      change(i, ReplicaState::kOff, now);
      return true;
    }
    if (fleet_->state(i) != ReplicaState::kActive) continue;
    if (chosen < 0 || at(i).outstanding() < at(chosen).outstanding()) chosen = i;
  }
  if (chosen < 0) return false;
  role_of(chosen).remove(at(chosen));
  change(chosen, ReplicaState::kDraining, now);
  if (!at(chosen).busy()) (void)leaves_service(chosen, now);
  return true;
}

void Simulation::fail_by_chance(int replica, SimTime now) {
  if (const auto next = next_failure(replica, now)) push_fleet(*next, FleetEvent::kFailure, replica);
  fail_replica(replica, now);
}

/// The replica fails at the end of its current step.
void Simulation::fail_replica(int replica, SimTime now) {
  const ReplicaState state = fleet_->state(replica);
  if (state == ReplicaState::kOff || state == ReplicaState::kDown) return;
  ++collector_.metrics().replica_failures;
  if (++fruitless_failures_ > kMostFruitless + fleet_->size()) {
    throw ConfigError(options_.fleet.failures->location,
                      fmt::format("replicas fail before they can serve: {} failures and no request that ended; a "
                                  "longer 'mtbf' or a shorter 'repair' would let them",
                                  fruitless_failures_ - 1));
  }
  if (state == ReplicaState::kActive) role_of(replica).remove(at(replica));
  change(replica, ReplicaState::kDown, now);
  push_fleet(now + SimTime::of(options_.fleet.failures->repair), FleetEvent::kRepaired, replica);
  if (state == ReplicaState::kStarting) return;
  at(replica).fail(now);
  if (at(replica).busy()) {
    schedule(replica);
  } else {
    lose(replica, now);
  }
}

void Simulation::lose(int replica, SimTime now) {
  homeless_.clear();
  at(replica).evacuate(now, homeless_);
  if (prefills_only(replica)) withdraw_caches(replica, now);
  for (const Slot slot : homeless_) {
    const LiveRequest& r = requests_[slot];
    if (r.cancelled) {
      count_ended(r, {slot, now, false});
      (void)leave(slot, now, now);
      continue;
    }
    if (options_.fleet.failures->requeue && (r.remote || front_.can_serve(r))) {
      if (r.counted) ++collector_.metrics().requeued;
      r.remote ? hand_over(slot, now) : send_again(slot, now);
      continue;
    }
    if (r.counted) {
      collector_.replied(now);
      collector_.lost(r.client);
    }
    if (turns_) turns_->came(r.id, now);  // its arrival time is no longer needed
    const int session = r.session;
    if (!leave(slot, now, now)) user_goes_on(session, now, now);
  }
}

/// Caches that no transfer has started for are lost with the replica that prefilled them. A transfer in progress
/// completes, but its source no longer holds the cache.
void Simulation::withdraw_caches(int replica, SimTime now) {
  const std::size_t before = homeless_.size();
  for (int i = prefill_replicas_; i < static_cast<int>(replicas_.size()); ++i) {
    at(i).withdraw(replica, now, homeless_);
    schedule(i);
    for (const Replica::Landing& l : at(i).landings()) {
      const LiveRequest& r = requests_[l.slot];
      if (r.held && r.source == replica) at(replica).release_held(l.slot, now);
    }
  }
  for (const Slot slot : std::exchange(prefilled_, {}))
    (requests_[slot].source == replica ? homeless_.push_back(slot) : prefilled_.push_back(slot));
  for (std::size_t i = before; i < homeless_.size(); ++i) {
    at(replica).release_held(homeless_[i], now);
    LiveRequest& r = requests_[homeless_[i]];
    lose_remote_cache(r);
    r.phase = Phase::kWaiting;
    r.base = 0;
    r.target = r.prompt + r.produced;
  }
}

/// The cache stays on the replica that prefilled it.
void Simulation::wait_for_decoder(Slot slot) {
  requests_[slot].remote = true;
  requests_[slot].replica = kNowhere;
  prefilled_.push_back(slot);
}

void Simulation::send_again(Slot slot, SimTime now) {
  if (front_.replicas() == 0) {
    requests_[slot].replica = kNowhere;
    gateway_.push_back(slot);
    return;
  }
  Replica& replica = front_.pick(request_of(slot));
  replica.submit(slot, now);
  schedule(replica.index());
}

/// Called between runs: a failed replica loses its requests, a drained one stops.
bool Simulation::leaves_service(int replica, SimTime now) {
  if (at(replica).failed()) {
    lose(replica, now);
    return true;
  }
  return stops(replica, now);
}

/// A drained replica may stop; a prefill worker only after its caches have been fetched.
bool Simulation::stops(int replica, SimTime now) {
  if (fleet_->state(replica) != ReplicaState::kDraining) return false;
  if (at(replica).outstanding() > 0 || at(replica).holds_caches()) return false;
  std::vector<Slot> none;
  at(replica).evacuate(now, none);
  SIM_CHECK(none.empty(), "a drained replica has no requests");
  change(replica, ReplicaState::kOff, now);
  return true;
}

/// A request that is sent while no replica serves.
void Simulation::wait_for_replica(Slot slot, SimTime now) {
  LiveRequest& r = requests_[slot];
  if (options_.max_queue > 0 && gateway_.size() >= static_cast<std::size_t>(options_.max_queue)) {
    if (r.counted) collector_.rejected(r.client, now);
    return refuse(slot, now);
  }
  ++in_flight_;
  if (!workload_.patience.endless()) watch(slot, now);
  r.replica = kNowhere;
  gateway_.push_back(slot);
}

void Simulation::account_fleet() {
  ServingMetrics& m = collector_.metrics();
  const auto paid = [&](bool prefill) {
    return fleet_->paid_seconds(collector_.begin_time(), collector_.end_time(), prefill);
  };
  if (autoscalers_[false]) m.replica_seconds = paid(false), m.most_replicas = fleet_->most_paid(false);
  if (autoscalers_[true]) m.prefill_replica_seconds = paid(true), m.most_prefill_replicas = fleet_->most_paid(true);
  if (autoscalers_[false] || autoscalers_[true])
    m.paid_fleets = fleet_->paid_fleets(collector_.begin_time(), collector_.end_time());
}

}  // namespace roofcast
