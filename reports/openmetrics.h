#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/serve/metrics.h"
#include "sim/serve/observer.h"

namespace roofcast::reports {

/// Records when each latency was known, to show percentiles over time. Keeps nothing beyond two million requests.
class LatencyHistory final : public Observer {
 public:
  using Values = std::vector<std::pair<float, float>>;  ///< seconds since the beginning, milliseconds
  void on_request(const RequestRecord& request) override;
  Values ttft() const { return full_ ? Values{} : ttft_; }
  Values tpot() const { return full_ ? Values{} : tpot_; }
  Values e2el() const { return full_ ? Values{} : e2el_; }
  Values queue() const { return full_ ? Values{} : queue_; }

 private:
  static constexpr std::size_t kMost = 2'000'000;
  Values ttft_, tpot_, e2el_, queue_;
  bool full_ = false;
};

/// A finished run in vLLM's Prometheus names (vllm/v1/metrics/loggers.py), for dashboards made for vLLM; the label
/// job="roofcast" marks it. OpenMetrics 1.0 text, ended by `# EOF`; times in seconds. With `over_time` (intervals of
/// the run, reports/run_observers.h) every value has a time stamp, starting at 2025-01-01 00:00 UTC, so that `promtool
/// tsdb create-blocks-from openmetrics` accepts it. Histograms grow with `history`; without it, and for gaps between
/// tokens, they only have final values.
std::string openmetrics_text(const ServingMetrics& metrics, const std::string& model_name,
                             const nlohmann::ordered_json& over_time = nullptr, const LatencyHistory& history = {});

}  // namespace roofcast::reports
