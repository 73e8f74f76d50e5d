#include "sim/serve/simulation.h"

#include <algorithm>
#include <limits>

#include "sim/serve/event_queue.h"
#include "sim/serve/replica.h"

namespace roofcast {
namespace {

using Kind = EventQueue::Kind;

/// What a client waits before it goes on after a request was refused.
constexpr Seconds kRefusal = kMillisecond;

/// Replicas that share a role: all of them, or those that prefill, or those that decode.
class Pool final : public ReplicaView {
 public:
  Pool(const std::string& router) : router_(make_router(router)) {}
  void add(Replica& replica) { members_.push_back(&replica); }
  Replica& pick(const Request& request) { return *members_[static_cast<std::size_t>(router_->pick(request, *this))]; }
  bool can_serve(const LiveRequest& request) const { return members_.front()->can_serve(request); }

  int replicas() const override { return static_cast<int>(members_.size()); }
  int outstanding(int i) const override { return at(i).outstanding(); }
  std::int64_t cached_blocks(int i, const Request& request) const override {
    return at(i).pool().cached_blocks(request.prefix_blocks);
  }

 private:
  const Replica& at(int i) const { return *members_[static_cast<std::size_t>(i)]; }
  std::vector<Replica*> members_;
  std::unique_ptr<Router> router_;
};

class Simulation {
 public:
  Simulation(std::shared_ptr<const Deployment> deployment, RequestSource& source, const WorkloadSpec& workload,
             const ServingOptions& options, Observer* observer);
  ServingMetrics run();

 private:
  bool closed() const { return workload_.arrivals.process == ArrivalSpec::Process::kClosedLoop; }
  Replica& at(int i) { return *replicas_[static_cast<std::size_t>(i)]; }
  void add_replicas(const std::shared_ptr<const Deployment>& deployment, int count, StepPricer& pricer, Pool& pool,
                    bool prefill_only);
  void begin();
  void send(const Request& request, SimTime now);
  void send_next(int session, SimTime now);
  void user_goes_on(int session, SimTime now, SimTime from);
  void arrive(SimTime now);
  void run_replica(int index, SimTime now);
  void finish(const Replica::Ended& ended, SimTime now);
  void hand_over(Slot slot, SimTime now);
  void watch(Slot slot, SimTime now);
  bool late(const LiveRequest& request, SimTime now) const;
  void give_up(Slot slot, std::uint32_t id, SimTime now);
  void refuse(Slot slot, SimTime now);
  void count_ended(const LiveRequest& request, const Replica::Ended& ended);
  std::optional<SimTime> gave_up_at(const LiveRequest& request, SimTime delivered) const;
  bool leave(Slot slot, SimTime now, SimTime delivered);
  void transferred(Slot slot, SimTime now);
  void schedule(int index);

