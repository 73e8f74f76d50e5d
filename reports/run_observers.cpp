#include "reports/run_observers.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace roofcast::reports {
namespace {

constexpr int kRequestsProcess = 0;

int process_of(int replica) { return replica + 1; }

constexpr int kGpus = 1, kLink = 2;  ///< threads of a replica's process

void declare(Timeline& timeline, int process, const std::string& name, const std::string& thread, int number = kGpus) {
  const auto same = [&](const TimelineTrack& t) { return t.process == process && t.thread == number; };
  if (std::none_of(timeline.tracks.begin(), timeline.tracks.end(), same))
    timeline.tracks.push_back({process, number, name, thread});
}

const char* kind_of(const StepRecord& s) {
  if (s.prefills == 0) return "decode";
  return s.decodes == 0 ? "prefill" : "mixed";
}

}  // namespace

void TimelineObserver::on_step(const StepRecord& s) {
  if (timeline_.slices.size() >= limit_) {
    full_ = true;
    return;
  }
  const int process = process_of(s.replica);
  declare(timeline_, process, fmt::format("replica {}", s.replica), "GPUs");
  timeline_.slices.push_back({process,
                              kGpus,
                              kind_of(s),
                              s.start,
                              s.end,
                              {{"steps", static_cast<double>(s.steps)},
                               {"decodes", s.decodes},
                               {"prefills", s.prefills},
                               {"prefill_tokens", static_cast<double>(s.prefill_tokens)}}});
  timeline_.counters.push_back({process, "batch", s.start, {{"decoding", s.decodes}, {"prefilling", s.prefills}}});
  timeline_.counters.push_back({process, "queue", s.start, {{"waiting", static_cast<double>(s.waiting)}}});
  timeline_.counters.push_back({process, "KV cache usage", s.end, {{"share", s.kv_usage}}});
}

/// An arrow starts in the slice that encloses it: in the step that ended the prompt, just before its end.
void TimelineObserver::on_transfer(const TransferRecord& t) {
  if (timeline_.flows.size() >= limit_ || timeline_.slices.size() >= limit_) {
    full_ = true;
    return;
  }
  const int from = process_of(t.from), to = process_of(t.to);
  declare(timeline_, from, fmt::format("replica {}", t.from), "GPUs");
  declare(timeline_, to, fmt::format("replica {}", t.to), "KV link", kLink);
  timeline_.slices.push_back({to,
                              kLink,
                              "KV transfer",
                              t.start,
                              t.end,
                              {{"request", static_cast<double>(t.request)}, {"bytes", t.bytes.base()}}});
  const Seconds moment = kMicrosecond * 1e-3;
  timeline_.flows.push_back({static_cast<std::int64_t>(timeline_.flows.size()) + 1, "KV transfer", from, kGpus, to,
                             kLink, t.prefilled - moment, t.start + (t.end - t.start) * 0.5});
}

void TimelineObserver::on_request(const RequestRecord& r) {
  if (timeline_.spans.size() >= limit_) {
    full_ = true;
    return;
  }
  declare(timeline_, kRequestsProcess, "requests", "");
  const Seconds scheduled = r.arrival + std::min(r.queue, r.ttft), first = r.arrival + std::min(r.ttft, r.e2el),
                end = r.arrival + r.e2el;
  const TimelineNumbers numbers{{"prompt_tokens", r.prompt_tokens},
                                {"output_tokens", r.output_tokens},
                                {"cached_tokens", r.cached_tokens},
                                {"preemptions", r.preemptions},
                                {"replica", r.replica}};
  timeline_.spans.push_back({kRequestsProcess, r.id, "request", r.arrival, end, numbers});
  if (scheduled > r.arrival) timeline_.spans.push_back({kRequestsProcess, r.id, "queue", r.arrival, scheduled});
  if (first > scheduled) timeline_.spans.push_back({kRequestsProcess, r.id, "prefill", scheduled, first});
  if (end > first) timeline_.spans.push_back({kRequestsProcess, r.id, "decode", first, end});
}

