// Plots of a sweep: latency and throughput against what varies, Pareto frontier, cost by GPU, speculation.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/number_text.h"
#include "base/text.h"
#include "reports/charts.h"
#include "reports/html_text.h"

namespace roofcast {
namespace {

std::string last_part(const std::string& key) { return key.substr(key.rfind('.') + 1); }

const std::string* value_of(const ResultPoint& point, const std::string& key) {
  for (const auto& [name, value] : point.keys) {
    if (name == key) return &value;
  }
  return nullptr;
}

/// "6 /s", "64", "0.7": the number in front, whatever unit follows.
std::optional<double> leading_number(const std::string& text) {
  const std::size_t end = text.find(' ');
  double value = 0;
  if (parse_number(std::string_view(text).substr(0, end), value) != NumberFault::kNone) return std::nullopt;
  return value;
}

/// The key that goes on x: numeric in every point that has it, and the most natural or most finely divided one.
std::string x_key_of(const std::vector<ResultPoint>& points, const std::vector<std::string>& keys) {
  static const std::vector<std::string> kNatural{"rate",    "concurrency",   "batch",       "num_speculative_tokens",
                                                 "context", "prompt_tokens", "max_num_seqs"};
  std::string best;
  double best_score = 0;
  for (const std::string& key : keys) {
    std::set<double> values;
    bool numeric = true;
    for (const ResultPoint& p : points) {
      const std::string* text = value_of(p, key);
      if (text == nullptr) continue;
      const auto v = leading_number(*text);
      numeric = numeric && v.has_value();
      if (v) values.insert(*v);
    }
    if (!numeric || values.size() < 2) continue;
    const auto natural = std::find(kNatural.begin(), kNatural.end(), last_part(key));
    const double score =
        static_cast<double>(values.size()) +
        (natural == kNatural.end() ? 0 : 1000.0 - 10.0 * static_cast<double>(natural - kNatural.begin()));
    if (score > best_score) best = key, best_score = score;
  }
  return best;
}

/// Points that agree in every key but x, in the order of x.
struct Group {
  std::string label;
  std::vector<std::pair<double, const Json*>> points;
};

std::vector<Group> groups_of(const std::vector<ResultPoint>& points, const std::string& x_key,
                             const std::vector<std::string>& keys) {
  std::vector<std::string> others;
  for (const std::string& key : keys) {
    if (key != x_key) others.push_back(key);
  }
  std::map<std::string, std::size_t> index;
  std::vector<Group> groups;
  for (const ResultPoint& p : points) {
    const std::string* text = value_of(p, x_key);
    const auto x = text ? leading_number(*text) : std::nullopt;
    if (!x) continue;
    const std::string label = point_label(p, others);
    const auto [it, fresh] = index.emplace(label, groups.size());
    if (fresh) groups.push_back({label, {}});
    groups[it->second].points.emplace_back(*x, &p.result);
  }
  for (Group& g : groups) {
    std::stable_sort(g.points.begin(), g.points.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  return groups;
}

template <class Key>
Series line_of(const Group& group, std::string name, const Key& key, int color, bool dashed = false) {
  Series s{.name = std::move(name), .shape = Shape::kLinePoints, .dashed = dashed, .color = color};
  for (const auto& [x, result] : group.points) {
    if (const auto v = number_at(*result, key)) s.x.push_back(x), s.y.push_back(*v);
  }
  return s;
}

constexpr std::size_t kMaxGroups = 8;

Axis x_axis(const std::string& key, const std::vector<Group>& groups) {
  double low = 1e300, high = 0;
  for (const Group& g : groups) {
    for (const auto& [x, result] : g.points) low = std::min(low, x), high = std::max(high, x);
  }
  Axis axis{.title = words_of_key(key), .log = low > 0 && high / low >= 16};
  const std::string last = last_part(key);
  if (last == "rate") axis.title = "request rate, requests/s";
  if (last == "concurrency") axis.title = "requests in flight";
  if (last == "batch") axis.title = "batch, sequences";
  return axis;
}

struct Latency {
  const char *id, *name;
  Headline middle;
  ResultKey p90, p99;
};
constexpr std::array<Latency, 2> kLatencies{{{"ttft-sweep", "TTFT", kTtft, "p90_ttft_ms", "p99_ttft_ms"},
                                             {"tpot-sweep", "TPOT", kTpot, "p90_tpot_ms", "p99_tpot_ms"}}};

Chart latency_chart(const Latency& latency, const std::string& x_key, const std::vector<Group>& groups) {
  const char* name = latency.name;
  Chart c{
      .id = latency.id, .title = fmt::format("{} against {}", name, words_of_key(x_key)), .x = x_axis(x_key, groups)};
  c.y = {.title = fmt::format("{}, ms", name)};
  double low = 1e300, high = 0;
  for (std::size_t g = 0; g < groups.size() && g < kMaxGroups; ++g) {
    const int color = static_cast<int>(g);
    const std::string prefix = groups[g].label.empty() ? std::string(name) : groups[g].label;
    Series middle = line_of(groups[g], prefix, latency.middle, color);
    const bool alone = groups.size() == 1;  // then the percentiles may have colours of their own
    Series nineties = line_of(groups[g], prefix + ", p90", latency.p90, alone ? 4 : color, true);
    const Series tail = line_of(groups[g], prefix + ", p99", latency.p99, alone ? 1 : color, true);
    if (tail.x == middle.x && !tail.x.empty()) {
      c.bands.push_back({prefix + ", median to p99", middle.x, middle.y, tail.y, color});
      middle.name += ", median";
    }
    for (const Series* s : std::array<const Series*, 2>{&middle, &tail}) {
      for (const double y : s->y) low = std::min(low, y), high = std::max(high, y);
    }
    c.series.push_back(std::move(middle));
    if (groups.size() <= 2) c.series.push_back(std::move(nineties));
    if (groups.size() <= 4 && !tail.x.empty()) c.series.push_back(tail);
  }
  if (low > 0 && high / low > 30) c.y.log = true;
  if (groups.size() > kMaxGroups)
    c.caption = fmt::format("The first {} of {} settings are drawn.", kMaxGroups, groups.size());
  return c;
}

Chart throughput_chart(const std::string& x_key, const std::vector<Group>& groups) {
  Chart c{.id = "throughput-sweep",
          .title = fmt::format("Throughput against {}", words_of_key(x_key)),
          .x = x_axis(x_key, groups)};
  c.y.title = "output tokens/s of the whole deployment";
  for (std::size_t g = 0; g < groups.size() && g < kMaxGroups; ++g) {
    c.series.push_back(line_of(groups[g], groups[g].label.empty() ? "output tokens/s" : groups[g].label, kThroughput,
                               static_cast<int>(g)));
  }
  return c;
}

/// TPOT without speculation over TPOT with k drafts, one line an acceptance; needs a point with k = 0 of each.
void add_speculation(const std::string& x_key, const std::vector<Group>& groups, std::vector<Chart>& out) {
  if (last_part(x_key) != "num_speculative_tokens") return;
  Chart c{.id = "speculation",
          .title = "Speed-up of speculative decoding",
          .x = {.title = "draft tokens a step, k"},
          .y = {.title = "TPOT without over TPOT with, ratio"}};
  for (std::size_t g = 0; g < groups.size() && g < kMaxGroups; ++g) {
    const Series tpot =
        line_of(groups[g], groups[g].label.empty() ? "speed-up" : groups[g].label, kTpot, static_cast<int>(g));
    if (tpot.x.empty() || tpot.x[0] != 0 || tpot.y[0] <= 0) continue;
    Series s = tpot;
    for (double& y : s.y) y = y > 0 ? tpot.y[0] / y : std::nan("");
    c.series.push_back(std::move(s));
  }
  c.lines.push_back({false, 1.0, "no gain"});
  if (!c.series.empty()) out.push_back(std::move(c));
}

/// The cheapest point of each GPU, where GPUs differ.
void add_cost_by_gpu(const std::vector<ResultPoint>& points, std::vector<Chart>& out) {
  std::map<std::string, double> cheapest;
  for (const ResultPoint& p : points) {
    const std::string* gpu = value_of(p, "gpu");
    const auto cost = number_at(p.result, "usd_per_million_output_tokens");
    if (gpu == nullptr || !cost || *cost <= 0) continue;
    const auto [it, fresh] = cheapest.emplace(*gpu, *cost);
    if (!fresh) it->second = std::min(it->second, *cost);
  }
  if (cheapest.size() < 2) return;
  Chart c{.id = "cost",
          .title = "Cost of a million output tokens by GPU",
          .x = {.title = "USD per million output tokens"},
          .horizontal = true};
  c.caption = "The cheapest point of each GPU, whatever its latency.";
  Series s{.name = "cost", .shape = Shape::kBars};
  for (const auto& [gpu, usd] : cheapest) {
    s.x.push_back(static_cast<double>(c.y.categories.size())), s.y.push_back(usd);
    s.labels.push_back(fmt::format("{}: {} USD", gpu, tick_text(usd)));
    c.y.categories.push_back(gpu);
  }
  c.series.push_back(std::move(s));
  out.push_back(std::move(c));
}

}  // namespace

std::string words_of_key(const std::string& dotted_key) {
  std::string out = last_part(dotted_key);
  std::replace(out.begin(), out.end(), '_', ' ');
  if (out == "value" || out == "mean") out = words_of_key(dotted_key.substr(0, dotted_key.rfind('.')));
  return out;
}

std::vector<std::string> varying_keys(const std::vector<ResultPoint>& points) {
  std::vector<std::string> order;
  std::map<std::string, std::set<std::string>> values;
  for (const ResultPoint& p : points) {
    for (const auto& [key, value] : p.keys) {
      if (values[key].empty()) order.push_back(key);
      if (values[key].size() < 3) values[key].insert(value);
    }
  }
  std::erase_if(order, [&](const std::string& key) { return values[key].size() < 2; });
  return order;
}

std::string point_label(const ResultPoint& point, std::span<const std::string> keys) {
  std::string out;
  for (const std::string& key : keys) {
    const std::string* value = value_of(point, key);
    if (value == nullptr) continue;
    const bool named = leading_number(*value).has_value();
    out += (out.empty() ? "" : ", ") + (named ? words_of_key(key) + " " : "") + *value;
  }
  return out;
}

Chart pareto_chart(const std::string& id, const std::vector<ResultPoint>& points) {
  Chart c{.id = id, .title = "Throughput of a GPU against speed for a user"};
  c.x.title = "output tokens/s of one user (1 / TPOT)";
  c.y.title = "output tokens/s and GPU";
  const std::vector<std::string> keys = varying_keys(points);
  Series all{.name = "deployments", .shape = Shape::kPoints, .color = 7};
  for (const ResultPoint& p : points) {
    auto user = number_at(p.result, "output_tokens_per_s_per_user");
    if (const auto tpot = number_at(p.result, kTpot); !user && tpot && *tpot > 0) user = 1000.0 / *tpot;
    const auto gpu = number_at(p.result, "output_tokens_per_s_per_gpu");
    if (!user || !gpu) continue;
    all.x.push_back(*user), all.y.push_back(*gpu), all.labels.push_back(point_label(p, keys));
  }
  std::vector<std::size_t> order(all.x.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return all.x[a] != all.x[b] ? all.x[a] > all.x[b] : all.y[a] > all.y[b];
  });
  Series best{.name = "frontier", .shape = Shape::kLinePoints, .write_labels = true, .color = 1};
  for (const std::size_t i : order) {
    if (!best.y.empty() && all.y[i] <= best.y.back()) continue;
    best.x.push_back(all.x[i]), best.y.push_back(all.y[i]), best.labels.push_back(shortened(all.labels[i], 40));
  }
  std::reverse(best.x.begin(), best.x.end()), std::reverse(best.y.begin(), best.y.end()),
      std::reverse(best.labels.begin(), best.labels.end());
  c.caption = fmt::format("{} deployments; nothing beats those on the frontier in both.", all.x.size());
  c.series = {std::move(all), std::move(best)};
  return c;
}

void add_sweep_charts(const Result& result, std::vector<Chart>& out) {
  const std::vector<std::string> keys = varying_keys(result.points);
  const std::string x_key = x_key_of(result.points, keys);
  if (!x_key.empty()) {
    const std::vector<Group> groups = groups_of(result.points, x_key, keys);
    for (const Latency& latency : kLatencies) out.push_back(latency_chart(latency, x_key, groups));
    out.push_back(throughput_chart(x_key, groups));
    add_speculation(x_key, groups, out);
  }
  if (result.points.size() > 1) out.push_back(pareto_chart("pareto", result.points));
  add_cost_by_gpu(result.points, out);
}

}  // namespace roofcast
