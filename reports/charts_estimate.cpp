// Plots of one estimate: roofline, step breakdown, memory against context.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "reports/charts.h"
#include "reports/html_text.h"
#include "reports/table.h"

namespace roofcast::reports {
namespace {

/// Number of sequences that the figures are for.
double running(const Json& j) { return number_at(j, "batch").value_or(1) - number_at(j, "waiting").value_or(0); }

const Json& operators_of(const Json& j) {
  static const Json none = Json::array();
  return j.contains("operators") && j["operators"].is_array() ? j["operators"] : none;
}

/// min(peak, bandwidth x intensity) drawn through its ridge, in TFLOP/s.
Series ceiling(const std::string& name, double peak, double bandwidth, double from, double to, int color, bool dashed) {
  const double ridge = peak / bandwidth;
  Series s{.name = name, .dashed = dashed, .color = color};
  s.x = {std::min(from, ridge / 2), ridge, std::max(to, ridge * 2)};
  s.y = {bandwidth * s.x[0] / 1e12, peak / 1e12, peak / 1e12};
  return s;
}

struct Points {
  std::array<Series, 2> phases;  ///< prefill, decode
  std::vector<std::string> without_work{};
  double low = 1e300, high = 0;
};

Points roofline_points(const Json& operators) {
  Points p;
  p.phases[0] = {.name = "prefill", .shape = Shape::kPoints, .write_labels = true, .color = 4};
  p.phases[1] = {.name = "decode", .shape = Shape::kPoints, .write_labels = true, .color = 0};
  for (const Json& op : operators) {
    const auto flops = number_at(op, "flops"), bytes = number_at(op, "bytes"), time = number_at(op, "time_us");
    if (!flops || !bytes || !time || *time <= 0) continue;
    const std::string name = text_at(op, "name");
    if (*flops <= 0 || *bytes <= 0) {
      if (std::find(p.without_work.begin(), p.without_work.end(), name) == p.without_work.end())
        p.without_work.push_back(name);
      continue;
    }
    Series& s = p.phases[text_at(op, "phase") == "prefill" ? 0 : 1];
    const double intensity = *flops / *bytes;
    s.x.push_back(intensity), s.y.push_back(*flops / *time / 1e6);
    s.size.push_back(number_at(op, "share").value_or(0));
    s.labels.push_back(name);
    p.low = std::min(p.low, intensity), p.high = std::max(p.high, intensity);
  }
  return p;
}

/// Sorts largest first, so that large points get labels and small ones are drawn on top.
void sort_by_share(Series& s) {
  std::vector<std::size_t> order(s.x.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return s.size[a] > s.size[b]; });
  Series sorted = s;
  for (std::size_t i = 0; i < order.size(); ++i) {
    sorted.x[i] = s.x[order[i]], sorted.y[i] = s.y[order[i]], sorted.size[i] = s.size[order[i]],
    sorted.labels[i] = s.labels[order[i]];
  }
  s = std::move(sorted);
}

void add_roofline(const Json& j, std::vector<Chart>& out) {
  Points p = roofline_points(operators_of(j));
  if (p.high <= 0) return;
  Chart c{.id = "roofline", .title = "Roofline: every operator of prefill and decode"};
  c.x = {.title = "arithmetic intensity, FLOP/B", .log = true};
  c.y = {.title = "achieved, TFLOP/s of one GPU", .log = true};
  c.caption =
      "Bubble area: share of its step's time. Under the slope memory bounds an operator, under the flat part "
      "arithmetic does; how far it lies below is launch latency, waves and efficiency.";
  const auto peak = number_at(j, "machine.dense_flop_per_s"), bandwidth = number_at(j, "machine.memory_bytes_per_s");
  if (peak && bandwidth && *peak > 0 && *bandwidth > 0) {
    const double from = std::min(0.5, p.low / 2), to = p.high * 2;
    const std::string dtype = text_at(j, "machine.compute_dtype");
    c.series.push_back(ceiling(fmt::format("datasheet: {} TFLOP/s {}, {} TB/s", tick_text(*peak / 1e12), dtype,
                                           significant(*bandwidth / 1e12, 3)),
                               *peak, *bandwidth, from, to, 7, false));
    const auto real_peak = number_at(j, "machine.calibrated_flop_per_s"),
               real_bandwidth = number_at(j, "machine.calibrated_memory_bytes_per_s");
    if (real_peak && real_bandwidth && *real_peak > 0 && *real_bandwidth > 0) {
      c.series.push_back(ceiling(fmt::format("calibrated: {} TFLOP/s, {} TB/s", significant(*real_peak / 1e12, 3),
                                             significant(*real_bandwidth / 1e12, 3)),
                                 *real_peak, *real_bandwidth, from, to, 7, true));
    }
    c.lines.push_back({true, *peak / *bandwidth, fmt::format("ridge {} FLOP/B", significant(*peak / *bandwidth, 3))});
  }
  for (Series& s : p.phases) {
    sort_by_share(s);
    c.series.push_back(std::move(s));
  }
  if (!p.without_work.empty()) {
    std::string names;
    for (const std::string& name : p.without_work) names += (names.empty() ? "" : ", ") + name;
    c.caption += fmt::format(" Without arithmetic, hence not shown: {}.", shortened(clean_utf8(names), 200));
  }
  out.push_back(std::move(c));
}

struct Part {
  std::string name{};
  std::array<double, 2> ms{};
};

/// The operators of both steps, largest first; the host's part is the remainder.
std::vector<Part> parts_of(const Json& j, const std::array<double, 2>& totals) {
  std::vector<Part> parts{};
  std::array<double, 2> sums{};
  const auto slot = [&](const std::string& name) -> Part& {
    const auto it = std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.name == name; });
    return it != parts.end() ? *it : parts.emplace_back(Part{name});
  };
  for (const Json& op : operators_of(j)) {
    const auto time = number_at(op, "time_us");
    if (!time) continue;
    const std::size_t phase = text_at(op, "phase") == "prefill" ? 0 : 1;
    slot(text_at(op, "name")).ms[phase] += *time / 1e3;
    sums[phase] += *time / 1e3;
  }
  for (std::size_t phase = 0; phase < 2; ++phase) {
    if (totals[phase] > sums[phase] * 1.001) slot("host and launches").ms[phase] += totals[phase] - sums[phase];
  }
  const auto weight = [&](const Part& p) {
    return p.ms[0] / std::max(totals[0], 1e-12) + p.ms[1] / std::max(totals[1], 1e-12);
  };
  std::stable_sort(parts.begin(), parts.end(), [&](const Part& a, const Part& b) { return weight(a) > weight(b); });
  return parts;
}

