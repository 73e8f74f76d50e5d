#include "sim/serve/collector.h"

#include <algorithm>
#include <utility>

namespace roofcast {
namespace {

bool within(const RequestRecord& r, const Objectives& o) {
  return (!o.ttft || r.ttft <= *o.ttft) && (!o.tpot || r.tpot() <= *o.tpot) && (!o.e2el || r.e2el <= *o.e2el);
}

}  // namespace

void Collector::on(const RequestRecord& r) {
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
  const Seconds due = std::max(Seconds(0), r.arrival - r.held - begin_.seconds());
  watch_.served(due, r.held + r.queue, r.arrival - begin_.seconds() + r.e2el);
  if (r.thinking_tokens > 0) m.ttfat_ms.add(r.ttfat().in(kMillisecond));
  const auto kind = static_cast<std::size_t>(r.client);
  const double good = within(r, client_objectives_.empty() ? objectives_ : client_objectives_[kind]) ? 1.0 : 0.0;
  m.good_requests += good;
  if (!m.clients.empty()) {
    ClientMetrics& c = m.clients[kind];
    ++c.completed;
    if (!client_objectives_.empty()) c.good_requests += good;
    c.input_tokens += r.prompt_tokens;
    c.output_tokens += r.output_tokens;
    c.ttft_ms.add(r.ttft.in(kMillisecond));
    c.e2el_ms.add(r.e2el.in(kMillisecond));
    if (r.in_turn() > 1) c.tpot_ms.add(r.tpot().in(kMillisecond));
  }
  if (observer_ != nullptr) observer_->on_request(r);
}

void Collector::on(const StepRecord& record) {
  metrics_.kv_peak_usage = std::max(metrics_.kv_peak_usage, record.kv_usage);
  metrics_.iterations += record.steps;
  if (observer_ != nullptr) observer_->on_step(record);
}

void Collector::on(const Replied& replied) {
  add_later();
  end_ = std::max(end_, replied.at);
}

void Collector::add_later() {
  if (open_ == 0 || !std::exchange(later_any_, false)) return;
  for (const bool prefill : {false, true}) add(std::exchange(later_[prefill], {}), prefill);
}

Collector::Work Collector::Work::operator*(double share) const {
  return {.busy_seconds = share * busy_seconds,
          .flops = share * flops,
          .bytes = share * bytes,
          .front_end_seconds = share * front_end_seconds,
          .kv_held = share * kv_held,
          .kv_filled = share * kv_filled,
          .computed_tokens = share * computed_tokens,
          .padding_tokens = share * padding_tokens};
}

Collector::Work& Collector::Work::operator+=(const Work& other) {
  busy_seconds += other.busy_seconds, flops += other.flops, bytes += other.bytes;
  front_end_seconds += other.front_end_seconds;
  kv_held += other.kv_held, kv_filled += other.kv_filled;
  computed_tokens += other.computed_tokens, padding_tokens += other.padding_tokens;
  return *this;
}

void Collector::add(const Work& work, bool prefill) {
  ServingMetrics& m = metrics_;
  m.gpu_busy_seconds += work.busy_seconds, m.flops += work.flops, m.bytes += work.bytes;
  if (!prefill) m.front_end_seconds += work.front_end_seconds;  // decode replicas stream the answers
  m.kv_held += work.kv_held, m.kv_filled += work.kv_filled;
  m.computed_tokens += work.computed_tokens, m.padding_tokens += work.padding_tokens;
  if (!prefill) return;
  m.prefill_busy_seconds += work.busy_seconds, m.prefill_flops += work.flops, m.prefill_bytes += work.bytes;
}

void Collector::on(const Worked& worked) {
  const auto& [start, end, whole, prefill] = worked;
  if (!begun_ || end <= begin_) return;
  add_later();
  if (open_ > 0 && start >= begin_) return add(whole, prefill);
  const SimTime first = std::max(start, begin_), last = open_ > 0 ? end : std::clamp(end_, first, end);
  const auto share = [&w = worked](SimTime from, SimTime to) {
    return from <= w.start && to >= w.end ? 1.0 : (to - from).seconds() / (w.end - w.start).seconds();
  };
  add(whole * share(first, last), prefill);
  if (last >= end) return;
  later_[prefill] += whole * share(last, end);
  later_any_ = true;
}

void Collector::on(const Failed& failed) {
  ++metrics_.failed, ++metrics_.too_long[static_cast<std::size_t>(failed.why)];
  --open_;
  if (!metrics_.clients.empty()) ++metrics_.clients[static_cast<std::size_t>(failed.client)].failed;
}

void Collector::on(const Cancelled& cancelled) {
  const auto& [client, tokens, arrival, waited, end] = cancelled;
  ++metrics_.cancelled, on(Failed{client});
  metrics_.cancelled_tokens += tokens;
  const Seconds came = (arrival - begin_).seconds();
  const bool for_waiting = !waited || *waited * 2.0 > (end - arrival).seconds();
  for_waiting ? watch_.dropped(came) : watch_.served(came, *waited, (end - begin_).seconds());
}

void Collector::keep_counts() {
  ServingMetrics& m = metrics_;
  const Counts counts{.preemptions = std::exchange(m.preemptions, 0),
                      .drafted_tokens = std::exchange(m.drafted_tokens, 0.0),
                      .accepted_tokens = std::exchange(m.accepted_tokens, 0.0),
                      .loaded_tokens = std::exchange(m.offload_loaded_tokens, 0.0),
                      .loaded_bytes = std::exchange(m.offload_loaded_bytes, 0.0),
                      .stored_bytes = std::exchange(m.offload_stored_bytes, 0.0)};
  const bool any =
      counts.preemptions > 0 || counts.drafted_tokens > 0 || counts.loaded_tokens > 0 || counts.stored_bytes > 0;
  if (any) put(counts);
}

void Collector::on(const Counts& counts) {
  metrics_.preemptions += counts.preemptions;
  metrics_.drafted_tokens += counts.drafted_tokens;
  metrics_.accepted_tokens += counts.accepted_tokens;
  metrics_.offload_loaded_tokens += counts.loaded_tokens;
  metrics_.offload_loaded_bytes += counts.loaded_bytes;
  metrics_.offload_stored_bytes += counts.stored_bytes;
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
