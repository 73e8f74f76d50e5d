#include "sim/serve/independent_replicas.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "sim/serve/simulation_run.h"

namespace roofcast {
namespace {

using Kind = EventQueue::Kind;

constexpr std::size_t kDealtAtATime = 4096;  ///< requests per batch: keeps the cores busy with short recordings

/// Requests assigned to the replicas of a lane.
class DealtSource final : public RequestSource {
 public:
  explicit DealtSource(Lane& lane) : lane_(lane) {}
  void add(const Request& request, std::int64_t number, int replica) { dealt_.push_back({request, number, replica}); }
  bool next(Request& request) override {
    if (dealt_.empty()) return false;
    request = std::move(dealt_.front().request);
    lane_.number = dealt_.front().number;
    lane_.replica = dealt_.front().replica;
    dealt_.pop_front();
    return true;
  }

 private:
  struct Dealt {
    Request request;
    std::int64_t number;
    int replica;
  };
  Lane& lane_;
  std::deque<Dealt> dealt_;
};

/// A lane, the recording that it writes, and the previous recording, which is merged.
struct Player {
  Player(const std::shared_ptr<const Deployment>& deployment, const WorkloadSpec& workload,
         const ServingOptions& options, int first, int replicas)
      : pricer(make_pricer(options, deployment)),
        draft_pricer(options.speculation.active() && options.speculation.draft
                         ? make_pricer(options, options.speculation.draft)
                         : nullptr),
        lane{.first = first,
             .replicas = replicas,
             .pricer = pricer.get(),
             .draft_pricer = draft_pricer.get(),
             .tape = &written},
        source(lane),
        simulation(deployment, source, workload, options, nullptr, &lane) {}
  Player(const Player&) = delete;

  /// Swaps the two recordings.
  void turn() {
    SIM_CHECK(next == read.events.size(), "all simulated events are merged in order");
    std::swap(written, read);
    written.events.clear(), written.calls.clear(), written.pushes.clear(), written.left.clear();
    at = ReplicaTape::Event{};
    next = 0;
  }

  static std::unique_ptr<StepPricer> make_pricer(const ServingOptions& options,
                                                 const std::shared_ptr<const Deployment>& deployment) {
    return options.pricer ? options.pricer(deployment) : make_model_pricer(deployment);
  }

  std::unique_ptr<StepPricer> pricer, draft_pricer;
  ReplicaTape written, read;
  Lane lane;
  DealtSource source;
  Simulation simulation;
  ReplicaTape::Event at;  ///< position up to which it was merged
  std::size_t next = 0;   ///< index of the next event
};

/// The slots that requests would have in one RequestTable for all replicas.
class Slots {
 public:
  void enter(std::int64_t id) {
    Slot slot = static_cast<Slot>(made_);
    if (free_.empty()) {
      ++made_;
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    SIM_CHECK(taken_.emplace(id, slot).second, "a request comes once");
  }
  void leave(std::int64_t id) {
    const auto taken = taken_.find(id);
    free_.push_back(taken->second);
    taken_.erase(taken);
  }
  Slot of(std::int64_t id) const { return taken_.at(id); }
  bool empty() const { return taken_.empty(); }

 private:
  std::size_t made_ = 0;
  std::vector<Slot> free_;
  std::unordered_map<std::int64_t, Slot> taken_;
};

struct ViewOfNumber final : ReplicaView {
  explicit ViewOfNumber(int n) : number(n) {}
  int replicas() const override { return number; }
  int outstanding(int) const override { return unseen(); }
  std::int64_t outstanding_tokens(int) const override { return unseen(); }
  std::int64_t cached_blocks(int, const Request&) const override { return unseen(); }
  static int unseen() {
    SIM_CHECK(false, "a router that ignores the state of replicas");
    return 0;
  }
  int number;
};

class IndependentReplicas {
 public:
  IndependentReplicas(const std::shared_ptr<const Deployment>& deployment, RequestSource& source,
                      const WorkloadSpec& workload, const ServingOptions& options, Observer* observer)
      : source_(source),
        workload_(workload),
        cores_(options.cores),
        router_(make_router(options.router)),
        view_(options.replicas),
        collector_(options.objectives, observer),
        observer_(observer) {
    collector_.metrics().clients.resize(workload.clients.size());
    collector_.limit_clients(options.client_objectives);
    const int lanes = std::min(options.cores.count, options.replicas);
    for (int i = 0; i < lanes; ++i) {
      const auto begin = [&](int lane) { return static_cast<int>(std::int64_t{options.replicas} * lane / lanes); };
      players_.push_back(std::make_unique<Player>(deployment, workload, options, begin(i), begin(i + 1) - begin(i)));
      lane_of_.resize(static_cast<std::size_t>(begin(i + 1)), static_cast<std::size_t>(i));
    }
  }

