#include "sim/plan/steady_rate.h"

namespace roofcast {

double steady_output_rate(const WorkloadSpec& workload, const ServingMetrics& metrics) {
  if (workload.arrivals.process != ArrivalSpec::Process::kClosedLoop || metrics.completed == 0) return 0.0;
  // Each user waits for the answer, then pauses.
  const double turn = metrics.e2el_ms.mean() * 1e-3 + workload.arrivals.between_requests().base();
  const double tokens = metrics.output_tokens / static_cast<double>(metrics.completed);
  return turn > 0 ? workload.arrivals.concurrency * tokens / turn : 0.0;
}

}  // namespace roofcast
