#include "sim/plan/measured/comparison.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "sim/plan/serving_intervals.h"
#include "sim/plan/what_fits.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

/// A change that removes less than this fraction of the distance explains nothing.
constexpr double kTelling = 0.3;

ServingMetrics run_scenario(const Scenario& s) {
  ServingMetrics m = simulate(s.deployment, *s.workload, s.serving);
  if (m.completed == 0)
    throw Unavailable(
        fmt::format("none of {} requests can be served: longer than the model's context or the cache", m.failed));
  return m;
}

/// Mean number of decoding sequences per replica: Little's law over the time between first and last token.
double decoding_together(double output_throughput, double tpot_ms, int replicas) {
  return output_throughput * tpot_ms / 1e3 / std::max(1, replicas);
}

/// A pure decode step of `batch` mean requests, half of whose output is generated.
StepBreakdown decode_step(StepModel& model, double batch, double context) {
  const int sequences = std::clamp(static_cast<int>(std::lround(batch)), 1, 1 << 20);
  return model.breakdown({.decodes = sequences, .decode_context = context * sequences, .query_len = 1, .prefills = {}});
}

/// One mean prompt alone, in chunks of the token budget.
double prefill_ms(StepModel& model, double prompt) {
  const EngineSpec& engine = model.deployment().engine;
  const int whole = std::max(1, static_cast<int>(std::lround(prompt)));
  const int chunk = engine.chunked_prefill ? std::min(whole, engine.max_num_batched_tokens) : whole;
  double ms = 0;
  for (int done = 0; done < whole; done += chunk) {
    const PrefillChunk part{std::min(chunk, whole - done), done, done + chunk >= whole};
    ms += model.time({.decodes = 0, .decode_context = 0, .query_len = 1, .prefills = {&part, 1}}).in(kMillisecond);
  }
  return ms;
}

TimeShares shares_of(const Scenario& s, const ServingMetrics& m, const BenchRun& run) {
  TimeShares t;
  StepModel model(s.deployment);
  const double n = static_cast<double>(m.completed), seconds = m.duration.base();
  const double prompt = m.input_tokens / n, output = m.output_tokens / n, tpot = m.tpot_ms.mean();
  t.batch = decoding_together(m.output_tokens / seconds, tpot, s.serving.replicas);
  t.context = prompt + output / 2;
  const StepBreakdown step = decode_step(model, t.batch, t.context);
  const double step_ms = step.time.in(kMillisecond);
  t.step_gpu_ms = std::min(step.gpu_time.in(kMillisecond), step_ms);
  t.step_host_ms = step_ms - t.step_gpu_ms;
  t.tpot_others_ms = tpot - step_ms;
  const HostCosts& host = s.deployment->engine.host;
  t.queue_ms = m.queue_ms.mean();
  t.front_end_ms = (host.request_latency + host.request_time + host.prompt_token_time * prompt).in(kMillisecond);
  t.queue_ms = std::max(0.0, t.queue_ms - t.front_end_ms);
  t.prefill_ms = prefill_ms(model, prompt - m.cached_tokens / n);
  t.ttft_others_ms = m.ttft_ms.mean() - t.queue_ms - t.front_end_ms - t.prefill_ms;
  t.in_flight = n * m.e2el_ms.mean() / 1e3 / seconds;
  t.measured_in_flight = run.mean_in_flight();
  if (const auto measured = run.value("mean_tpot_ms"); measured && run.duration_s > 0 && run.output_tokens > 0) {
    t.measured_batch = decoding_together(run.output_tokens / run.duration_s, *measured, s.serving.replicas);
    t.measured_batch_step_ms = decode_step(model, *t.measured_batch, t.context).time.in(kMillisecond);
  }
  t.kv_peak_usage = m.kv_peak_usage;
  t.preemptions = m.preemptions;
  return t;
}

