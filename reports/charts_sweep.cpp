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
#include "reports/sweep_verdict.h"

namespace roofcast::reports {
namespace {

std::string last_part(const std::string& key) { return key.substr(key.rfind('.') + 1); }

const std::string* value_of(const ResultPoint& point, const std::string& key) {
  for (const auto& [name, value] : point.keys) {
    if (name == key) return &value;
  }
  return nullptr;
}

/// The number at the beginning of "6 /s", "64" or "0.7", without its unit.
std::optional<double> leading_number(const std::string& text) {
  const std::size_t end = text.find(' ');
  double value = 0;
  if (parse_number(std::string_view(text).substr(0, end), value) != NumberFault::kNone) return std::nullopt;
  return value;
}

/// The key of the x axis: numeric in all points; the most natural one, else the one with the most values.
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

/// Points that agree in every key except x, ordered by x.
struct Group {
  std::string label;
  std::vector<std::pair<double, const Json*>> points;
};

using Points = std::vector<const ResultPoint*>;

std::vector<Group> groups_of(const Points& points, const std::string& x_key, const std::vector<std::string>& keys) {
  std::vector<std::string> others;
  for (const std::string& key : keys) {
    if (key != x_key) others.push_back(key);
  }
  std::map<std::string, std::size_t> index;
  std::vector<Group> groups;
  for (const ResultPoint* p : points) {
    const std::string* text = value_of(*p, x_key);
    const auto x = text ? leading_number(*text) : std::nullopt;
    if (!x) continue;
    const std::string label = point_label(*p, others);
    const auto [it, fresh] = index.emplace(label, groups.size());
    if (fresh) groups.push_back({label, {}});
    groups[it->second].points.emplace_back(*x, &p->result);
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
  ResultKey p90, p99, low, high;
};
constexpr std::array<Latency, 2> kLatencies{
    {{"ttft-sweep", "TTFT", kTtft, "p90_ttft_ms", "p99_ttft_ms", "ttft_ms_low", "ttft_ms_high"},
     {"tpot-sweep", "TPOT", kTpot, "p90_tpot_ms", "p99_tpot_ms", "tpot_ms_low", "tpot_ms_high"}}};

/// Adds a sentence to a caption.
void say(Chart& c, const std::string& sentence) { c.caption += (c.caption.empty() ? "" : " ") + sentence; }

/// At most kMaxGroups groups, chosen at even distances from first to last.
template <class T>
std::vector<T> some_of(std::vector<T> all) {
  if (all.size() <= kMaxGroups) return all;
  std::vector<T> out;
  for (std::size_t i = 0; i < kMaxGroups; ++i) out.push_back(std::move(all[i * (all.size() - 1) / (kMaxGroups - 1)]));
  return out;
}

Chart latency_chart(const Latency& latency, const std::string& x_key, const std::vector<Group>& groups) {
  const char* name = latency.name;
  Chart c{
      .id = latency.id, .title = fmt::format("{} against {}", name, words_of_key(x_key)), .x = x_axis(x_key, groups)};
  c.y = {.title = fmt::format("{}, ms", name)};
  double low = 1e300, high = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const int color = static_cast<int>(g);
    const std::string prefix = groups[g].label.empty() ? std::string(name) : groups[g].label;
    Series middle = line_of(groups[g], prefix, latency.middle, color);
    const bool alone = groups.size() == 1;  // then each percentile may have its own colour
    Series nineties = line_of(groups[g], prefix + ", p90", latency.p90, alone ? 4 : color, true);
    const Series tail = line_of(groups[g], prefix + ", p99", latency.p99, alone ? 1 : color, true);
    if (tail.x == middle.x && !tail.x.empty()) {
      c.bands.push_back({prefix + ", median to p99", middle.x, middle.y, tail.y, color});
      middle.name += ", median";
    }
    if (groups.size() <= 4) {  // of estimates: 90 % of deployments like it
      const Series low_end = line_of(groups[g], "", latency.low, color),
                   high_end = line_of(groups[g], "", latency.high, color);
      if (!low_end.x.empty() && low_end.x == high_end.x)
        c.bands.push_back(
            {groups.size() == 1 ? "90 % of deployments like it" : "", low_end.x, low_end.y, high_end.y, color});
    }
    for (const Series* s : std::array<const Series*, 2>{&middle, &tail}) {
      for (const double y : s->y) low = std::min(low, y), high = std::max(high, y);
    }
    c.series.push_back(std::move(middle));
    if (groups.size() <= 2) c.series.push_back(std::move(nineties));
    if (groups.size() <= 4 && !tail.x.empty()) c.series.push_back(tail);
  }
  if (groups.size() > 1 && !c.bands.empty() && c.bands.front().name.empty())
    c.caption = "Shaded: 90 % of deployments like it.";
  if (low > 0 && high / low > 30) c.y.log = true;
  return c;
}

Chart throughput_chart(const std::string& x_key, const std::vector<Group>& groups) {
  Chart c{.id = "throughput-sweep",
          .title = fmt::format("Throughput against {}", words_of_key(x_key)),
          .x = x_axis(x_key, groups)};
  c.y.title = "output tokens/s of the whole deployment";
  for (std::size_t g = 0; g < groups.size(); ++g) {
    c.series.push_back(line_of(groups[g], groups[g].label.empty() ? "output tokens/s" : groups[g].label, kThroughput,
                               static_cast<int>(g)));
  }
  return c;
}

/// TPOT without speculation over TPOT with k drafts, one line per acceptance; each line needs a point with k = 0.
void add_speculation(const std::string& x_key, const std::vector<Group>& groups, std::vector<Chart>& out) {
  if (last_part(x_key) != "num_speculative_tokens") return;
  Chart c{.id = "speculation",
          .title = "Speed-up of speculative decoding",
          .x = {.title = "draft tokens per step, k"},
          .y = {.title = "TPOT without over TPOT with, ratio"}};
  for (const Group& group : groups) {
    const Series tpot = line_of(group, group.label.empty() ? "speed-up" : group.label, kTpot, 0);
    if (tpot.x.empty() || tpot.x[0] != 0 || tpot.y[0] <= 0) continue;
    Series s = tpot;
    for (double& y : s.y) y = y > 0 ? tpot.y[0] / y : std::nan("");
    c.series.push_back(std::move(s));
  }
  const std::size_t lines = c.series.size();
  c.series = some_of(std::move(c.series));
  for (std::size_t i = 0; i < c.series.size(); ++i) c.series[i].color = static_cast<int>(i);
  if (lines > c.series.size()) say(c, fmt::format("{} of {} settings are drawn.", c.series.size(), lines));
  c.lines.push_back({false, 1.0, "no gain"});
  if (!c.series.empty()) out.push_back(std::move(c));
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

namespace {

/// Output tokens/s per user.
std::optional<double> per_user(const Json& result) {
  auto user = number_at(result, "output_tokens_per_s_per_user");
  if (const auto tpot = number_at(result, kTpot); !user && tpot && *tpot > 0) user = 1000.0 / *tpot;
  return user;
}

/// The keys that describe the request.
std::vector<std::string> work_keys(std::vector<std::string> keys) {
  std::erase_if(keys, [](const std::string& key) { return !is_work_key(key); });
  return keys;
}

/// Only the points that no point of the same series beats in both x and y, in the order of x.
void keep_frontier(Series& s) {
  std::vector<std::size_t> order(s.x.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return s.x[a] != s.x[b] ? s.x[a] > s.x[b] : s.y[a] > s.y[b]; });
  Series best;
  for (const std::size_t i : order) {
    if (!best.y.empty() && s.y[i] <= best.y.back()) continue;
    best.x.push_back(s.x[i]), best.y.push_back(s.y[i]), best.labels.push_back(s.labels[i]);
  }
  for (auto* values : {&best.x, &best.y}) std::reverse(values->begin(), values->end());
  std::reverse(best.labels.begin(), best.labels.end());
  s.x = std::move(best.x), s.y = std::move(best.y), s.labels = std::move(best.labels);
}

/// The frontier of each kind of request, if the points have several kinds.
Chart pareto_by_work(Chart c, const std::vector<ResultPoint>& points, const std::vector<std::string>& keys,
                     const std::vector<std::string>& work) {
  std::vector<std::string> others;
  for (const std::string& key : keys)
    if (!is_work_key(key)) others.push_back(key);
  std::map<std::string, std::size_t> index;
  for (const ResultPoint& p : points) {
    if (!is_usable(p.result)) continue;
    const auto user = per_user(p.result), gpu = number_at(p.result, "output_tokens_per_s_per_gpu");
    if (!user || !gpu) continue;
    const std::string name = point_label(p, work);
    const auto [at, fresh] = index.emplace(name, c.series.size());
    if (fresh) {
      c.series.push_back({.name = name,
                          .shape = Shape::kLinePoints,
                          .write_labels = true,
                          .color = static_cast<int>(index.size() - 1) % static_cast<int>(kPalette)});
    }
    Series& s = c.series[at->second];
    s.x.push_back(*user), s.y.push_back(*gpu), s.labels.push_back(shortened(point_label(p, others), 40));
  }
  const std::size_t kinds = c.series.size();
  if (kinds > kMaxGroups) {  // from the first to the last
    for (std::size_t i = 0; i < kMaxGroups; ++i) {
      Series& kept = c.series[i * (kinds - 1) / (kMaxGroups - 1)];
      kept.color = static_cast<int>(i);
      if (&kept != &c.series[i]) c.series[i] = std::move(kept);
    }
    c.series.resize(kMaxGroups);
  }
  for (Series& s : c.series) keep_frontier(s);
  c.caption = "One frontier for each kind of request: nothing beats its points in both.";
  if (kinds > kMaxGroups)
    c.caption += fmt::format(" {} of {} kinds are drawn, from the first to the last.", kMaxGroups, kinds);
  return c;
}

}  // namespace

Chart pareto_chart(const std::string& id, const std::vector<ResultPoint>& points) {
  Chart c{.id = id, .title = "Throughput per GPU against speed per user"};
  c.x.title = "output tokens/s of one user (1 / TPOT)";
  c.y.title = "output tokens/s per GPU";
  const std::vector<std::string> keys = varying_keys(points), work = work_keys(keys);
  if (!work.empty()) return pareto_by_work(std::move(c), points, keys, work);
  struct Point {
    double x, y;
    std::string label;
  };
  std::vector<Point> all;
  std::map<std::string, Series> by_gpu;
  std::size_t unusable = 0;
  for (const ResultPoint& p : points) {
    if (!is_usable(p.result)) {
      ++unusable;
      continue;
    }
    const auto user = per_user(p.result);
    const auto gpu = number_at(p.result, "output_tokens_per_s_per_gpu");
    if (!user || !gpu) continue;
    all.push_back({*user, *gpu, point_label(p, keys)});
    const std::string* name = value_of(p, "gpu");
    Series& s = by_gpu[name != nullptr ? *name : "deployments"];
    s.x.push_back(*user), s.y.push_back(*gpu), s.labels.push_back(all.back().label);
  }
  Series best{.name = "frontier", .shape = Shape::kLinePoints, .write_labels = true, .color = 7};
  for (const Point& p : all) best.x.push_back(p.x), best.y.push_back(p.y), best.labels.push_back(p.label);
  keep_frontier(best);
  for (std::string& label : best.labels) label = shortened(label, 40);
  const bool many = all.size() > kMaxPoints;
  if (many) {
    for (auto& [name, s] : by_gpu) keep_frontier(s);
  }
  c.caption = fmt::format(
      "{} deployments{}; nothing beats those on the frontier in both.{}", all.size(),
      many ? fmt::format(", of which the frontier of each {} is drawn",
                         by_gpu.contains("deployments") ? "setting" : "GPU")
           : "",
      unusable > 0 ? fmt::format(" {} that do not fit, are saturated or miss their objectives are left out.", unusable)
                   : "");
  int color = 0;
  for (auto& [name, s] : by_gpu) {
    s.name = name, s.shape = many ? Shape::kLinePoints : Shape::kPoints, s.color = color;
    color = (color + 1) % static_cast<int>(kPalette);
    if (color == 7) ++color;  // the frontier's
    c.series.push_back(std::move(s));
  }
  c.series.push_back(std::move(best));
  return c;
}

namespace {

/// The cheapest point of each GPU for each kind of request, if there are several GPUs.
void add_cost_by_gpu(const std::vector<ResultPoint>& points, std::vector<Chart>& out) {
  constexpr std::size_t kMostBars = 48;
  const std::vector<std::string> work = work_keys(varying_keys(points));
  std::vector<std::string> kinds;
  std::map<std::string, std::map<std::string, double>> cheapest;  // by kind of request, then by GPU
  std::set<std::string> gpus;
  for (const ResultPoint& p : points) {
    const std::string* gpu = value_of(p, "gpu");
    const auto cost = number_at(p.result, "usd_per_million_total_tokens");
    if (gpu == nullptr || !cost || *cost <= 0 || !is_usable(p.result)) continue;
    const std::string kind = point_label(p, work);
    if (!cheapest.contains(kind)) kinds.push_back(kind);
    gpus.insert(*gpu);
    const auto [it, fresh] = cheapest[kind].emplace(*gpu, *cost);
    if (!fresh) it->second = std::min(it->second, *cost);
  }
  if (gpus.size() < 2) return;
  Chart c{.id = "cost",
          .title = "Cost of a million tokens by GPU",
          .x = {.title = "USD per million tokens, input and output"},
          .horizontal = true};
  c.caption = "The cheapest point of each GPU that can be run, whatever its latency.";
  const std::size_t shown = std::max<std::size_t>(1, std::min(kinds.size(), kMostBars / gpus.size()));
  if (shown < kinds.size())
    c.caption += fmt::format(" The first {} of {} kinds of request are drawn.", shown, kinds.size());
  Series s{.name = "cost", .shape = Shape::kBars, .write_labels = true};
  for (std::size_t i = shown; i-- > 0;) {
    const auto& costs = cheapest[kinds[i]];
    std::vector<std::pair<std::string, double>> sorted(costs.begin(), costs.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    for (const auto& [gpu, usd] : sorted) {
      const std::string name = kinds[i].empty() ? gpu : gpu + ", " + kinds[i];
      s.x.push_back(static_cast<double>(c.y.categories.size())), s.y.push_back(usd);
      s.labels.push_back(fmt::format("{}: {} USD", name, tick_text(usd)));
      c.y.categories.push_back(name);
    }
  }
  c.series.push_back(std::move(s));
  out.push_back(std::move(c));
}

/// A selection of many values at even steps of a log axis, including the first and the last.
std::set<double> spread(const std::set<double>& values) {
  constexpr std::size_t kMost = 40;
  if (values.size() <= kMost || *values.begin() <= 0) return values;
  std::set<double> out;
  const double low = *values.begin(), ratio = *values.rbegin() / low;
  for (std::size_t i = 0; i < kMost; ++i) {
    const double at = low * std::pow(ratio, static_cast<double>(i) / (kMost - 1));
    const auto next = values.lower_bound(at * (1 - 1e-9));
    out.insert(next == values.end() ? *values.rbegin() : *next);
  }
  return out;
}

bool fits(const ResultPoint& p) { return !p.result.contains("fits") || p.result["fits"] != false; }

/// Two numeric keys against each other: which points can run, miss an objective, or do not fit.
void add_map(const std::vector<ResultPoint>& points, const std::string& x_key, const std::vector<std::string>& keys,
             std::vector<Chart>& out) {
  std::string y_key;
  std::vector<std::string> others;
  for (const std::string& key : keys) {
    if (key != x_key) others.push_back(key);
  }
  y_key = x_key_of(points, others);
  if (x_key.empty() || y_key.empty() || others.size() > 1) return;
  Chart c{.id = "map",
          .title = fmt::format("What can be run: {} against {}", words_of_key(y_key), words_of_key(x_key))};
  c.x = {.title = words_of_key(x_key), .log = true};
  c.y = {.title = words_of_key(y_key), .log = true};
  Series good{.name = "can be run", .shape = Shape::kPoints, .color = 2},
      late{.name = "saturated, or misses an objective", .shape = Shape::kPoints, .color = 4},
      unfit{.name = "does not fit", .shape = Shape::kPoints, .color = 1};
  const auto number_of = [](const ResultPoint& p, const std::string& key) {
    const std::string* text = value_of(p, key);
    return text != nullptr ? leading_number(*text) : std::nullopt;
  };
  std::set<double> xs, ys;
  for (const ResultPoint& p : points) {
    if (const auto x = number_of(p, x_key)) xs.insert(*x);
    if (const auto y = number_of(p, y_key)) ys.insert(*y);
  }
  const std::set<double> columns = spread(xs), rows = spread(ys);
  if (columns.size() < xs.size() || rows.size() < ys.size())
    c.caption = fmt::format("{} of {} values of {}, {} of {} of {}.", columns.size(), xs.size(), words_of_key(x_key),
                            rows.size(), ys.size(), words_of_key(y_key));
  for (const ResultPoint& p : points) {
    const auto at = number_of(p, x_key), up = number_of(p, y_key);
    if (!at || !up || !columns.contains(*at) || !rows.contains(*up)) continue;
    Series& s = is_usable(p.result) ? good : fits(p) ? late : unfit;
    s.x.push_back(*at), s.y.push_back(*up);
    const auto tpot = number_at(p.result, kTpot);
    s.labels.push_back(point_label(p, keys) + (tpot ? fmt::format(": TPOT {} ms", tick_text(*tpot)) : ""));
  }
  c.series = {std::move(good), std::move(late), std::move(unfit)};
  out.push_back(std::move(c));
}

/// The key that splits the points into the fewest groups, a GPU before others; if all have more values than can be
/// drawn, the first key with the fewest.
std::string splitting_key(const Points& points, const std::string& x_key, const std::vector<std::string>& keys) {
  std::string chosen;
  std::size_t fewest = points.size() + 1;
  for (const std::string& key : keys) {
    if (key == x_key) continue;
    std::set<std::string> values;
    for (const ResultPoint* p : points) {
      if (const std::string* v = value_of(*p, key); v != nullptr && values.size() <= kMaxGroups) values.insert(*v);
    }
    const std::size_t count = last_part(key) == "gpu" && values.size() <= kMaxGroups ? 2 : values.size();
    if (count >= 2 && count < fewest) chosen = key, fewest = count;
  }
  return chosen;
}

/// Points that agree in all keys but two.
struct Slice {
  std::vector<std::string> at;  ///< the values of the other keys
  Points points = {};           ///< those that fit
  std::size_t unfit = 0;
};

/// Ordered by their first points; each group has a point that fits.
std::vector<Slice> slices_of(const Points& points, const std::vector<std::string>& held) {
  std::map<std::vector<std::string>, std::size_t> index;
  std::vector<Slice> all;
  for (const ResultPoint* p : points) {
    std::vector<std::string> at;
    for (const std::string& key : held) {
      const std::string* value = value_of(*p, key);
      at.push_back(value != nullptr ? *value : "");
    }
    const auto [it, fresh] = index.emplace(at, all.size());
    if (fresh) all.push_back({std::move(at), {}});
    Slice& slice = all[it->second];
    if (fits(*p)) {
      slice.points.push_back(p);
    } else {
      ++slice.unfit;
    }
  }
  std::erase_if(all, [](const Slice& slice) { return slice.points.empty(); });
  return all;
}

/// The groups that a reader can choose, largest first. If there are more than 64, an even selection.
std::vector<Slice> offered(std::vector<Slice> all) {
  constexpr std::size_t kMost = 64;
  std::vector<Slice> out;
  const std::size_t count = std::min(kMost, all.size());
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(std::move(all[count > 1 ? i * (all.size() - 1) / (count - 1) : 0]));
  const auto fullest = std::max_element(
      out.begin(), out.end(), [](const Slice& a, const Slice& b) { return a.points.size() < b.points.size(); });
  if (fullest != out.end()) std::rotate(out.begin(), fullest, fullest + 1);
  return out;
}

void say_unfit(Chart& c, std::size_t unfit) {
  if (unfit > 0)
    say(c, unfit == 1 ? "One point that does not fit is left out."
                      : fmt::format("{} points that do not fit are left out.", unfit));
}

/// A chart of at most kMaxGroups lines.
std::vector<Chart> line_charts(const std::string& x_key, const std::vector<Group>& groups) {
  std::vector<Chart> out;
  for (const Latency& latency : kLatencies) out.push_back(latency_chart(latency, x_key, groups));
  out.push_back(throughput_chart(x_key, groups));
  return out;
}

/// Line charts of a sweep that has more settings than a chart has lines. One key has a line for each of its values. The
/// reader chooses the values of the other keys. `points` are all points, whether they fit or not.
std::vector<Chart> charts_with_views(const Points& points, const std::string& x_key,
                                     const std::vector<std::string>& keys) {
  constexpr std::size_t kMostPoints =
      3840;  // of the views of one chart, which are a third of the bytes of a large page
  Points fitting;
  std::copy_if(points.begin(), points.end(), std::back_inserter(fitting),
               [](const ResultPoint* p) { return fits(*p); });
  const std::string split = splitting_key(fitting, x_key, keys);
  std::vector<std::string> held = keys;
  std::erase_if(held, [&](const std::string& key) { return key == x_key || key == split; });
  std::vector<Slice> all = slices_of(points, held);
  const std::size_t combinations = all.size();
  const std::vector<Slice> slices = offered(std::move(all));
  std::vector<std::string> names;
  for (const std::string& key : held) names.push_back(words_of_key(key));
  std::vector<Chart> out;
  for (const Slice& slice : slices) {
    std::vector<Group> groups = groups_of(slice.points, x_key, {x_key, split});
    const std::size_t lines = groups.size();
    groups = some_of(std::move(groups));
    std::vector<Chart> charts = line_charts(x_key, groups);
    for (std::size_t i = 0; i < charts.size(); ++i) {
      Chart& c = charts[i];
      c.held = names, c.at = slice.at;
      std::string drawn_for;
      for (std::size_t k = 0; k < held.size(); ++k)
        drawn_for += fmt::format("{}{} {}", k == 0 ? "Drawn for " : ", ", names[k], slice.at[k]);
      if (!held.empty()) say(c, drawn_for + ".");
      if (combinations > slices.size())
        say(c, fmt::format("{} of {} combinations can be chosen.", slices.size(), combinations));
      if (lines > groups.size())
        say(c, fmt::format("{} of {} values of {} are drawn.", groups.size(), lines, words_of_key(split)));
      say_unfit(c, slice.unfit);
      if (&slice == &slices.front()) {
        out.push_back(std::move(c));
      } else if (clean(c)) {
        // thin() keeps at least a fourth of the limit for each line.
        thin(c, std::max<std::size_t>(32, 4 * kMostPoints / slices.size() / std::max<std::size_t>(4, groups.size())));
        out[i].views.push_back(std::move(c));
      }
    }
  }
  return out;
}

}  // namespace

void add_sweep_charts(const Result& result, std::vector<Chart>& out) {
  const std::vector<std::string> keys = varying_keys(result.points);
  const std::string x_key = x_key_of(result.points, keys);
  Points all, runnable;  // what does not fit is in the verdict and on the map, in no line
  for (const ResultPoint& p : result.points) {
    all.push_back(&p);
    if (fits(p)) runnable.push_back(&p);
  }
  if (!x_key.empty()) {
    const std::vector<Group> groups = groups_of(runnable, x_key, keys);
    const bool many = groups.size() > kMaxGroups;
    std::vector<Chart> lines = many ? charts_with_views(all, x_key, keys) : line_charts(x_key, groups);
    for (Chart& c : lines) {
      if (!many) say_unfit(c, all.size() - runnable.size());
      out.push_back(std::move(c));
    }
    add_speculation(x_key, groups, out);
    add_map(result.points, x_key, keys, out);
  }
  if (result.points.size() > 1) out.push_back(pareto_chart("pareto", result.points));
  add_cost_by_gpu(result.points, out);
}

}  // namespace roofcast::reports