  ServingMetrics run() {
    more_ = source_.next(next_);
    if (more_) events_.push(SimTime::of(next_.arrival), Kind::kArrival);
    deal();
    bool first = true;
    std::optional<SimTime> until;  // events before this time are merged
    for (bool last = false; !last && !enough_; first = false) {
      last = !more_;
      const std::optional<SimTime> limit = more_ ? std::optional(SimTime::of(next_.arrival)) : std::nullopt;
      const auto task = [&](std::size_t i) {
        i == 0 ? merge_events(until) : players_[i - 1]->simulation.run_lane(limit);
      };
      if (first && last) {  // too few requests to run in parallel
        for (std::size_t i = 1; i <= players_.size(); ++i) task(i);
      } else {
        cores_.run(players_.size() + 1, task);
      }
      if (enough_) break;
      for (const auto& player : players_) player->turn();
      arrivals_.insert(arrivals_.end(), dealt_.begin(),
                       dealt_.end());  // after requests that arrive at the same time as the next one
      dealt_.clear();
      until = limit;
      if (!last) deal();
    }
    if (!enough_) merge_events(until);
    if (enough_) return collector_.finish();
    for (const auto& player : players_) player->simulation.require_end();
    return Simulation::finish(collector_, workload_);
  }

 private:
  void deal() {
    for (std::size_t n = 0; more_ && n < kDealtAtATime; ++n) {
      SIM_CHECK(next_.prefix_blocks.empty(), "requests of independent replicas share no prefixes");
      // Every replica refuses a request that can never run.
      const int to = players_.front()->simulation.can_serve(next_) ? router_->pick(next_, view_) : 0;
      const std::size_t lane = lane_of_[static_cast<std::size_t>(to)];
      players_[lane]->source.add(next_, sent_++, to);
      more_ = source_.next(next_);
      dealt_.push_back({lane, more_ ? std::optional(SimTime::of(next_.arrival)) : std::nullopt});
    }
  }

  /// Merges events as if from one queue for all replicas: at equal times, in the order in which they were pushed.
  void merge_events(std::optional<SimTime> until) {
    while (!events_.empty() && (!until || events_.top().at < *until) && !enough_) {
      if (arrivals_.empty() && events_.top().kind == Kind::kArrival) return;  // nothing has been simulated yet
      const EventQueue::Event event = events_.pop();
      if (!slots_.empty() || waiting_) event.at.require();
      if (event.kind != Kind::kArrival) {
        take(static_cast<std::size_t>(event.index), event);
        continue;
      }
      const Arrival arrival = arrivals_.front();
      arrivals_.pop_front();
      take(arrival.lane, event);
      waiting_ = arrival.next.has_value();
      if (waiting_) events_.push(*arrival.next, Kind::kArrival);
    }
  }

