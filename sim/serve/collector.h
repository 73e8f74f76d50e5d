#pragma once
// Gathers what clients see, and passes it on to an observer.

#include <optional>

#include "sim/serve/observer.h"
#include "sim/serve/sim_time.h"

namespace roofcast {

class Collector {
 public:
  Collector(const Objectives& objectives, Observer* observer) : objectives_(objectives), observer_(observer) {}

  void limit_clients(const std::vector<Objectives>& objectives) { client_objectives_ = objectives; }
  void begin(SimTime first_send) { begin_ = first_send, begun_ = true; }
  bool begun() const { return begun_; }
  /// A request to be counted was sent. It ends by one of request(), failed(), lost(), rejected(), cancelled().
  void sent();
  void gap(SimTime gap, double weight) {
    if (begun_ && weight > 0) metrics_.itl_ms.add(gap.milliseconds(), weight);
  }
  void request(const RequestRecord& record);
  void failed() { ++metrics_.failed, --open_; }
  void lost() { ++metrics_.lost, failed(); }
  void rejected(SimTime arrival) {
    ++metrics_.rejected, failed();
    watch_.dropped((arrival - begin_).seconds());
  }
  /// Given up by its client at `end`, with so many tokens; `waited` is empty where it never ran.
  void cancelled(int tokens, SimTime arrival, std::optional<Seconds> waited, SimTime end);
  void replied(SimTime at) { end_ = std::max(end_, at); }
  void step(const StepRecord& record);
  /// Work of a replica, all its GPUs together, over a run.
  struct Work {
    double busy_seconds = 0, flops = 0, bytes = 0;
    double front_end_seconds = 0;  ///< of its front end, on the tokens that come out
    double kv_held = 0, kv_filled = 0;
    double computed_tokens = 0, padding_tokens = 0;

    Work operator*(double share) const;
    Work& operator+=(const Work& other);
  };
  /// Counts the part of a run that falls into the time that is measured: between the first counted request's sending
  /// and the last one's end. `prefill`: of a replica that does nothing else.
  void work(SimTime start, SimTime end, const Work& whole, bool prefill);
  void transfer(const TransferRecord& record) {
    if (observer_ != nullptr) observer_->on_transfer(record);
  }
  void fleet(const FleetRecord& record) {
    if (observer_ != nullptr) observer_->on_fleet(record);
  }
  SimTime begin_time() const { return begin_; }
  SimTime end_time() const { return std::max(begin_, end_); }
  ServingMetrics& metrics() { return metrics_; }
  ServingMetrics finish();
  /// The same for open arrivals, with what they did to the machine: LoadWatch::verdict.
  ServingMetrics finish(double burstiness, double slack);

 private:
  void add(const Work& work, bool prefill);

  Objectives objectives_;
  std::vector<Objectives> client_objectives_;  ///< by kind of clients; empty: they have none of their own
  Observer* observer_;
  ServingMetrics metrics_;
  SimTime begin_, end_;
  bool begun_ = false;
  std::int64_t open_ = 0;  ///< counted requests under way
  LoadWatch watch_;
  Work later_[2];  ///< after the last of them ended, by `prefill`: counts if another is sent
};

}  // namespace roofcast