std::string ratios(const RunFigures& predicted, const RunFigures& measured) {
  std::string out;
  const auto add = [&](const char* name, double p, double m) {
    if (p > 0 && m > 0) out += fmt::format("{}{} {:.2f}", out.empty() ? "" : ", ", name, p / m);
  };
  add("TTFT", predicted.ttft_ms, measured.ttft_ms);
  add("TPOT", predicted.tpot_ms, measured.tpot_ms);
  add("throughput", predicted.output_throughput, measured.output_throughput);
  return out;
}

void find_load(Comparison& c) {
  for (const std::string& doubt : c.run.doubts) c.findings.push_back(doubt);
  if (c.run.failed > 0) {
    c.findings.push_back(
        fmt::format("{:.0f} of {:.0f} requests failed in the run: its figures cover the others, under a "
                    "lighter load",
                    c.run.failed, c.run.completed + c.run.failed));
  }
  for (const LoadMismatch& m : c.mismatches) {
    c.findings.push_back(fmt::format("{}: the scenario has {}, the run {}{}", m.what, m.scenario, m.run,
                                     m.adopted ? "" : " (the prediction keeps the scenario's)"));
  }
  if (std::none_of(c.mismatches.begin(), c.mismatches.end(), [](const LoadMismatch& m) { return m.adopted; })) return;
  c.findings.push_back(fmt::format("with the run's own load: {} (predicted / measured), as written {}",
                                   ratios(c.predicted, c.measured), ratios(c.as_written, c.measured)));
}

void find_state(Comparison& c) {
  const TimeShares& t = *c.shares;
  if (t.preemptions > 0 || t.kv_peak_usage > 0.98) {
    c.findings.push_back(
        fmt::format("the prediction is limited by its KV cache: {:.0f} % of it in use at the peak, {} "
                    "preemptions",
                    100 * t.kv_peak_usage, t.preemptions));
  }
  if (t.measured_in_flight && *t.measured_in_flight > 0 &&
      std::abs(std::log(t.in_flight / *t.measured_in_flight)) > 0.1) {
    c.findings.push_back(fmt::format("requests in flight on average: {:.1f} predicted, {:.1f} measured (Little's law)",
                                     t.in_flight, *t.measured_in_flight));
  }
}

/// States that every judged figure is inside its interval or close enough, and which were not judged.
std::string inside_words(const Comparison& c) {
  std::string out = "the measured figures are inside the 90 % intervals of the prediction";
  if (!c.near.empty()) out += fmt::format(", or near it ({})", join(c.near, ", "));
  if (!c.not_judged.empty()) out += fmt::format(", except for {} without one", join(c.not_judged, ", "));
  return out + ": nothing to explain";
}

/// The judged figures, and how many of the others are outside of their intervals.
std::string outside_words(const Comparison& c) {
  const auto others = std::count_if(c.metrics.begin(), c.metrics.end(), [&](const ComparedMetric& m) {
    const bool outside = m.low && m.high && m.measured > 0 && (m.measured < *m.low || m.measured > *m.high);
    return outside && std::find(c.outside->begin(), c.outside->end(), m.name) == c.outside->end();
  });
  return "outside the 90 % interval of the prediction: " + join(*c.outside, ", ") +
         (others > 0 ? fmt::format(", and {} more of the table", others) : "");
}

void find_cause(Comparison& c) {
  if (c.distance <= kAgreement) {
    const std::string agree = fmt::format("they agree within {:.1f} % on average", 100 * c.distance);
    c.findings.push_back(c.outside && !c.outside->empty() ? agree + "; " + outside_words(c)
                                                          : agree + ": nothing is left to explain");
    return;
  }
  const bool found = !c.assumptions.empty() && c.assumptions.front().explains >= kTelling;
  if (c.outside && c.outside->empty()) {
    c.findings.push_back(inside_words(c));
    if (found)
      c.findings.push_back(fmt::format("if there is a cause all the same: {} would explain {:.0f} %. Check: {}",
                                       c.assumptions.front().change, 100 * c.assumptions.front().explains,
                                       c.assumptions.front().check));
    return;
  }
  if (c.outside) c.findings.push_back(outside_words(c));
  if (!found) {
    c.findings.push_back(
        fmt::format("none of the changed assumptions explains {:.0f} % of the difference or more", 100 * kTelling));
    return;
  }
  const Assumption& best = c.assumptions.front();
  c.findings.push_back(
      fmt::format("likeliest: {}. It explains {:.0f} % of the difference: {} (predicted / measured) "
                  "instead of {}. Check: {}",
                  best.change, 100 * best.explains, ratios(best.predicted, c.measured), ratios(c.predicted, c.measured),
                  best.check));
}

