#pragma once
// Observers that record a simulation for charts: a timeline of steps and requests, and values per interval.

#include <cstdint>
#include <vector>

#include <nlohmann/json.hpp>

#include "reports/perfetto.h"
#include "sim/serve/observer.h"

namespace roofcast::reports {

/// Steps as slices of their replica, requests as spans, counters of batch, queue and cache; cache transfers as slices
/// of the link, with an arrow from the prefill.
class TimelineObserver final : public Observer {
 public:
  explicit TimelineObserver(std::size_t limit = 400'000) : limit_(limit) {}
  void on_step(const StepRecord& step) override;
  void on_transfer(const TransferRecord& transfer) override;
  void on_request(const RequestRecord& request) override;
  const Timeline& timeline() const { return timeline_; }
  bool full() const { return full_; }  ///< more happened than `limit` steps or requests; the rest is left out

 private:
  Timeline timeline_;
  std::size_t limit_;
  bool full_ = false;
};

/// Means per interval of a simulation of unknown length: intervals double whenever there are too many.
class IntervalObserver final : public Observer {
 public:
  void on_step(const StepRecord& step) override;
  void on_request(const RequestRecord& request) override;
  void on_fleet(const FleetRecord& fleet) override { fleet_.push_back(fleet); }
  /// [{start_s, end_s, waiting, running, kv_cache_usage, busy, prompt_tokens_per_s, output_tokens_per_s, completed}]:
  /// waiting and running are means over the interval, summed over replicas; kv_cache_usage is a mean over busy time. A
  /// changing fleet adds means of replicas (serving), replicas_starting and replicas_down, and with disaggregation
  /// prefill_replicas (part of those serving).
  nlohmann::ordered_json json() const;

 private:
  static constexpr std::size_t kMost = 512;
  struct Bin {
    double waiting = 0, running = 0, usage = 0, busy = 0, prompt_tokens = 0, output_tokens = 0, completed = 0;
  };
  Bin& bin_at(double seconds);
  double mean_of(int FleetRecord::*count, double from, double to) const;
  std::vector<Bin> bins_;
  std::vector<FleetRecord> fleet_;  ///< changes, by time
  double width_ = 0.125;            ///< seconds; a power of two
  int replicas_ = 1;
};

}  // namespace roofcast::reports
