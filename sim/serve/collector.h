#pragma once
// Collects what clients see and forwards it to an observer.

#include <algorithm>
#include <optional>
#include <variant>
#include <vector>

#include "sim/serve/observer.h"
#include "sim/serve/sim_time.h"

namespace roofcast {

class Collector {
 public:
  Collector(const Objectives& objectives, Observer* observer) : objectives_(objectives), observer_(observer) {}

  void limit_clients(const std::vector<Objectives>& objectives) { client_objectives_ = objectives; }
  void begin(SimTime first_send) {
    if (!begun_) put(Begun{first_send});
    begun_ = true;
  }
  bool begun() const { return begun_; }
  /// A counted request was sent. It ends in exactly one of request(), failed(), lost(), rejected(), cancelled().
  void sent() { put(Sent{}); }
  void gap(SimTime gap, double weight) { put(Gap{gap, weight}); }
  void request(const RequestRecord& record) { put(record); }
  void failed(int client, TooLong why = TooLong::kNot) { put(Failed{client, why}); }
  void lost(int client) { ++metrics_.lost, failed(client); }
  void rejected(int client, SimTime arrival) { put(Rejected{client, arrival}); }
  /// The client gave up at `end` after receiving `tokens` tokens. `waited` is empty if the request never ran.
  void cancelled(int client, int tokens, SimTime arrival, std::optional<Seconds> waited, SimTime end) {
    put(Cancelled{client, tokens, arrival, waited, end});
  }
  void replied(SimTime at) { put(Replied{at}); }
  void step(const StepRecord& record) { put(record); }
  /// Work of all GPUs of a replica during one run.
  struct Work {
    double busy_seconds = 0, flops = 0, bytes = 0;
    double front_end_seconds = 0;  ///< front-end time for the output tokens
    double kv_held = 0, kv_filled = 0;
    double computed_tokens = 0, padding_tokens = 0;

    Work operator*(double share) const;
    Work& operator+=(const Work& other);
  };
  /// Counts the part of a run that lies within the measured time: from the sending of the first counted request to the
  /// end of the last one. `prefill`: the replica only prefills.
  void work(SimTime start, SimTime end, const Work& whole, bool prefill) { put(Worked{start, end, whole, prefill}); }
  void transfer(const TransferRecord& record) {
    if (observer_ != nullptr) observer_->on_transfer(record);
  }
  void fleet(const FleetRecord& record) {
    if (observer_ != nullptr) observer_->on_fleet(record);
  }
  SimTime begin_time() const { return begin_; }
  SimTime end_time() const { return std::max(begin_, end_); }
  ServingMetrics& metrics() { return metrics_; }

  // When several collectors run in parallel, each records its calls, and one collector replays them in order.
  struct Begun {
    SimTime at;
  };
  struct Sent {};
  struct Gap {
    SimTime gap;
    double weight;
  };
  struct Failed {
    int client;
    TooLong why = TooLong::kNot;
  };
  struct Rejected {
    int client;
    SimTime arrival;
  };
  struct Cancelled {
    int client, tokens;
    SimTime arrival;
    std::optional<Seconds> waited;
    SimTime end;
  };
  struct Replied {
    SimTime at;
  };
  struct Worked {
    SimTime start, end;
    Work whole;
    bool prefill;
  };
  /// Integer counts that replicas add to metrics() directly.
  struct Counts {
    std::int64_t preemptions;
    double drafted_tokens, accepted_tokens, loaded_tokens, loaded_bytes, stored_bytes;
  };
  using Call =
      std::variant<Begun, Sent, Gap, RequestRecord, Failed, Rejected, Cancelled, Replied, StepRecord, Worked, Counts>;
  void keep(std::vector<Call>* calls) { kept_ = calls; }
  void keep_counts();  ///< records the counts since the last call, where calls are recorded
  void take(const Call& call) {
    std::visit([this](const auto& what) { on(what); }, call);
  }

  ServingMetrics finish();
  /// The same for open arrivals, with the verdict of LoadWatch.
  ServingMetrics finish(double burstiness, double slack);

 private:
  template <class What>
  void put(const What& what) {
    kept_ != nullptr ? static_cast<void>(kept_->push_back(what)) : on(what);
  }
  void on(const Begun& begun) {
    if (!begun_) begin_ = begun.at, begun_ = true;
  }
  void on(const Sent&) { ++open_; }
  void on(const Gap& g) {
    if (begun_ && g.weight > 0) metrics_.itl_ms.add(g.gap.milliseconds(), g.weight);
  }
  void on(const RequestRecord& record);
  void on(const Failed& failed);
  void on(const Rejected& rejected) {
    ++metrics_.rejected, on(Failed{rejected.client});
    watch_.dropped((rejected.arrival - begin_).seconds());
  }
  void on(const Cancelled& cancelled);
  void on(const Replied& replied);
  void on(const StepRecord& record);
  void on(const Worked& worked);
  void on(const Counts& counts);
  void add(const Work& work, bool prefill);
  void add_later();

  Objectives objectives_;
  std::vector<Objectives> client_objectives_;  ///< per kind of client; empty: none has its own
  Observer* observer_;
  std::vector<Call>* kept_ = nullptr;
  ServingMetrics metrics_;
  SimTime begin_, end_;
  bool begun_ = false;
  std::int64_t open_ = 0;  ///< counted requests in flight
  LoadWatch watch_;
  Work later_[2];  ///< work after the last counted request ended, by `prefill`; counts if another is served
  bool later_any_ = false;
};

}  // namespace roofcast