void list_metrics(Comparison& c, const ServingMetrics& as_written, const ServingMetrics& predicted) {
  const auto add = [&](const std::string& name, double measured, std::optional<double> first,
                       std::optional<double> second) {
    if (second) c.metrics.push_back({name, measured, first, *second});
  };
  const BenchRun& r = c.run;
  const auto count = [](std::int64_t n) { return static_cast<double>(n); };
  if (!r.window) {  // a simulation has no server uptime
    if (r.duration_s > 0) add("duration", r.duration_s, as_written.duration.base(), predicted.duration.base());
    add("completed", r.completed, count(as_written.completed), count(predicted.completed));
    add("failed", r.failed, count(as_written.failed), count(predicted.failed));
    if (r.input_tokens > 0) add("total_input_tokens", r.input_tokens, as_written.input_tokens, predicted.input_tokens);
    if (r.output_tokens > 0)
      add("total_output_tokens", r.output_tokens, as_written.output_tokens, predicted.output_tokens);
  }
  for (const auto& [name, value] : r.values)
    add(name, value, predicted_value(as_written, name), predicted_value(predicted, name));
}

/// Factor by which the tails of two equal runs may differ.
constexpr double kTail = 1.5;

/// The highest percentile of TTFT, p90 or more.
std::optional<std::string> tail_key(const BenchRun& run) {
  std::optional<std::string> best;
  double highest = 90;
  for (const auto& [name, value] : run.values) {
    const auto key = parse_latency_key(name);
    if (!key || key->latency != LatencyKey::Latency::kTtft || key->statistic != LatencyKey::Statistic::kPercentile ||
        key->percentile < highest || value <= 0)
      continue;
    best = name, highest = key->percentile;
  }
  return best;
}

/// The first of the keys that the run has.
std::optional<std::string> first_key(const BenchRun& run, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (run.value(key)) return key;
  }
  return std::nullopt;
}

std::optional<std::string> ttft_key(const BenchRun& run) { return first_key(run, {"mean_ttft_ms", "median_ttft_ms"}); }

/// ITL replaces TPOT if a server only counts the gaps between tokens.
std::optional<std::string> tpot_key(const BenchRun& run) {
  return first_key(run, {"mean_tpot_ms", "median_tpot_ms", "mean_itl_ms", "median_itl_ms"});
}

/// Calls value_of(key) for each figure that the run has; 0 for the others.
template <class ValueOf>
RunFigures figures_by(const BenchRun& run, const ValueOf& value_of) {
  const auto figure = [&](const std::optional<std::string>& key) { return key ? value_of(*key) : 0.0; };
  return {figure(ttft_key(run)), figure(tpot_key(run)), 0, figure(tail_key(run))};
}

}  // namespace

RunFigures figures_of(const BenchRun& run) {
  RunFigures figures = figures_by(run, [&](const std::string& key) { return *run.value(key); });
  if (run.duration_s > 0) figures.output_throughput = run.output_tokens / run.duration_s;
  return figures;
}

RunFigures figures_of(const ServingMetrics& m, const BenchRun& run) {
  RunFigures figures = figures_by(run, [&](const std::string& key) { return predicted_value(m, key).value_or(0); });
  figures.output_throughput = m.output_tokens / std::max(m.duration.base(), 1e-12);
  return figures;
}