  RequestSource& source_;
  const WorkloadSpec& workload_;
  const ServingOptions& options_;
  Collector collector_;
  RequestTable requests_;
  EventQueue events_;
  Random think_;
  Pool front_, decode_;  ///< where requests are sent; where they decode when that is elsewhere
  std::unique_ptr<StepPricer> pricer_, draft_pricer_, prefill_pricer_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<std::uint32_t> scheduled_;  ///< generation of the replica's event in the queue
  std::vector<Replica::Ended> ended_;
  Request next_;
  std::int64_t sent_ = 0, in_flight_ = 0;
  SimTime main_begin_, stop_sending_;
  bool exhausted_ = false;
  int planning_ = -1;  ///< the replica that plans anyway when this event is done
};

Simulation::Simulation(std::shared_ptr<const Deployment> deployment, RequestSource& source,
                       const WorkloadSpec& workload, const ServingOptions& options, Observer* observer)
    : source_(source),
      workload_(workload),
      options_(options),
      collector_(options.objectives, observer),
      think_(Random(options.seed).fork(1001)),
      front_(options.router),
      decode_(options.router),
      stop_sending_(std::numeric_limits<std::int64_t>::max()) {
  const PricerFactory make = options.pricer ? options.pricer : make_model_pricer;
  pricer_ = make(deployment);
  if (options.speculation.active() && options.speculation.draft) draft_pricer_ = make(options.speculation.draft);
  if (options.disaggregation) {
    prefill_pricer_ = make(options.disaggregation->prefill);
    add_replicas(options.disaggregation->prefill, options.disaggregation->prefill_replicas, *prefill_pricer_, front_,
                 true);
  }
  add_replicas(deployment, options.replicas, *pricer_, options.disaggregation ? decode_ : front_, false);
  scheduled_.assign(replicas_.size(), 0);
}

void Simulation::add_replicas(const std::shared_ptr<const Deployment>& deployment, int count, StepPricer& pricer,
                              Pool& pool, bool prefill_only) {
  ReplicaOptions each;
  each.policy = queue_policy(options_.policy);
  each.max_steps_per_event = std::max<std::int64_t>(1, options_.max_steps_per_event);
  each.prefill_only = prefill_only;
  if (!prefill_only) each.speculation = options_.speculation;
  if (options_.disaggregation) {
    const NodeSpec& node = deployment->gpu.node;
    each.transfer_bandwidth = options_.disaggregation->bandwidth;
    if (each.transfer_bandwidth <= BytesPerSecond(0)) each.transfer_bandwidth = node.nic_bandwidth;
    if (each.transfer_bandwidth <= BytesPerSecond(0)) each.transfer_bandwidth = node.pcie_bandwidth;
    each.transfer_latency = options_.disaggregation->latency;
  }
  for (int i = 0; i < std::max(1, count); ++i) {
    each.index = static_cast<int>(replicas_.size());
    each.seed = options_.seed + 0x9e3779b97f4a7c15U * (static_cast<std::uint64_t>(each.index) + 1);
    replicas_.push_back(
        std::make_unique<Replica>(deployment, each, pricer, draft_pricer_.get(), requests_, collector_));
    pool.add(*replicas_.back());
  }
}

/// A closed loop starts with one request a user, warm-up first; otherwise the source says when.
void Simulation::begin() {
  if (closed()) {
    const std::int64_t users = std::max(1, workload_.arrivals.concurrency);
    const bool warming = sent_ < workload_.warmup_requests;
    const std::int64_t burst = warming ? std::min(users, workload_.warmup_requests) : users;
    for (std::int64_t i = 0; i < burst; ++i) send_next(-1, main_begin_);
  } else if (source_.next(next_)) {
    events_.push(SimTime::of(next_.arrival), Kind::kArrival);
  }
}

ServingMetrics Simulation::run() {
  begin();
  while (!events_.empty()) {
    const EventQueue::Event event = events_.pop();
    switch (event.kind) {
      case Kind::kArrival:
        arrive(event.at);
        break;
      case Kind::kUser:
        send_next(event.index, event.at);
        break;
      case Kind::kTransfer:
        transferred(event.index, event.at);
        break;
      case Kind::kTimeout:
        give_up(event.index, event.generation, event.at);
        break;
      case Kind::kReplica:
        if (at(event.index).generation() == event.generation) run_replica(event.index, event.at);
        break;
    }
  }
  SIM_CHECK(requests_.live() == 0, "every request has ended");
  for (const auto& replica : replicas_) {
    SIM_CHECK(replica->pool().private_bytes() == 0 && replica->pool().pinned_bytes() == 0, "all cache was given back");
  }
  return collector_.finish();
}

void Simulation::arrive(SimTime now) {
  send(next_, now);
  if (source_.next(next_)) events_.push(SimTime::of(next_.arrival), Kind::kArrival);
}

void Simulation::send_next(int session, SimTime now) {
  if (exhausted_ || now >= stop_sending_) return;
  if (sent_ == workload_.warmup_requests && in_flight_ > 0 && !collector_.begun()) return;  // warm-up still ends
  if (!(session < 0 ? source_.next(next_) : source_.next_after(session, next_))) {
    exhausted_ = true;
    return;
  }
  send(next_, now);
}

void Simulation::send(const Request& request, SimTime now) {
  const Slot slot = requests_.add(request);
  LiveRequest& live = requests_[slot];
  live.arrival = now;
  live.prompt = live.target = std::max(1, live.prompt);
  live.output = std::max(1, live.output);
  live.counted = sent_++ >= workload_.warmup_requests;
  live.priority = request.priority;
  if (live.counted && !collector_.begun()) {
    collector_.begin(now);
    if (closed() && workload_.duration) stop_sending_ = now + SimTime::of(*workload_.duration);
  }
  if (!front_.can_serve(live) || (decode_.replicas() > 0 && !decode_.can_serve(live))) {
    if (live.counted) collector_.failed();
    return refuse(slot, now);
  }
  Replica& replica = front_.pick(request);
  if (options_.max_queue > 0 && replica.queued() >= static_cast<std::size_t>(options_.max_queue)) {
    if (live.counted) collector_.rejected();
    return refuse(slot, now);
  }
  ++in_flight_;
  if (!workload_.patience.endless()) watch(slot, now);
  replica.submit(slot, now);
  if (replica.index() != planning_) schedule(replica.index());
}

void Simulation::refuse(Slot slot, SimTime now) {
  const int session = requests_[slot].session;
  requests_.remove(slot);
  if (closed()) events_.push(now + SimTime::of(kRefusal), Kind::kUser, session);
}

void Simulation::watch(Slot slot, SimTime now) {
  const auto id = static_cast<std::uint32_t>(requests_[slot].id);
  for (const std::optional<Seconds>& limit : {workload_.patience.first_token, workload_.patience.total}) {
    if (limit) events_.push(now + SimTime::of(*limit), Kind::kTimeout, slot, id);
  }
}

/// Whether the client has given up by now.
bool Simulation::late(const LiveRequest& r, SimTime now) const {
  const auto passed = [&](const std::optional<Seconds>& limit) {
    return limit && now >= r.arrival + SimTime::of(*limit);
  };
  if (passed(workload_.patience.total)) return true;
  const bool answered = r.first_token > SimTime(0) && r.first_token <= now && !r.remote;
  return passed(workload_.patience.first_token) && !answered;
}

/// A slot may have passed on to another request since.
void Simulation::give_up(Slot slot, std::uint32_t id, SimTime now) {
  const LiveRequest& r = requests_[slot];
  if (r.phase == Phase::kEnded || static_cast<std::uint32_t>(r.id) != id || r.cancelled || !late(r, now)) return;
  const int session = r.session, index = r.replica;
  if (at(index).cancel(slot, now)) {
    count_ended(r, {slot, now, false});
    if (leave(slot, now, now)) return;
  }
  schedule(index);
  if (closed()) user_goes_on(session, now, now);
}

void Simulation::schedule(int index) {
  const auto i = static_cast<std::size_t>(index);
  const Replica& replica = at(index);
  if (replica.generation() == scheduled_[i] || !replica.pending()) return;
  scheduled_[i] = replica.generation();
  events_.push(replica.due(), Kind::kReplica, index, replica.generation());
}

/// What ends with a run makes users send again, and a request sent now is seen by the plan of the next run.
void Simulation::run_replica(int index, SimTime now) {
  Replica& replica = at(index);
  planning_ = index;
  if (replica.busy()) {
    ended_.clear();
    replica.end_run(ended_);
    for (const Replica::Ended& e : ended_) e.handed_over ? hand_over(e.slot, now) : finish(e, now);
  }
  planning_ = -1;
  replica.start_run(now);
  for (const Replica::Landing& f : replica.take_fetches()) events_.push(f.at, Kind::kTransfer, f.slot);
  schedule(index);
}

/// The decoding replica is chosen when the prompt is done.
void Simulation::hand_over(Slot slot, SimTime now) {
  if (requests_[slot].cancelled) {
    requests_[slot].remote = true;
    count_ended(requests_[slot], {slot, now, true});
    (void)leave(slot, now, now);
    return;
  }
  Request request;
  const LiveRequest& r = requests_[slot];
  request.id = r.id;
  request.session = r.session;
  if (const PrefixBlocks* prefix = requests_.prefix(slot)) request.prefix_blocks = prefix->hashes;
  Replica& replica = decode_.pick(request);
  replica.submit_prefilled(slot, now);
  schedule(replica.index());
}

void Simulation::transferred(Slot slot, SimTime now) {
  const int source = requests_[slot].source;
  at(source).release_held(slot, now);
  schedule(source);
}

void Simulation::count_ended(const LiveRequest& r, const Replica::Ended& ended) {
  if (!r.counted) return;
  collector_.replied(ended.delivered);
  if (r.cancelled) return collector_.cancelled(r.produced);
  collector_.request({.id = r.id,
                      .arrival = r.arrival.seconds(),
                      .queue = (r.scheduled - r.arrival).seconds(),
                      .ttft = (r.first_token - r.arrival).seconds(),
                      .e2el = (ended.delivered - r.arrival).seconds(),
                      .prompt_tokens = r.prompt,
                      .output_tokens = r.output,
                      .cached_tokens = r.cached,
                      .preemptions = r.preemptions,
                      .replica = r.replica});
}

/// When the client gave up on tokens that a lagging front end brought too late.
std::optional<SimTime> Simulation::gave_up_at(const LiveRequest& r, SimTime delivered) const {
  const Patience& patience = workload_.patience;
  if (patience.first_token && r.first_token > r.arrival + SimTime::of(*patience.first_token))
    return r.arrival + SimTime::of(*patience.first_token);
  if (patience.total && delivered > r.arrival + SimTime::of(*patience.total))
    return r.arrival + SimTime::of(*patience.total);
  return std::nullopt;
}

/// A request that ended gives back its slot, and the cache that a prefill replica may still hold for it. True when it
/// was the last of the warm-up: then all users begin anew.
bool Simulation::leave(Slot slot, SimTime now, SimTime delivered) {
  const LiveRequest& r = requests_[slot];
  if (r.remote) {
    const int source = r.source;
    at(source).release_held(slot, now);
    schedule(source);
  }
  requests_.remove(slot);
  --in_flight_;
  if (!closed() || in_flight_ > 0 || sent_ != workload_.warmup_requests || collector_.begun()) return false;
  main_begin_ = std::max(now, delivered);
  for (int i = 0; i < std::max(1, workload_.arrivals.concurrency); ++i) events_.push(main_begin_, Kind::kUser, -1);
  return true;
}

void Simulation::finish(const Replica::Ended& ended, SimTime now) {
  LiveRequest& r = requests_[ended.slot];
  const bool gone = r.cancelled;  // its user went on when it gave up
  SimTime goes_on = ended.delivered;
  if (!gone && !workload_.patience.endless()) {
    if (const auto at = gave_up_at(r, ended.delivered)) r.cancelled = true, goes_on = *at;
  }
  count_ended(r, ended);
  const int session = r.session;
  if (!leave(ended.slot, now, ended.delivered) && closed() && !gone) user_goes_on(session, now, goes_on);
}

void Simulation::user_goes_on(int session, SimTime now, SimTime from) {
  const Seconds pause = workload_.arrivals.think_time;
  if (pause > Seconds(0)) from += SimTime::of(Seconds(think_.exponential(pause.base())));
  if (from <= now) {
    send_next(session, now);
  } else {
    events_.push(from, Kind::kUser, session);
  }
}

}  // namespace

ServingMetrics simulate(std::shared_ptr<const Deployment> deployment, RequestSource& source,
                        const WorkloadSpec& workload, const ServingOptions& options, Observer* observer) {
  return Simulation(std::move(deployment), source, workload, options, observer).run();
}

ServingMetrics simulate(std::shared_ptr<const Deployment> deployment, const WorkloadSpec& workload,
                        const ServingOptions& options, Observer* observer) {
  const std::unique_ptr<RequestSource> source = make_source(workload, options.seed);
  return simulate(std::move(deployment), *source, workload, options, observer);
}

}  // namespace roofcast
