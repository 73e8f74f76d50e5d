#include "sim/serve/collector.h"

#include <algorithm>

namespace roofcast {

void Collector::request(const RequestRecord& r) {
  ServingMetrics& m = metrics_;
  ++m.completed;
  m.input_tokens += r.prompt_tokens;
  m.output_tokens += r.output_tokens;
  m.cached_tokens += r.cached_tokens;
  m.ttft_ms.add(r.ttft.in(kMillisecond));
  m.e2el_ms.add(r.e2el.in(kMillisecond));
  m.queue_ms.add(r.queue.in(kMillisecond));
  if (r.output_tokens > 1) m.tpot_ms.add(r.tpot().in(kMillisecond));
  const bool good = (!objectives_.ttft || r.ttft <= *objectives_.ttft) &&
                    (!objectives_.tpot || r.tpot() <= *objectives_.tpot) &&
                    (!objectives_.e2el || r.e2el <= *objectives_.e2el);
  m.good_requests += good ? 1.0 : 0.0;
  if (!m.clients.empty()) {
    ClientMetrics& c = m.clients[static_cast<std::size_t>(r.client)];
    ++c.completed;
    c.input_tokens += r.prompt_tokens;
    c.output_tokens += r.output_tokens;
    c.ttft_ms.add(r.ttft.in(kMillisecond));
    c.e2el_ms.add(r.e2el.in(kMillisecond));
    if (r.output_tokens > 1) c.tpot_ms.add(r.tpot().in(kMillisecond));
  }
  if (observer_ != nullptr) observer_->on_request(r);
}

void Collector::step(const StepRecord& record) {
  metrics_.kv_peak_usage = std::max(metrics_.kv_peak_usage, record.kv_usage);
  metrics_.iterations += record.steps;
  if (observer_ != nullptr) observer_->on_step(record);
}

double Collector::measured_share(SimTime start, SimTime end) const {
  if (!begun_ || end <= begin_) return 0.0;
  if (start >= begin_) return 1.0;
  return (end - begin_).seconds() / (end - start).seconds();
}

ServingMetrics Collector::finish() {
  if (end_ > begin_) metrics_.duration = (end_ - begin_).seconds();
  return std::move(metrics_);
}

}  // namespace roofcast