IntervalObserver::Bin& IntervalObserver::bin_at(double seconds) {
  while (seconds >= width_ * static_cast<double>(kMost)) {
    for (std::size_t i = 0; i < (bins_.size() + 1) / 2; ++i) {
      Bin sum = bins_[2 * i];
      if (2 * i + 1 < bins_.size()) {
        const Bin& b = bins_[2 * i + 1];
        sum.waiting += b.waiting, sum.running += b.running, sum.usage += b.usage, sum.busy += b.busy;
        sum.prompt_tokens += b.prompt_tokens, sum.output_tokens += b.output_tokens, sum.completed += b.completed;
      }
      bins_[i] = sum;
    }
    bins_.resize((bins_.size() + 1) / 2);
    width_ *= 2;
  }
  const auto index = static_cast<std::size_t>(std::max(0.0, seconds) / width_);
  if (bins_.size() <= index) bins_.resize(index + 1);
  return bins_[index];
}

void IntervalObserver::on_step(const StepRecord& s) {
  replicas_ = std::max(replicas_, s.replica + 1);
  (void)bin_at(s.end.base());  // adjusts the interval width before the event is distributed
  const double length = (s.end - s.start).base();
  for (double from = s.start.base(); length > 0 && from < s.end.base();) {
    const double to = std::min(s.end.base(), (std::floor(from / width_) + 1) * width_);
    Bin& bin = bin_at(from);
    const double seconds = to - from, share = seconds / length;
    bin.waiting += seconds * static_cast<double>(s.waiting), bin.running += seconds * (s.decodes + s.prefills);
    bin.usage += seconds * s.kv_usage, bin.busy += seconds;
    bin.prompt_tokens += share * static_cast<double>(s.prefill_tokens);
    bin.output_tokens += share * static_cast<double>(s.steps) * s.decodes;
    from = to;
  }
}

void IntervalObserver::on_request(const RequestRecord& r) { bin_at((r.arrival + r.e2el).base()).completed += 1; }

double IntervalObserver::mean_of(int FleetRecord::*count, double from, double to) const {
  double sum = 0;
  for (std::size_t i = 0; i < fleet_.size(); ++i) {
    const double begin = std::max(from, fleet_[i].at.base());
    const double end = i + 1 < fleet_.size() ? std::min(to, fleet_[i + 1].at.base()) : to;
    if (end > begin) sum += fleet_[i].*count * (end - begin);
  }
  return sum / (to - from);
}

nlohmann::ordered_json IntervalObserver::json() const {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    const Bin& b = bins_[i];
    const double busy = std::max(b.busy, 1e-300);
    out.push_back({{"start_s", width_ * static_cast<double>(i)},
                   {"end_s", width_ * static_cast<double>(i + 1)},
                   {"waiting", b.waiting / width_},
                   {"running", b.running / width_},
                   {"kv_cache_usage", b.usage / busy},
                   {"busy", b.busy / width_ / replicas_},
                   {"prompt_tokens_per_s", b.prompt_tokens / width_},
                   {"output_tokens_per_s", b.output_tokens / width_},
                   {"completed", b.completed}});
    if (fleet_.empty()) continue;
    const double from = width_ * static_cast<double>(i), to = from + width_;
    out.back()["replicas"] = mean_of(&FleetRecord::serving, from, to);
    out.back()["replicas_starting"] = mean_of(&FleetRecord::starting, from, to);
    out.back()["replicas_down"] = mean_of(&FleetRecord::down, from, to);
    const bool apart = std::any_of(fleet_.begin(), fleet_.end(), [](const FleetRecord& f) { return f.prefill > 0; });
    if (apart) out.back()["prefill_replicas"] = mean_of(&FleetRecord::prefill, from, to);
  }
  return out;
}

}  // namespace roofcast::reports
