#include "sim/serve/simulation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/watch.h"
#include "hw/outer_link.h"
#include "sim/serve/adapter_source.h"
#include "sim/serve/independent_replicas.h"
#include "sim/serve/simulation_run.h"

namespace roofcast {
namespace {

using Kind = EventQueue::Kind;

/// How long a client waits after a refused request before it continues.
constexpr Seconds kRefusal = kMillisecond;
/// A load that varies by itself is overloaded only if more than this fraction of its requests is unfinished at the end.
constexpr double kBurst = 0.05;

/// When a held turn arrived; for other requests, `sent`. May be called once per request.
SimTime came(std::optional<TurnOrder>& turns, const LiveRequest& r, SimTime sent) {
  return turns ? turns->came(r.id, sent) : sent;
}

/// Whether arrivals are open and some requests are turns of sessions. Traces keep the times of their file.
bool has_open_sessions(const WorkloadSpec& workload) {
  const auto has = [](const WorkloadSpec& w) { return w.turns > 1 && w.arrivals.rate > PerSecond(0); };
  return workload.clients.empty() ? has(workload) : std::any_of(workload.clients.begin(), workload.clients.end(), has);
}

}  // namespace

Simulation::Simulation(std::shared_ptr<const Deployment> deployment, RequestSource& source,
                       const WorkloadSpec& workload, const ServingOptions& options, Observer* observer,
                       const Lane* lane)
    : source_(source),
      workload_(workload),
      options_(options),
      observer_(observer),
      lane_(lane),
      collector_(options.objectives, observer),
      think_(Random(options.seed).fork(1001)),
      sends_(Random(options.seed).fork(1002)),
      front_(options.router),
      decode_(options.router),
      stop_sending_(std::numeric_limits<std::int64_t>::max()) {
  if (has_open_sessions(workload)) turns_.emplace();
  collector_.metrics().clients.resize(workload.clients.size());
  collector_.limit_clients(options.client_objectives);
  const auto limit = [&](const WorkloadSpec& w) {
    limits_.push_back(w.rate_limit ? std::optional<TokenBuckets>(*w.rate_limit) : std::nullopt);
  };
  if (workload.rate_limit) limit(workload);
  for (const WorkloadSpec& client : workload.clients) limit(client);
  if (lane != nullptr) {
    collector_.keep(&lane->tape->calls);
    draft_pricer_ = lane->draft_pricer;
    exhausted_ = true;
    add_replicas(deployment, lane->replicas, *lane->pricer, front_, false);
    scheduled_.assign(replicas_.size(), 0);
    return;
  }
  const PricerFactory make = options.pricer ? options.pricer : make_model_pricer;
  pricer_ = make(deployment);
  if (options.speculation.active() && options.speculation.draft) {
    own_draft_pricer_ = make(options.speculation.draft);
    draft_pricer_ = own_draft_pricer_.get();
  }
  if (options.disaggregation) {
    prefill_pricer_ = make(options.disaggregation->prefill);
    add_replicas(options.disaggregation->prefill, most_replicas(options, true), *prefill_pricer_, front_, true);
    prefill_replicas_ = static_cast<int>(replicas_.size());
  }
  add_replicas(deployment, most_replicas(options, false), *pricer_, options.disaggregation ? decode_ : front_, false);
  scheduled_.assign(replicas_.size(), 0);
  if (options.fleet.active()) begin_fleet();
}

void Simulation::add_replicas(const std::shared_ptr<const Deployment>& deployment, int count, StepPricer& pricer,
                              Pool& pool, bool prefill_only) {
  ReplicaOptions each;
  each.policy = queue_policy(options_.policy);
  each.max_steps_per_event = std::max<std::int64_t>(1, options_.max_steps_per_event);
  each.prefill_only = prefill_only;
  each.prompt_text = workload_.prompt_text;
  each.tiers = shared_tiers(*deployment);
  if (!deployment->media.empty()) {
    each.media.push_back(workload_.encoded);
    if (!workload_.clients.empty()) each.media.clear();
    for (const WorkloadSpec& client : workload_.clients) each.media.push_back(client.encoded);
  }
  if (!prefill_only) each.speculation = options_.speculation;
  if (options_.disaggregation) {
    each.transfer_bandwidth = transfer_bandwidth(*deployment, options_);
    each.transfer_latency = options_.disaggregation->latency;
    each.early = early_transfer(*options_.disaggregation->prefill);
  }
  for (int i = 0; i < std::max(1, count); ++i) {
    each.index = first_replica() + static_cast<int>(replicas_.size());
    each.seed = options_.seed + 0x9e3779b97f4a7c15U * (static_cast<std::uint64_t>(each.index) + 1);
    replicas_.push_back(std::make_unique<Replica>(deployment, each, pricer, draft_pricer_, requests_, collector_));
    pool.add(*replicas_.back());
  }
}

/// A closed loop starts with one request per user, warm-up first. An open load starts with its source's first arrival.
void Simulation::begin() {
  if (closed()) {
    const std::int64_t users = std::max(1, workload_.arrivals.concurrency);
    const bool warming = workload_.pause_after_warmup && sent_ < workload_.warmup_requests;
    const std::int64_t burst = warming ? std::min(users, workload_.warmup_requests) : users;
    for (std::int64_t i = 0; i < burst; ++i) begin_user(main_begin_);
  } else if (source_.next(next_)) {
    exhausted_ = false;
    events_.push(SimTime::of(next_.arrival), Kind::kArrival);
  }
}

void Simulation::begin_user(SimTime now) {
  const SimTime delay = send_delay();
  if (delay > SimTime()) return events_.push(now + delay, Kind::kUser, -1, users_);
  send_next(-1, now);
}

SimTime Simulation::send_delay() {
  const ArrivalSpec& arrivals = workload_.arrivals;
  return SimTime::of(draw_pause(arrivals.send_delay, arrivals.send_delays, sends_));
}

ServingMetrics Simulation::run() {
  begin();
  while (!events_.empty() && !enough_) {
    const EventQueue::Event event = events_.pop();
    // Timeouts and repairs may lie after the end of the run.
    if (requests_.live() > 0 || !exhausted_) event.at.require();
    handle(event);
  }
  if (enough_) return collector_.finish();
  require_end();
  if (fleet_) account_fleet();
  return finish(collector_, workload_);
}

void Simulation::handle(const EventQueue::Event& event) {
  switch (event.kind) {
    case Kind::kArrival:
      return arrive(event.at);
    case Kind::kUser:
      if (event.generation == users_) send_next(event.index, event.at);
      return;
    case Kind::kTransfer:
      return transferred(event.index, event.generation, event.at);
    case Kind::kTimeout:
      return give_up(event.index, event.generation, event.at);
    case Kind::kFleet:
      return fleet_event(static_cast<FleetEvent>(event.generation), event.index, event.at);
    case Kind::kTurn:
      return turn_ended(event.index, event.at);
    case Kind::kReplica:
      if (at(event.index).generation() == event.generation) run_replica(event.index, event.at);
      return;
  }
}

void Simulation::require_end() const {
  SIM_CHECK(requests_.live() == 0, "every request has ended");
  for (const auto& replica : replicas_) {
    SIM_CHECK(replica->empty(), "no prompt is left, and all cache was released");
  }
}

ServingMetrics Simulation::finish(Collector& collector, const WorkloadSpec& workload) {
  using Process = ArrivalSpec::Process;
  const ArrivalSpec& arrivals = workload.arrivals;
  if (arrivals.process == Process::kClosedLoop || arrivals.process == Process::kAllAtOnce) return collector.finish();
  const bool even = arrivals.process != Process::kTrace && arrivals.profile.empty() && workload.clients.empty();
  return collector.finish(arrivals.process == Process::kGamma ? arrivals.cv : 1.0, even ? 0.0 : kBurst);
}

/// The next request may have come to the source since the last one was taken.
void Simulation::run_lane(std::optional<SimTime> limit) {
  if (exhausted_) begin();
  while (!events_.empty() && (!limit || events_.top().at < *limit)) {
    const EventQueue::Event event = events_.pop();
    handle(event);
    collector_.keep_counts();
    lane_->tape->end_event(event);
  }
}

bool Simulation::can_serve(const Request& request) {
  LiveRequest live;
  live.prompt = live.target = std::max(1, request.prompt_tokens);
  live.output = std::max(1, request.output_tokens);
  return front_.can_serve(live);
}

void Simulation::arrive(SimTime now) {
  if (lane_ != nullptr) sent_ = lane_->number;
  send(next_, now);
  exhausted_ = !source_.next(next_);
  if (!exhausted_) events_.push(SimTime::of(next_.arrival), Kind::kArrival);
}

void Simulation::turn_ended(int session, SimTime now) {
  for (const Request& request : turns_->ended(session)) send(request, now);
}

void Simulation::send_next(int session, SimTime now) {
  exhausted_ = exhausted_ || now >= stop_sending_;
  if (exhausted_) return;
  if (in_flight_ > 0 && warmup_ends()) return;
  if (!(session < 0 ? source_.next(next_) : source_.next_after(session, next_))) {
    exhausted_ = true;
    return;
  }
  send(next_, now);
}

void Simulation::send(const Request& request, SimTime now) {
  if (turns_ && !turns_->admits(request)) return;
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
  if (live.counted) collector_.sent();
  if (!within_limit(live, now)) {  // a refusal by a rate limit is no sign of overload
    if (live.counted) ++collector_.metrics().rejected, collector_.failed(live.client);
    return refuse(slot, now);
  }
  const int output = live.output;  // of the first sequence
  for (const int other : request.sibling_outputs) live.output = std::max(live.output, other);
  TooLong too_long = front_.too_long(live);
  if (too_long == TooLong::kNot && prefill_replicas_ > 0) too_long = decode_.too_long(live);
  live.output = output;
  if (too_long != TooLong::kNot) {
    if (live.counted) collector_.failed(live.client, too_long);
    return refuse(slot, now);
  }
  if (front_.replicas() == 0) return wait_for_replica(slot, now);
  Replica& replica = lane_ != nullptr ? at(lane_->replica) : front_.pick(request);
  if (options_.max_queue > 0 && replica.queued() >= static_cast<std::size_t>(options_.max_queue)) {
    const SimTime due = came(turns_, live, now);
    if (live.counted) collector_.rejected(live.client, due);
    return refuse(slot, now);
  }
  ++in_flight_;
  if (!request.sibling_outputs.empty() || request.thinking_tokens > 0) begin_family(slot, request);
  if (!workload_.patience.endless()) watch(slot, now);
  if (lane_ != nullptr) lane_->tape->entered = request.id;
  replica.submit(slot, now);
  if (replica.index() != planning_) schedule(replica.index());
}

void Simulation::refuse(Slot slot, SimTime now) {
  const int session = requests_[slot].session;
  came(turns_, requests_[slot], now);
  requests_.remove(slot);
  if (closed()) events_.push(now + SimTime::of(kRefusal), Kind::kUser, session, users_);
  if (turns_ && session >= 0) events_.push(now + SimTime::of(kRefusal), Kind::kTurn, session);
}

void Simulation::watch(Slot slot, SimTime now) {
  const auto id = static_cast<std::uint32_t>(requests_[slot].id);
  for (const std::optional<Seconds>& limit : {workload_.patience.first_token, workload_.patience.total}) {
    if (!limit) continue;
    events_.push(now + SimTime::of(*limit), Kind::kTimeout, slot, id);
    tell_push(now + SimTime::of(*limit), Kind::kTimeout);
  }
}

/// Whether the client has given up by now.
bool Simulation::late(const LiveRequest& r, SimTime now) const {
  const auto passed = [&](const std::optional<Seconds>& limit) {
    return limit && now >= r.arrival + SimTime::of(*limit);
  };
  if (passed(workload_.patience.total)) return true;
  const bool answered = r.first_token > SimTime(0) && r.first_token <= now && (!r.remote || r.produced > 1);
  return passed(workload_.patience.first_token) && !answered;
}

/// Ignored if the slot now belongs to another request.
void Simulation::give_up(Slot slot, std::uint32_t id, SimTime now) {
  const LiveRequest& r = requests_[slot];
  if (r.phase == Phase::kEnded || static_cast<std::uint32_t>(r.id) != id || r.cancelled || !late(r, now)) return;
  const int session = r.session, index = r.replica;
  const std::size_t call = lane_ != nullptr ? lane_->tape->calls.size() : 0;
  const std::int64_t request = r.id;
  const bool at_gateway = std::erase(gateway_, slot) + std::erase(prefilled_, slot) > 0;
  if (at_gateway) requests_[slot].cancelled = true;
  if (at_gateway || at(index).cancel(slot, now)) {
    count_ended(r, {slot, now, false});
    if (lane_ != nullptr) lane_->tape->left.push_back({request, 0, call, lane_->tape->calls.size()});
    if (leave(slot, now, now)) return;
    if (fleet_ && !at_gateway) static_cast<void>(leaves_service(index, now));  // this may have been its last request
  }
  if (!at_gateway) schedule(index);
  user_goes_on(session, now, now);
}

void Simulation::schedule(int index) {
  const auto i = static_cast<std::size_t>(index - first_replica());
  const Replica& replica = at(index);
  if (replica.generation() == scheduled_[i] || !replica.pending()) return;
  scheduled_[i] = replica.generation();
  const SimTime due = replica.due();
  events_.push(due, Kind::kReplica, index, replica.generation());
  tell_push(due, Kind::kReplica);
}

/// When requests end, their users send the next ones. The scheduler sees these when it plans the next step.
void Simulation::run_replica(int index, SimTime now) {
  Replica& replica = at(index);
  planning_ = index;
  if (replica.busy()) {
    ended_.clear();
    replica.end_run(ended_);
    for (const Replica::Ended& e : ended_) {
      if (e.forks) {
        fork(e.slot, now);
      } else {
        e.handed_over ? hand_over(e.slot, now) : finish(e, now);
      }
    }
  }
  planning_ = -1;
  if (fleet_ && leaves_service(index, now)) return;
  replica.start_run(now);
  for (const Replica::Landing& f : replica.take_fetches())
    events_.push(f.at, Kind::kTransfer, f.slot, requests_[f.slot].epoch);
  schedule(index);
}

/// The part of a request that a router sees when it is sent.
Request Simulation::request_of(Slot slot) {
  Request request;
  const LiveRequest& r = requests_[slot];
  request.id = r.id;
  request.session = r.session;
  request.root_session = r.root_session;
  if (const PrefixBlocks* prefix = requests_.prefix(slot)) {
    request.prefix_blocks = prefix->hashes;
    request.prefix_block_tokens = prefix->block_tokens;
  }
  return request;
}

/// Chooses the decode replica when the prefill has ended.
void Simulation::hand_over(Slot slot, SimTime now) {
  if (requests_[slot].cancelled) {
    count_ended(requests_[slot], {slot, now, true});
    (void)leave(slot, now, now);
    return;
  }
  if (decode_.replicas() == 0) return wait_for_decoder(slot);
  Replica& replica = decode_.pick(request_of(slot));
  replica.submit_prefilled(slot, now);
  schedule(replica.index());
}

/// The epoch tells whether the transfer was cancelled. A failed source no longer holds the cache.
void Simulation::transferred(Slot slot, std::uint32_t epoch, SimTime now) {
  if (requests_[slot].epoch != epoch || !requests_[slot].held) return;
  give_back(slot, now);
}

/// Frees the cache that a prefill worker held. A draining worker that waited only for this can then stop.
void Simulation::give_back(Slot slot, SimTime now) {
  const int source = requests_[slot].source;
  at(source).release_held(slot, now);
  if (fleet_ && !at(source).busy() && stops(source, now)) return;
  schedule(source);
}

const SampleSpec& samples_of(const WorkloadSpec& workload, const LiveRequest& r) {
  return workload.clients.empty() ? workload.samples : workload.clients[r.client].samples;
}

bool Simulation::within_limit(const LiveRequest& r, SimTime now) {
  if (limits_.empty() || !limits_[r.client]) return true;
  return limits_[r.client]->take(now.seconds(), static_cast<double>(r.prompt) + r.output);
}

/// Engines prefill the prompt once and reuse its blocks for the other sequences: vLLM sends these as separate requests
/// (vllm/v1/engine/parallel_sampling.py), SGLang once the prompt is cached (sglang/srt/managers/tokenizer_manager.py,
/// _handle_batch_request).
void Simulation::begin_family(Slot slot, const Request& request) {
  LiveRequest& r = requests_[slot];
  if (free_families_.empty()) {
    free_families_.push_back(static_cast<std::int32_t>(families_.size()));
    families_.emplace_back();
    family_outputs_.emplace_back();
  }
  r.family = free_families_.back();
  free_families_.pop_back();
  const auto i = static_cast<std::size_t>(r.family);
  const SampleSpec& samples = samples_of(workload_, r);
  families_[i] = {
      .open = samples.generated, .returned = samples.returned, .streams = samples.returned == samples.generated};
  families_[i].thinking = request.thinking_tokens;
  family_outputs_[i] = request.sibling_outputs;
  if (request.sibling_outputs.empty()) return;
  r.forks = true;
  PrefixBlocks& blocks = requests_.own_blocks(slot, r.prompt, kPrefixBlock);
  blocks.given = std::max(blocks.given, blocks.begun(r.prompt));
}

void Simulation::fork(Slot slot, SimTime now) {
  LiveRequest& first = requests_[slot];
  first.forks = false;
  SampleFamily& family = families_[static_cast<std::size_t>(first.family)];
  family.scheduled = first.scheduled;
  family.cached = first.cached;
  Replica& replica = at(first.replica);
  for (const int output : std::exchange(family_outputs_[static_cast<std::size_t>(requests_[slot].family)], {})) {
    const Slot sibling = requests_.fork(slot, std::max(1, output));
    ++in_flight_;
    replica.submit_fork(sibling, now);
  }
}

/// Whether other sequences of the same prompt are still running.
bool Simulation::family_goes_on(const LiveRequest& r, const Replica::Ended& ended) {
  SampleFamily& family = families_[static_cast<std::size_t>(r.family)];
  family.tokens += r.output;
  family.longest = std::max(family.longest, r.output);
  family.preemptions += r.preemptions;
  const bool first = family.first_token == SimTime(0) || r.first_token < family.first_token;
  if (first) family.first_token = r.first_token;
  family.delivered = std::max(family.delivered, ended.delivered);
  return --family.open > 0;
}

void Simulation::count_ended(const LiveRequest& r, const Replica::Ended& ended) {
  check_stopped();
  const SimTime due = came(turns_, r, r.arrival);
  if (!r.counted) return;
  if (Watch* watch = current_watch()) ++watch->requests;
  collector_.replied(ended.delivered);
  if (r.cancelled) {
    const std::optional<Seconds> waited = r.started ? std::optional((r.scheduled - due).seconds()) : std::nullopt;
    return collector_.cancelled(r.client, r.produced, due, waited, ended.delivered);
  }
  RequestRecord record{.id = r.id,
                       .arrival = r.arrival.seconds(),
                       .queue = (r.scheduled - r.arrival).seconds(),
                       .ttft = (r.first_token - r.arrival).seconds(),
                       .e2el = (ended.delivered - r.arrival).seconds(),
                       .prompt_tokens = r.prompt,
                       .output_tokens = r.output,
                       .cached_tokens = r.cached,
                       .preemptions = r.preemptions,
                       .replica = r.replica,
                       .client = r.client,
                       .held = (r.arrival - due).seconds()};
  if (r.family >= 0) add_family(record, r);
  collector_.request(record);
  enough_ = observer_ != nullptr && observer_->enough();
}

/// What the client receives from all sequences: the requested number of answers, each of mean length. If they are
/// selected from more (best of n, beam search), they arrive together at the end.
void Simulation::add_family(RequestRecord& record, const LiveRequest& r) {
  const SampleFamily& family = families_[static_cast<std::size_t>(r.family)];
  const double sequences = samples_of(workload_, r).generated;
  free_families_.push_back(r.family);
  record.thinking_tokens = std::min(family.thinking, std::max(0, r.output - 1));
  if (sequences <= 1) return;
  record.queue = (family.scheduled - r.arrival).seconds();
  record.cached_tokens = family.cached;
  record.e2el = (family.delivered - r.arrival).seconds();
  record.ttft = family.streams ? (family.first_token - r.arrival).seconds() : record.e2el;
  record.output_tokens = static_cast<int>(std::lround(family.tokens * family.returned / sequences));
  record.streamed_tokens = family.streams ? family.longest : 1;
  record.preemptions = family.preemptions;
  ServingMetrics& m = collector_.metrics();
  m.sample_tokens += family.tokens;
  m.dropped_sample_tokens += family.tokens - record.output_tokens;
}

/// When the client gave up because a slow front end delivered tokens too late.
std::optional<SimTime> Simulation::gave_up_at(const LiveRequest& r, SimTime delivered) const {
  const Patience& patience = workload_.patience;
  if (patience.first_token && r.first_token > r.arrival + SimTime::of(*patience.first_token))
    return r.arrival + SimTime::of(*patience.first_token);
  if (patience.total && delivered > r.arrival + SimTime::of(*patience.total))
    return r.arrival + SimTime::of(*patience.total);
  return std::nullopt;
}

/// Whether all warm-up requests are sent and the last is not yet answered; until then nothing else is sent.
bool Simulation::warmup_ends() const {
  return closed() && workload_.pause_after_warmup && sent_ == workload_.warmup_requests && !collector_.begun();
}

/// Frees the slot of an ended request, and the cache that a prefill replica may still hold for it. Returns true for the
/// last warm-up request: then all users restart.
bool Simulation::leave(Slot slot, SimTime now, SimTime delivered) {
  fruitless_failures_ = 0;
  if (requests_[slot].held) give_back(slot, now);
  requests_.remove(slot);
  --in_flight_;
  if (!warmup_ends()) return false;
  main_begin_ = std::max({main_begin_, now, delivered});
  if (in_flight_ > 0) return false;
  ++users_;  // pausing users of the warm-up send nothing more
  for (int i = 0; i < std::max(1, workload_.arrivals.concurrency); ++i)
    events_.push(main_begin_ + send_delay(), Kind::kUser, -1, users_);
  return true;
}

void Simulation::finish(const Replica::Ended& ended, SimTime now) {
  LiveRequest& r = requests_[ended.slot];
  if (r.family >= 0 && family_goes_on(r, ended)) {
    (void)leave(ended.slot, now, ended.delivered);
    return;
  }
  const std::size_t call = lane_ != nullptr ? lane_->tape->calls.size() : 0;
  const bool gone = r.cancelled;  // its user continued when it gave up
  SimTime goes_on = ended.delivered;
  if (!gone && !workload_.patience.endless()) {
    if (const auto at = gave_up_at(r, ended.delivered)) r.cancelled = true, goes_on = *at;
  }
  count_ended(r, ended);
  if (lane_ != nullptr) lane_->tape->left.push_back({r.id, ended.together, call, lane_->tape->calls.size()});
  const int session = r.session;
  if (!leave(ended.slot, now, ended.delivered) && !gone) user_goes_on(session, now, goes_on);
}

/// Sends the next request of a closed loop, or the turn of an open load that waited for this answer.
void Simulation::user_goes_on(int session, SimTime now, SimTime from) {
  if (!closed()) {
    if (!turns_ || session < 0) return;
    return from <= now ? turn_ended(session, now) : events_.push(from, Kind::kTurn, session);
  }
  if (warmup_ends()) return;
  from += SimTime::of(draw_pause(workload_.arrivals.think_time, workload_.arrivals.pauses, think_)) + send_delay();
  if (from <= now) {
    send_next(session, now);
  } else {
    events_.push(from, Kind::kUser, session, users_);
  }
}

BytesPerSecond transfer_bandwidth(const Deployment& decode, const Disaggregation& disaggregation, int replicas) {
  const double gpus = std::max(1.0, static_cast<double>(replicas)) * decode.sharding.gpus() +
                      static_cast<double>(disaggregation.prefill_replicas) * disaggregation.prefill->sharding.gpus();
  const auto link = [&](const Deployment& d) {
    if (disaggregation.bandwidth > BytesPerSecond(0)) return disaggregation.bandwidth;
    const NodeSpec& node = d.gpu.node;
    if (node.nic_bandwidth <= BytesPerSecond(0)) return node.pcie_bandwidth;
    return node.nic_bandwidth * (1.0 / spine_of(d.gpu, gpus).narrower);
  };
  const Deployment& prefill = *disaggregation.prefill;
  const Bytes here = decode.memory.layout.sequence_bytes(1024), there = prefill.memory.layout.sequence_bytes(1024);
  if (here <= Bytes(0) || there <= Bytes(0)) return link(decode);
  return std::min(link(decode), link(prefill) * (here / there));
}

int most_replicas(const ServingOptions& options, bool prefill) {
  if (const auto& scaling = options.fleet.scaling(prefill)) return scaling->max;
  if (!prefill) return options.replicas;
  return options.disaggregation ? options.disaggregation->prefill_replicas : 0;
}

BytesPerSecond transfer_bandwidth(const Deployment& decode, const ServingOptions& options) {
  Disaggregation most = *options.disaggregation;
  most.prefill_replicas = most_replicas(options, true);
  return transfer_bandwidth(decode, most, most_replicas(options, false));
}

EarlyTransfer early_transfer(const Deployment& prefill) {
  const EngineSpec& e = prefill.engine;
  constexpr int kWhole = 1 << 30;
  return {.when = e.cache_transfer,
          .chunk = e.chunked_prefill ? e.max_num_batched_tokens : kWhole,
          .layers = prefill.model.layer_count()};
}

ServingMetrics simulate(std::shared_ptr<const Deployment> deployment, RequestSource& source,
                        const WorkloadSpec& workload, const ServingOptions& options, Observer* observer) {
  std::optional<AdapterSource> named;
  if (deployment->adapters) named.emplace(source, *deployment->adapters, options.seed);
  RequestSource& sent = named ? *named : source;
  ServingMetrics metrics = replicas_are_independent(*deployment, workload, options)
                               ? simulate_independent_replicas(std::move(deployment), sent, workload, options, observer)
                               : Simulation(std::move(deployment), sent, workload, options, observer).run();
  if (Watch* watch = current_watch()) ++watch->simulations;
  return metrics;
}

namespace {

/// Throws ConfigError if a start time or a warm-up leaves no request to count. A mix of clients may count none, because
/// the search for its rate lowers the rate until few or no requests arrive.
void check_some_counted(const WorkloadSpec& w) {
  if (!w.clients.empty() || (w.start <= Seconds(0) && w.warmup_requests == 0)) return;
  std::string keys = w.start > Seconds(0) ? "'start'" : "";
  if (w.warmup_requests > 0)
    keys += fmt::format("{}'warmup_requests: {}'", keys.empty() ? "" : " and ", w.warmup_requests);
  const std::string message = "no request is left to count after " + keys;
  throw ConfigError(w.arrivals.trace_file.empty() ? w.location : SourceLocation{w.arrivals.trace_file}, message);
}

}  // namespace

ServingMetrics simulate(std::shared_ptr<const Deployment> deployment, const WorkloadSpec& workload,
                        const ServingOptions& options, Observer* observer) {
  const std::unique_ptr<RequestSource> source = make_source(workload, options.seed);
  ServingMetrics metrics = simulate(std::move(deployment), *source, workload, options, observer);
  if (metrics.completed + metrics.failed == 0) check_some_counted(workload);
  return metrics;
}

}  // namespace roofcast