double distance_of(const RunFigures& predicted, const RunFigures& measured) {
  double sum = 0, figures = 0;
  for (double RunFigures::*figure : {&RunFigures::ttft_ms, &RunFigures::tpot_ms, &RunFigures::output_throughput}) {
    if (measured.*figure <= 0) continue;
    sum += predicted.*figure > 0 ? std::abs(std::log(predicted.*figure / measured.*figure)) : 1.0;
    figures += 1;
  }
  if (measured.ttft_tail_ms > 0 && predicted.ttft_tail_ms > 0) {
    sum += std::max(0.0, std::abs(std::log(predicted.ttft_tail_ms / measured.ttft_tail_ms)) - std::log(kTail));
    figures += 1;
  }
  return figures > 0 ? sum / figures : 0;
}

namespace {

/// Compares figures with their intervals. A figure predicted as 0 but measured above 0 is outside.
void judge_by_intervals(Comparison& c, const std::vector<MetricInterval>& intervals) {
  if (intervals.empty()) return;
  const auto interval_of = [&](const std::string& metric) {
    const auto found =
        std::find_if(intervals.begin(), intervals.end(), [&](const auto& i) { return i.metric == metric; });
    return found != intervals.end() ? &*found : nullptr;
  };
  for (ComparedMetric& m : c.metrics) {
    if (const MetricInterval* i = interval_of(m.name)) m.low = i->low, m.high = i->high;
  }
  int judged = 0;
  std::vector<std::string> outside;
  const auto judge = [&](const std::optional<std::string>& key, double measured, double predicted, double agreement) {
    if (!key || measured <= 0) return;
    const MetricInterval* i = interval_of(*key);
    if (i == nullptr && predicted > 0) return c.not_judged.push_back(*key);
    ++judged;
    if (predicted > 0 && measured >= i->low && measured <= i->high) return;
    const bool agrees = predicted > 0 && std::abs(std::log(predicted / measured)) <= agreement;
    if (!agrees) return outside.push_back(*key);
    c.near.push_back(agreement > kAgreement ? fmt::format("{} within a factor of {:g}", *key, kTail)
                                            : fmt::format("{} within {:g} %", *key, 100 * kAgreement));
  };
  judge(ttft_key(c.run), c.measured.ttft_ms, c.predicted.ttft_ms, kAgreement);
  judge(tpot_key(c.run), c.measured.tpot_ms, c.predicted.tpot_ms, kAgreement);
  judge("output_throughput", c.measured.output_throughput, c.predicted.output_throughput, kAgreement);
  judge(tail_key(c.run), c.measured.ttft_tail_ms, c.predicted.ttft_tail_ms, std::log(kTail));
  if (judged > 0) c.outside = std::move(outside);
}

}  // namespace

Comparison compare_with_run(const Scenario& scenario, BenchRun run) {
  if (scenario.deployment->memory.infeasible)
    throw Unavailable(scenario.deployment->memory.infeasible->reason + what_would_fit(*scenario.deployment));
  Comparison c;
  c.run = std::move(run);
  c.measured = figures_of(c.run);
  const ServingMetrics as_written = run_scenario(scenario);
  Scenario reference = scenario;
  reference.workload = workload_of_run(scenario, c.run, as_written, c.mismatches);
  const bool changed = std::any_of(c.mismatches.begin(), c.mismatches.end(), [](const auto& m) { return m.adopted; }) ||
                       c.run.prompt_lengths.size() > 1 || c.run.output_lengths.size() > 1;
  const ServingMetrics predicted = changed ? run_scenario(reference) : as_written;
  c.as_written = figures_of(as_written, c.run);
  c.predicted = figures_of(predicted, c.run);
  c.distance_as_written = distance_of(c.as_written, c.measured);
  c.distance = distance_of(c.predicted, c.measured);
  list_metrics(c, as_written, predicted);
  judge_by_intervals(c, serving_intervals(reference, predicted));
  c.shares = shares_of(reference, predicted, c.run);
  if (c.distance > kAgreement) try_assumptions(reference, predicted, c);
  find_cause(c);
  find_load(c);
  find_state(c);
  return c;
}

}  // namespace roofcast
