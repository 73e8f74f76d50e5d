#pragma once
#include "sim/serve/metrics.h"

namespace roofcast {

/// One event of a replica: one step, or a run of equal-sized decode steps.
struct StepRecord {
  int replica = 0;
  Seconds start{}, end{};
  std::int64_t steps = 1;
  int decodes = 0;   ///< decoding sequences
  int prefills = 0;  ///< sequences with a prefill chunk
  std::int64_t prefill_tokens = 0;
  std::int64_t waiting = 0;  ///< prompts in the queue
  double kv_usage = 0;       ///< share of the pool at the end of the event
};

/// A KV cache transfer from a prefill replica to a decode replica.
struct TransferRecord {
  std::int64_t request = 0;
  int from = 0, to = 0;
  Seconds prefilled{};     ///< when the prefill ended
  Seconds start{}, end{};  ///< on the link; before, it waits for memory and earlier transfers
  Bytes bytes{};
};

/// The number of replicas by state from this time on.
struct FleetRecord {
  Seconds at{};
  int serving = 0, starting = 0, down = 0;
  int prefill = 0;  ///< serving prefill-only replicas
};

/// Watches a simulation: time series, request tables, timelines. Does nothing by default.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_step(const StepRecord&) {}
  virtual void on_transfer(const TransferRecord&) {}
  virtual void on_fleet(const FleetRecord&) {}
  virtual void on_request(const RequestRecord&) {}  ///< warm-up requests are not shown
  virtual bool enough() const { return false; }     ///< called after each request; true ends the simulation
};

}  // namespace roofcast
