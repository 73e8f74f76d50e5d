#include "sim/serve/collector.h"

#include <algorithm>
#include <utility>

namespace roofcast {
namespace {

bool within(const RequestRecord& r, const Objectives& o) {
  return (!o.ttft || r.ttft <= *o.ttft) && (!o.tpot || r.tpot() <= *o.tpot) && (!o.e2el || r.e2el <= *o.e2el);
}

}  // namespace

void Collector::request(const RequestRecord& r) {
  ServingMetrics& m = metrics_;
  ++m.completed;
  --open_;
  m.input_tokens += r.prompt_tokens;
  m.output_tokens += r.output_tokens;
  m.cached_tokens += r.cached_tokens;
  m.ttft_ms.add(r.ttft.in(kMillisecond));
  m.e2el_ms.add(r.e2el.in(kMillisecond));
  m.queue_ms.add(r.queue.in(kMillisecond));
  if (r.in_turn() > 1) m.tpot_ms.add(r.tpot().in(kMillisecond));
  const Seconds arrival = r.arrival - begin_.seconds();
  watch_.served(arrival, r.queue, arrival + r.e2el);
  if (r.thinking_tokens > 0) m.ttfat_ms.add(r.ttfat().in(kMillisecond));
  m.good_requests += within(r, objectives_) ? 1.0 : 0.0;
  if (!m.clients.empty()) {
    ClientMetrics& c = m.clients[static_cast<std::size_t>(r.client)];
    ++c.completed;
    if (!client_objectives_.empty())
      c.good_requests += within(r, client_objectives_[static_cast<std::size_t>(r.client)]) ? 1.0 : 0.0;
    c.input_tokens += r.prompt_tokens;
    c.output_tokens += r.output_tokens;
    c.ttft_ms.add(r.ttft.in(kMillisecond));
    c.e2el_ms.add(r.e2el.in(kMillisecond));
    if (r.in_turn() > 1) c.tpot_ms.add(r.tpot().in(kMillisecond));
  }
  if (observer_ != nullptr) observer_->on_request(r);
}

void Collector::step(const StepRecord& record) {
  metrics_.kv_peak_usage = std::max(metrics_.kv_peak_usage, record.kv_usage);
  metrics_.iterations += record.steps;
  if (observer_ != nullptr) observer_->on_step(record);
}

void Collector::sent() {
  ++open_;
  for (const bool prefill : {false, true}) add(std::exchange(later_[prefill], {}), 1.0, prefill);
}

void Collector::add(const Work& work, double share, bool prefill) {
  ServingMetrics& m = metrics_;
  const double busy = share * work.busy_seconds, flops = share * work.flops, bytes = share * work.bytes;
  m.gpu_busy_seconds += busy, m.flops += flops, m.bytes += bytes;
  m.front_end_seconds += share * work.front_end_seconds;
  if (prefill) m.prefill_busy_seconds += busy, m.prefill_flops += flops, m.prefill_bytes += bytes;
}

void Collector::work(SimTime start, SimTime end, const Work& whole, bool prefill) {
  if (!begun_ || end <= begin_) return;
  const SimTime first = std::max(start, begin_), last = open_ > 0 ? end : std::clamp(end_, first, end);
  const auto share = [&](SimTime from, SimTime to) {
    return from <= start && to >= end ? 1.0 : (to - from).seconds() / (end - start).seconds();
  };
  add(whole, share(first, last), prefill);
  if (last >= end) return;
  const double rest = share(last, end);
  Work& later = later_[prefill];
  later.busy_seconds += rest * whole.busy_seconds, later.flops += rest * whole.flops;
  later.bytes += rest * whole.bytes, later.front_end_seconds += rest * whole.front_end_seconds;
}

void Collector::cancelled(int tokens, SimTime arrival, std::optional<Seconds> waited, SimTime end) {
  ++metrics_.cancelled, failed();
  metrics_.cancelled_tokens += tokens;
  const Seconds came = (arrival - begin_).seconds();
  const bool for_waiting = !waited || *waited * 2.0 > (end - arrival).seconds();
  for_waiting ? watch_.dropped(came) : watch_.served(came, *waited, (end - begin_).seconds());
}

ServingMetrics Collector::finish(double burstiness, double slack) {
  metrics_.load = watch_.verdict(burstiness, slack);
  return finish();
}

ServingMetrics Collector::finish() {
  if (end_ > begin_) metrics_.duration = (end_ - begin_).seconds();
  return std::move(metrics_);
}

}  // namespace roofcast
