#pragma once
// A measured run of vLLM with the times of every request, played again.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sim/serve/metrics.h"

namespace roofcast {

struct Deployment;

/// One request of the run. Times from the first arrival; latencies from the request's own.
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

/// Lines of {request_id, input_toks, output_toks, arrival_time (wall clock), queued_ts (or scheduled_ts),
/// first_token_ts, last_token_ts (the engine's clock)}, with the engine's settings in the file beside it that ends in
/// `meta.json` in place of `requests.jsonl`, or in the only one there (read_request_settings, which takes `gpu` and
/// `model`). The two clocks are as far apart as the request that took least from arrival to queue shows. Throws
/// ConfigError `path:line: message`.
RequestRun read_request_run(const std::string& path, const std::string& gpu = {}, const std::string& model = {});

/// Simulates the arrivals and fills in the predictions. Throws Unavailable when the model does not fit, ConfigError
/// when a request is too long.
void predict_requests(RequestRun& run);

/// One metric at one statistic: p50, p90, p99 and mean of TTFT, TPOT and end-to-end latency.
struct RequestStatistic {
  std::string metric, statistic;
  double measured_ms, predicted_ms;
};
std::vector<RequestStatistic> request_statistics(const RequestRun& run);

}  // namespace roofcast
