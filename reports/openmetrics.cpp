#include "reports/openmetrics.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "reports/html_text.h"

namespace roofcast::reports {
namespace {

// Bucket bounds in seconds, as vLLM sets them.
constexpr std::array<double, 22> kFirstToken{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
                                             1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560};
constexpr std::array<double, 19> kBetweenTokens{.01, .025, .05, .075, .1,  .15, .2, .3, .4, .5,
                                                .75, 1,    2.5, 5,    7.5, 10,  20, 40, 80};
constexpr std::array<double, 21> kRequest{.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                          30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};

std::string label_text(const std::string& text) {
  std::string out;
  for (const char c : clean_utf8(text)) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

/// Start time of a simulated run for monitoring tools: 2025-01-01 00:00 UTC.
constexpr double kBegin = 1735689600;

/// A value at a time of the run; without times, one value without a time stamp.
struct Sample {
  double at = -1, value = 0;
};
using Samples = std::vector<Sample>;

class Writer {
 public:
  Writer(const std::string& model, double duration)
      : labels_(fmt::format("job=\"roofcast\",model_name=\"{}\",engine=\"0\"", label_text(model))),
        duration_(duration) {}

  void family(std::string_view name, std::string_view type, std::string_view help, std::string_view unit = "") {
    out_ += fmt::format("# TYPE vllm:{} {}\n", name, type);
    if (!unit.empty()) out_ += fmt::format("# UNIT vllm:{} {}\n", name, unit);
    out_ += fmt::format("# HELP vllm:{} {}\n", name, help);
  }
  void sample(std::string_view name, Sample s, std::string_view more = "") {
    const std::string stamp = s.at < 0 ? "" : fmt::format(" {:.3f}", kBegin + s.at);
    out_ += fmt::format("vllm:{}{{{}{}{}}} {:.12g}{}\n", name, labels_, more.empty() ? "" : ",", more, s.value, stamp);
  }
  /// Zero at the start of the run, `value` at its end.
  Samples total(double value) const {
    return duration_ > 0 ? Samples{{0, 0}, {duration_, value}} : Samples{{-1, value}};
  }
  void counter(std::string_view name, std::string_view help, const Samples& samples, std::string_view more = "") {
    family(name, "counter", help);
    for (const Sample& s : samples) sample(fmt::format("{}_total", name), s, more);
  }
  void gauge(std::string_view name, std::string_view help, const Samples& samples) {
    family(name, "gauge", help);
    for (const Sample& s : samples) sample(name, s);
  }
  /// Zero at the start and everything at the end; in between as in `history`, if given.
  void histogram(std::string_view name, std::string_view help, const Distribution& ms, std::span<const double> bounds,
                 LatencyHistory::Values history = {}) {
    constexpr int kSamples = 60;
    family(name, "histogram", help, "seconds");
    if (duration_ <= 0) return histogram_sample(name, -1, ms, bounds);
    std::sort(history.begin(), history.end());
    Distribution so_far;
    auto next = history.begin();
    for (int i = 0; i < kSamples; ++i) {
      const double at = duration_ * i / kSamples;
      for (; next != history.end() && next->first <= at; ++next) so_far.add(next->second);
      if (i == 0 || !history.empty()) histogram_sample(name, at, i == 0 ? Distribution() : so_far, bounds);
    }
    histogram_sample(name, duration_, ms, bounds);
  }
  std::string text() && { return std::move(out_) + "# EOF\n"; }

 private:
  void histogram_sample(std::string_view name, double at, const Distribution& ms, std::span<const double> bounds) {
    const auto bucket = [&](double count, std::string_view bound) {
      sample(fmt::format("{}_bucket", name), {at, count}, fmt::format("le=\"{}\"", bound));
    };
    for (const double bound : bounds) bucket(ms.count_at_most(1e3 * bound), fmt::format("{:.6g}", bound));
    bucket(ms.count(), "+Inf");
    sample(fmt::format("{}_count", name), {at, ms.count()});
    sample(fmt::format("{}_sum", name), {at, ms.mean() * ms.count() / 1e3});
  }

  std::string labels_, out_;
  double duration_;
};

/// The value of an interval, at its start.
Samples gauge_of(const nlohmann::ordered_json& over_time, const char* key, double default_value) {
  if (over_time.is_null()) return {{-1, default_value}};
  Samples out;
  for (const auto& interval : over_time)
    out.push_back({interval.at("start_s").get<double>(), interval.at(key).get<double>()});
  return out;
}

/// Cumulative counts at the end of each interval; the last is `total`, which is exact.
Samples counter_of(const nlohmann::ordered_json& over_time, const char* key, bool rate, const Samples& total) {
  if (over_time.is_null()) return total;
  Samples out{{0, 0}};
  for (const auto& interval : over_time) {
    const double from = interval.at("start_s").get<double>(), to = interval.at("end_s").get<double>();
    out.push_back({to, out.back().value + interval.at(key).get<double>() * (rate ? to - from : 1)});
  }
  if (!over_time.empty()) out.back().value = std::max(total.back().value, out[out.size() - 2].value);
  return out;
}

}  // namespace

void LatencyHistory::on_request(const RequestRecord& r) {
  if (ttft_.size() == kMost) full_ = true;
  if (full_ || r.output_tokens == 0) return;
  const auto keep = [&](Values& values, Seconds after, Seconds value) {
    values.emplace_back(static_cast<float>((r.arrival + after).base()), static_cast<float>(value.in(kMillisecond)));
  };
  keep(queue_, r.queue, r.queue), keep(ttft_, r.ttft, r.ttft), keep(e2el_, r.e2el, r.e2el);
  if (r.output_tokens > 1) keep(tpot_, r.e2el, r.tpot());
}

std::string openmetrics_text(const ServingMetrics& m, const std::string& model_name,
                             const nlohmann::ordered_json& over_time, const LatencyHistory& history) {
  const bool timed = !over_time.is_null() && !over_time.empty();
  const nlohmann::ordered_json series = timed ? over_time : nlohmann::ordered_json();
  Writer w(model_name, timed ? over_time.back().at("end_s").get<double>() : 0);
  w.gauge("num_requests_running", "Requests in the batch; 0 once a run has ended.", gauge_of(series, "running", 0));
  w.gauge("num_requests_waiting", "Requests in the queue; 0 once a run has ended.", gauge_of(series, "waiting", 0));
  w.gauge("kv_cache_usage_perc",
          timed ? "Share of the KV pool, 1 is all of it." : "Peak share of the KV pool over the run, 1 is all of it.",
          gauge_of(series, "kv_cache_usage", m.kv_peak_usage));
  w.counter("prefix_cache_queries", "Prompt tokens looked up.", w.total(m.input_tokens));
  w.counter("prefix_cache_hits", "Prompt tokens found cached.", w.total(m.cached_tokens));
  w.counter("num_preemptions", "Preemptions.", w.total(static_cast<double>(m.preemptions)));
  w.counter("prompt_tokens", "Prompt tokens of finished requests.",
            counter_of(series, "prompt_tokens_per_s", true, w.total(m.input_tokens)));
  w.counter("generation_tokens", "Output tokens of finished requests.",
            counter_of(series, "output_tokens_per_s", true, w.total(m.output_tokens)));
  w.counter("request_success", "Requests that finished.",
            counter_of(series, "completed", false, w.total(static_cast<double>(m.completed))),
            "finished_reason=\"length\"");
  w.histogram("time_to_first_token_seconds", "From arrival to the first token.", m.ttft_ms, kFirstToken,
              history.ttft());
  w.histogram("inter_token_latency_seconds", "Gaps between a request's tokens.", m.itl_ms, kBetweenTokens);
  w.histogram("request_time_per_output_token_seconds", "Mean gap of a request after its first token.", m.tpot_ms,
              kBetweenTokens, history.tpot());
  w.histogram("e2e_request_latency_seconds", "From arrival to the last token.", m.e2el_ms, kRequest, history.e2el());
  w.histogram("request_queue_time_seconds", "Waiting before the first chunk.", m.queue_ms, kRequest, history.queue());
  if (m.drafted_tokens > 0) {
    w.counter("spec_decode_num_draft_tokens", "Tokens drafted.", w.total(m.drafted_tokens));
    w.counter("spec_decode_num_accepted_tokens", "Drafted tokens that were accepted.", w.total(m.accepted_tokens));
  }
  return std::move(w).text();
}

}  // namespace roofcast::reports
