#pragma once
// A recorded run of vLLM with the times of every request, simulated again.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sim/serve/metrics.h"

namespace roofcast {

struct Deployment;

/// One request of the run. Arrival counts from the first arrival; latencies count from the request's own arrival.
struct MeasuredRequest {
  std::string id;
  double arrival_s = 0;
  int prompt_tokens = 0, output_tokens = 0;
  double ttft_ms = 0, e2e_ms = 0;
  double predicted_ttft_ms = 0, predicted_e2e_ms = 0;
  double tpot_ms() const { return (e2e_ms - ttft_ms) / std::max(1, output_tokens - 1); }
  double predicted_tpot_ms() const { return (predicted_e2e_ms - predicted_ttft_ms) / std::max(1, output_tokens - 1); }
};

struct RequestRun {
  std::vector<MeasuredRequest> requests;  ///< by arrival
  std::shared_ptr<const Deployment> deployment;
  int replicas = 1;
  int left_out = 0;  ///< requests without times
};

/// Reads lines of {request_id, input_toks, output_toks, arrival_time (wall clock), queued_ts (or scheduled_ts),
/// first_token_ts, last_token_ts (the engine's clock)}. Engine settings come from the file next to it whose name ends
/// in `meta.json` instead of `requests.jsonl`, or from the only such file (read_request_settings, which takes `gpu` and
/// `model`). The offset of the two clocks is that of the request with the least time from arrival to queue. Throws
/// ConfigError `path:line: message`.
RequestRun read_request_run(const std::string& path, const std::string& gpu = {}, const std::string& model = {});

/// Simulates the arrivals and sets the predictions. Throws Unavailable if the model does not fit, ConfigError if a
/// request is too long.
void predict_requests(RequestRun& run);

/// One metric at one statistic: p50, p90, p99 and mean of TTFT, TPOT and end-to-end latency.
struct RequestStatistic {
  std::string metric, statistic;
  double measured_ms, predicted_ms;
};
std::vector<RequestStatistic> request_statistics(const RequestRun& run);

}  // namespace roofcast
