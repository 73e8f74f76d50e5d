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
  void gap(SimTime gap, double weight) {
    if (begun_ && weight > 0) metrics_.itl_ms.add(gap.milliseconds(), weight);
  }
  void request(const RequestRecord& record);
  void failed() { ++metrics_.failed; }
  void lost() { ++metrics_.lost, ++metrics_.failed; }
  void rejected() { ++metrics_.rejected, ++metrics_.failed; }
  void cancelled(int tokens) {
    ++metrics_.cancelled, ++metrics_.failed;
    metrics_.cancelled_tokens += tokens;
  }
  void replied(SimTime at) { end_ = std::max(end_, at); }
  void step(const StepRecord& record);
  /// How much of a run from `start` to `end` falls into the time that is measured: after the warm-up.
  double measured_share(SimTime start, SimTime end) const;
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
  Objectives objectives_;
  Observer* observer_;
  ServingMetrics metrics_;
  SimTime begin_, end_;
  bool begun_ = false;
};

}  // namespace roofcast