  void take(std::size_t lane, const EventQueue::Event& event) {
    Player& player = *players_[lane];
    const ReplicaTape& tape = player.read;
    SIM_CHECK(player.next < tape.events.size(), "a lane has simulated its next event");
    const ReplicaTape::Event& played = tape.events[player.next++];
    SIM_CHECK(played.at == event.at && played.kind == event.kind, "independent replicas keep their order");
    const ReplicaTape::Event from = std::exchange(player.at, played);
    if (played.entered >= 0) slots_.enter(played.entered);
    std::size_t call = from.calls;
    const auto take_calls = [&](std::size_t end) {
      for (; call < end; ++call) collector_.take(tape.calls[call]);
    };
    left_.assign(tape.left.begin() + static_cast<std::ptrdiff_t>(from.left),
                 tape.left.begin() + static_cast<std::ptrdiff_t>(played.left));
    sort_by_slot();
    if (!left_.empty()) take_calls(tape.left[from.left].begin);
    for (const ReplicaTape::Left& left : left_) {
      for (std::size_t i = left.begin; i < left.end; ++i) collector_.take(tape.calls[i]);
      if (left.begin < left.end) enough_ = observer_ != nullptr && observer_->enough();
      slots_.leave(left.id);
    }
    if (!left_.empty()) call = tape.left[played.left - 1].end;
    take_calls(played.calls);
    for (std::size_t i = from.pushes; i < played.pushes; ++i)
      events_.push(tape.pushes[i].at, tape.pushes[i].kind, static_cast<std::int32_t>(lane));
  }

  /// Requests that end together are ordered by slot (StepHeap).
  void sort_by_slot() {
    for (auto first = left_.begin(); first != left_.end();) {
      const auto other = [&](const ReplicaTape::Left& l) { return l.together != first->together; };
      const auto last = first->together == 0 ? first + 1 : std::find_if(first, left_.end(), other);
      std::sort(first, last, [&](const auto& a, const auto& b) { return slots_.of(a.id) < slots_.of(b.id); });
      first = last;
    }
  }

  struct Arrival {
    std::size_t lane;
    std::optional<SimTime> next;  ///< time of the next one
  };

  RequestSource& source_;
  const WorkloadSpec& workload_;
  const Cores& cores_;
  std::unique_ptr<Router> router_;
  ViewOfNumber view_;
  Collector collector_;
  Observer* observer_;
  std::vector<std::unique_ptr<Player>> players_;  ///< by lane
  std::vector<std::size_t> lane_of_;              ///< by replica
  Request next_;
  bool more_ = false;
  std::int64_t sent_ = 0;
  std::vector<Arrival> dealt_;    ///< being simulated
  std::deque<Arrival> arrivals_;  ///< simulated
  EventQueue events_;
  Slots slots_;
  std::vector<ReplicaTape::Left> left_;
  bool waiting_ = true;  ///< waiting for the next arrival
  bool enough_ = false;
};

}  // namespace

bool replicas_are_independent(const Deployment& deployment, const WorkloadSpec& workload,
                              const ServingOptions& options) {
  using Process = ArrivalSpec::Process;
  if (options.cores.count < 2 || options.replicas < 2) return false;
  if (options.disaggregation || options.fleet.active() || make_router(options.router)->uses_state()) return false;
  if (workload.arrivals.process == Process::kClosedLoop || workload.arrivals.process == Process::kAllAtOnce)
    return false;
  if (deployment.adapters || !deployment.engine.kv_tiers.empty()) return false;
  if (make_scheduler(deployment.engine.scheduler)->pads()) return false;
  const auto alone = [](const WorkloadSpec& w) { return !w.rate_limit && w.samples.generated <= 1; };
  if (!alone(workload) || !std::all_of(workload.clients.begin(), workload.clients.end(), alone)) return false;
  return !brings_prefixes(workload);
}

ServingMetrics simulate_independent_replicas(std::shared_ptr<const Deployment> deployment, RequestSource& source,
                                             const WorkloadSpec& workload, const ServingOptions& options,
                                             Observer* observer) {
  return IndependentReplicas(deployment, source, workload, options, observer).run();
}

}  // namespace roofcast