void add_breakdown(const Json& j, std::vector<Chart>& out) {
  const std::array<double, 2> totals{number_at(j, "prefill.time_ms").value_or(0),
                                     number_at(j, "decode.step_ms").value_or(0)};
  if (totals[0] <= 0 || totals[1] <= 0 || operators_of(j).empty()) return;
  std::vector<Part> parts = parts_of(j, totals);
  constexpr std::size_t kShown = 9;
  if (parts.size() > kShown + 1) {
    Part other{fmt::format("{} others", parts.size() - kShown)};
    for (std::size_t i = kShown; i < parts.size(); ++i) other.ms[0] += parts[i].ms[0], other.ms[1] += parts[i].ms[1];
    parts.resize(kShown);
    parts.push_back(other);
  }
  Chart c{.id = "breakdown", .title = "Where the time of a step goes", .stacked = true, .horizontal = true};
  c.x = {.title = "share of the step's time, %", .low = 0.0, .high = 100.0};
  c.y.categories = {fmt::format("decode step, {}", human_time(totals[1] / 1e3)),
                    fmt::format("prefill, {}", human_time(totals[0] / 1e3))};
  for (const Part& part : parts) {
    Series s{.name = part.name, .shape = Shape::kBars, .x = {0, 1}};
    for (const std::size_t phase : {1U, 0U}) {
      s.y.push_back(100 * part.ms[phase] / totals[phase]);
      s.labels.push_back(fmt::format("{}: {}, {:.1f} %", part.name, human_time(part.ms[phase] / 1e3), s.y.back()));
    }
    c.series.push_back(std::move(s));
  }
  c.caption = fmt::format(
      "Operators of all layers together, on one GPU. Prefill of {} prompts of {} tokens; one decode step of the same "
      "batch.",
      tick_text(running(j)), tick_text(number_at(j, "prompt_tokens").value_or(0)));
  out.push_back(std::move(c));
}

void add_memory(const Json& j, std::vector<Chart>& out) {
  const auto weights = number_at(j, "memory.weight_bytes"), activations = number_at(j, "memory.activation_bytes"),
             capacity = number_at(j, "memory.capacity_bytes");
  if (!weights || !capacity || !j.contains("memory_by_context") || !j["memory_by_context"].is_array()) return;
  std::array<Series, 3> parts{Series{.name = "weights", .shape = Shape::kArea, .color = 0},
                              Series{.name = "activations", .shape = Shape::kArea, .color = 4},
                              Series{.name = "KV cache and state", .shape = Shape::kArea, .color = 2}};
  for (const Json& point : j["memory_by_context"]) {
    const auto context = number_at(point, "context_tokens"), cache = number_at(point, "kv_cache_bytes");
    if (!context || !cache) continue;
    const std::array<double, 3> bytes{*weights, activations.value_or(0), *cache};
    for (std::size_t i = 0; i < 3; ++i) parts[i].x.push_back(*context), parts[i].y.push_back(bytes[i] / 1e9);
  }
  if (parts[0].x.size() < 2) return;
  const double batch = running(j);
  Chart c{.id = "memory",
          .title = fmt::format("Memory of one GPU against context, batch {}", tick_text(batch)),
          .stacked = true};
  c.x.title = "context of every sequence, tokens";
  c.y.title = "memory, GB";
  c.series.assign(parts.begin(), parts.end());
  c.lines.push_back({false, *capacity / 1e9, fmt::format("capacity {} GB", significant(*capacity / 1e9, 3))});
  const double tokens = number_at(j, "prompt_tokens").value_or(0) + number_at(j, "output_tokens").value_or(0);
  if (tokens > 0) c.lines.push_back({true, tokens, fmt::format("prompt + output: {} tokens", tick_text(tokens))});
  c.caption = fmt::format("The cache takes {} per token and sequence until a window is full.",
                          human_bytes(number_at(j, "memory.kv_cache_bytes_per_token").value_or(0)));
  out.push_back(std::move(c));
}

}  // namespace

void add_estimate_charts(const Result& result, std::vector<Chart>& out) {
  add_breakdown(result.json, out);
  add_roofline(result.json, out);
  add_memory(result.json, out);
}

}  // namespace roofcast::reports
