#pragma once
// Gathers what clients see, and passes it on to an observer.

#include "sim/serve/observer.h"
#include "sim/serve/sim_time.h"

namespace roofcast {

class Collector {
 public:
  Collector(const Objectives& objectives, Observer* observer) : objectives_(objectives), observer_(observer) {}

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
  void rejected() { ++metrics_.rejected, failed(); }
  void cancelled(int tokens) {
    ++metrics_.cancelled, failed();
    metrics_.cancelled_tokens += tokens;
  }
  void replied(SimTime at) { end_ = std::max(end_, at); }
  void step(const StepRecord& record);
  /// Work of a replica, all its GPUs together, over a run.
  struct Work {
    double busy_seconds = 0, flops = 0, bytes = 0;
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

 private:
  void add(const Work& work, double share, bool prefill);

  Objectives objectives_;
  Observer* observer_;
  ServingMetrics metrics_;
  SimTime begin_, end_;
  bool begun_ = false;
  std::int64_t open_ = 0;  ///< counted requests under way
  Work later_[2];          ///< after the last of them ended, by `prefill`: counts if another is sent
};

}  // namespace roofcast
