// Plots of a plan and of a ladder of techniques.

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "reports/charts.h"
#include "reports/html_text.h"
#include "reports/table.h"

namespace roofcast::reports {
namespace {

std::string name_of_rung(const ResultPoint& rung) { return text_at(rung.result, "name"); }

/// The first and last rung are whole bars. What each technique adds or saves floats between them.
Chart waterfall(const std::vector<ResultPoint>& rungs, const char* id, const char* title, const char* unit,
                ResultKey key, bool less_is_better) {
  Chart c{.id = id, .title = title, .x = {.title = unit}, .horizontal = true};
  Series whole{.name = "before and after", .shape = Shape::kBars, .color = 7},
      better{.name = "better", .shape = Shape::kBars, .color = 2},
      worse{.name = "worse", .shape = Shape::kBars, .color = 1};
  std::vector<std::pair<std::string, double>> steps;
  std::vector<const Json*> results;
  for (const ResultPoint& rung : rungs) {
    const auto v = number_at(rung.result, key);
    if (!v) continue;
    steps.emplace_back(shortened(name_of_rung(rung), 40), *v);
    results.push_back(&rung.result);
  }
  if (steps.size() < 2) return c;
  // The gain of a rung is relative to the last rung that was kept.
  const auto base_of = [&](std::size_t i) {
    const auto rate = number_at(*results[i], "output_tokens_per_s"), gain = number_at(*results[i], "throughput_gain");
    for (std::size_t k = i; rate && gain && *gain > 0 && k-- > 0;) {
      const auto other = number_at(*results[k], "output_tokens_per_s");
      if (other && std::abs(*other * *gain / *rate - 1) < 1e-6) return k;
    }
    return i - 1;
  };
  const double rows = static_cast<double>(steps.size());
  const auto add = [&](Series& s, double row, double from, double to, const std::string& label) {
    s.x.push_back(row), s.base.push_back(from), s.y.push_back(to), s.labels.push_back(label);
  };
  c.y.categories.assign(steps.size() + 1, "");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double row = rows - static_cast<double>(i), value = steps[i].second,
                 before = i == 0 ? 0 : steps[base_of(i)].second;
    c.y.categories[static_cast<std::size_t>(row)] = steps[i].first;
    const bool good = (value < before) == less_is_better;
    const std::string text = i == 0 ? fmt::format("{}: {}", steps[i].first, tick_text(value))
                                    : fmt::format("{}: {} to {}", steps[i].first, tick_text(before), tick_text(value));
    add(i == 0 ? whole : good ? better : worse, row, before, value, text);
  }
  c.y.categories[0] = "all together";
  add(whole, 0, 0, steps.back().second, fmt::format("all together: {}", tick_text(steps.back().second)));
  // Gains multiply, so with many rungs the axis is logarithmic: equal lengths are equal factors.
  std::vector<double> values;
  for (const auto& [name, value] : steps) values.push_back(value);
  c.x.log = wants_log(values);
  for (Series* s : {&whole, &better, &worse}) s->write_labels = true;
  c.series = {std::move(whole), std::move(better), std::move(worse)};
  return c;
}

/// One point for each entry that has both numbers. The hover text says which objective it misses.
Series frontier_series(const std::vector<const Json*>& points, std::string name, Shape shape, ResultKey key) {
  Series s{.name = std::move(name), .shape = shape};
  for (const Json* p : points) {
    const auto x = number_at(*p, "output_tokens_per_s_per_user"), y = number_at(*p, key);
    if (!x || !y) continue;
    s.x.push_back(*x), s.y.push_back(*y);
    const bool met = p->contains("objectives_met") && (*p)["objectives_met"] == true;
    s.labels.push_back(text_at(*p, "layout") + (met ? "" : " (misses)"));
  }
  return s;
}

/// The frontier of each GPU in its own colour, and the common frontier. A result with only the common frontier is drawn
/// as points instead of lines.
Chart frontier_chart(const char* id, const char* title, const Json& frontier, const Json* by_gpu, const char* unit,
                     ResultKey key) {
  Chart c{.id = id, .title = title};
  c.x.title = "output tokens/s of one user";
  c.y.title = unit;
  std::map<std::string, std::vector<const Json*>> gpus;
  for (const Json& p : by_gpu != nullptr ? *by_gpu : frontier) gpus[text_at(p, "gpu")].push_back(&p);
  int color = 0;
  for (const auto& [gpu, points] : gpus) {
    Series& s = c.series.emplace_back(
        frontier_series(points, gpu, by_gpu != nullptr ? Shape::kLinePoints : Shape::kPoints, key));
    s.write_labels = true, s.color = color;
    color = (color + 1) % static_cast<int>(kPalette);
    if (color == 7) ++color;  // the frontier's
  }
  c.caption = "Simulated loads that no other load beats in both. (misses): an objective is missed there.";
  if (by_gpu != nullptr && gpus.size() > 1) {
    std::vector<const Json*> all;
    for (const Json& p : frontier) all.push_back(&p);
    Series& s = c.series.emplace_back(frontier_series(all, "the best of all", Shape::kLine, key));
    s.dashed = true, s.color = 7;
    c.caption =
        "Simulated loads that no other load of the same GPU beats in both; dashed: of all GPUs. (misses): an objective "
        "is missed there.";
  }
  std::vector<double> values;
  for (const Series& s : c.series) values.insert(values.end(), s.y.begin(), s.y.end());
  c.y.log = wants_log(values);
  return c;
}

/// Adds the limit on the time per token to an axis of tokens/s per user.
void add_speed_limit(const Result& result, Chart& c) {
  if (result.points.empty() || !result.points.front().result.contains("objectives")) return;
  for (const Json& o : result.points.front().result["objectives"]) {
    const auto limit = number_at(o, "limit_ms");
    const std::string name = text_at(o, "objective");
    if (limit && *limit > 0 && name.starts_with("tpot"))
      c.lines.push_back({true, 1000 / *limit, fmt::format("{} {} ms", name, tick_text(*limit))});
  }
}

/// The cost of the fleets in the order of the plan, the winner on top.
Chart ranking_chart(const Result& result) {
  constexpr std::size_t kShown = 15;
  const std::vector<std::string> keys = varying_keys(result.points);
  Chart c{.id = "plan-cost",
          .title = "Cost of the fleets, as ranked",
          .x = {.title = "USD/h of the whole fleet"},
          .horizontal = true};
  Series winner{.name = "winner", .shape = Shape::kBars, .write_labels = true, .color = 2},
      others{.name = "others, as ranked", .shape = Shape::kBars, .write_labels = true, .color = 7};
  const std::size_t count = std::min(kShown, result.points.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t rank = count - 1 - i;
    const ResultPoint& p = result.points[rank];
    const auto usd = number_at(p.result, "usd_per_hour");
    if (!usd) continue;
    Series& s = rank == 0 ? winner : others;
    s.x.push_back(static_cast<double>(c.y.categories.size())), s.y.push_back(*usd);
    c.y.categories.push_back(
        fmt::format("{} x {}", fmt::format("{:.0f}", gpus_of(p.result)), text_at(p.result, "gpu")));
    s.labels.push_back(fmt::format("{}: {} USD/h", point_label(p, keys), tick_text(*usd)));
  }
  c.caption = result.points.size() > kShown
                  ? fmt::format("The first {} of {} deployments.", kShown, result.points.size())
                  : "Every one of them meets the objectives.";
  c.series = {std::move(winner), std::move(others)};
  return c;
}

/// Whether the plan has no answer, so that its only point is the nearest deployment.
bool is_nearest(const Result& result) { return result.json.is_object() && result.json.contains("nearest"); }

/// How much of each limit the winner, or the nearest deployment, uses, with its 90 % range.
void add_objective_chart(const Result& result, std::vector<Chart>& out) {
  if (result.points.empty() || !result.points.front().result.contains("objectives")) return;
  const Json& deployment = result.points.front().result;
  const std::string name = fmt::format("{:.0f} x {}", gpus_of(deployment), text_at(deployment, "gpu"));
  Chart c{.id = "objectives",
          .title = is_nearest(result) ? fmt::format("The nearest deployment, {}, and the limits", name)
                                      : fmt::format("The winner, {}, within its limits", name),
          .x = {.title = "% of the limit"},
          .lines = {{true, 100, "limit"}},
          .horizontal = true};
  Series value{.name = "forecast", .shape = Shape::kBars, .color = 0},
      range{.name = "90 % of deployments like it", .shape = Shape::kBars, .color = 4};
  std::vector<double> shares;
  const auto add = [&](Series& s, const std::string& row, double from, double to) {
    s.x.push_back(static_cast<double>(c.y.categories.size()));
    s.base.push_back(from), s.y.push_back(to), s.labels.push_back(row);
    c.y.categories.push_back(row);
    shares.push_back(to);
  };
  for (std::size_t i = deployment["objectives"].size(); i-- > 0;) {  // the first on top
    const Json& o = deployment["objectives"][i];
    const auto limit = number_at(o, "limit_ms"), ms = number_at(o, "value_ms");
    const auto low = number_at(o, "interval_low_ms"), high = number_at(o, "interval_high_ms");
    if (!limit || !ms || *limit <= 0) continue;
    if (low && high)
      add(range, fmt::format("90 %: {} to {} ms", significant(*low, 3), significant(*high, 3)), 100 * *low / *limit,
          100 * *high / *limit);
    add(value, fmt::format("{}: {} of {} ms", text_at(o, "objective"), significant(*ms, 3), tick_text(*limit)), 0,
        100 * *ms / *limit);
  }
  c.x.log = wants_log(shares);
  c.series = {std::move(value), std::move(range)};
  if (!c.y.categories.empty()) out.push_back(std::move(c));
}

/// The effect of 10 % more of each resource.
Chart tornado(const Json& changes) {
  Chart c{.id = "sensitivities",
          .title = "10 % more of one resource",
          .x = {.title = "change of the load that can be served, %"},
          .lines = {{true, 0, ""}},
          .horizontal = true};
  Series s{.name = "load held", .shape = Shape::kBars, .write_labels = true, .color = 0};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const Json& change = changes[changes.size() - 1 - i];  // the largest on top
    const auto more = number_at(change, "throughput_change"), error = number_at(change, "throughput_change_error");
    if (!more) continue;
    s.x.push_back(static_cast<double>(c.y.categories.size())), s.y.push_back(100 * *more);
    c.y.categories.push_back(text_at(change, "ten_percent_more"));
    s.labels.push_back(fmt::format("{}: {:+.1f} % (+- {:.1f}), cost of a token {:+.1f} %", c.y.categories.back(),
                                   100 * *more, 100 * error.value_or(0),
                                   100 * number_at(change, "cost_change").value_or(0)));
  }
  c.series.push_back(std::move(s));
  return c;
}

/// A load that changes over the day: replicas by hour, the load, and the cost of three ways to run the fleet.
void add_day_charts(const Json& fleet, std::vector<Chart>& out) {
  Chart day{
      .id = "day", .title = "Replicas over the day", .x = {.title = "hour"}, .y = {.title = "replicas", .low = 0.0}};
  Chart load{
      .id = "day-load", .title = "Load over the day", .x = {.title = "hour"}, .y = {.title = "requests/s", .low = 0.0}};
  Series needed{.name = "needed"}, mean{.name = "autoscaled, mean"},
      most{.name = "autoscaled, at most", .dashed = true}, rate{.name = "requests/s"};
  const Json hours = fleet.value("hours", Json::array());
  for (const Json& h : hours) {
    const auto from = number_at(h, "start_s"), to = number_at(h, "end_s");
    if (!from || !to) continue;
    const auto step = [&](Series& s, ResultKey key) {  // a step for the duration of the slice
      const auto v = number_at(h, key);
      if (!v) return;
      for (const double at : {*from, *to}) s.x.push_back(at / 3600), s.y.push_back(*v);
    };
    step(needed, "replicas_needed"), step(mean, "replicas"), step(most, "replicas_most"), step(rate, "request_rate");
  }
  day.series = {std::move(needed), std::move(mean), std::move(most)};
  load.series = {std::move(rate)};
  Chart cost{.id = "day-cost", .title = "Cost of the day", .x = {.title = "USD"}, .horizontal = true};
  Series usd{.name = "USD", .shape = Shape::kBars, .write_labels = true, .color = 0};
  for (const auto& [name, key] : {std::pair{"static", ResultKey("static.usd")},
                                  {"by clock", ResultKey("scheduled.usd")},
                                  {"autoscaled", ResultKey("autoscaled.usd")}}) {
    const auto v = number_at(fleet, key);
    if (!v) continue;
    usd.x.push_back(static_cast<double>(cost.y.categories.size())), usd.y.push_back(*v);
    cost.y.categories.emplace_back(name);
    usd.labels.push_back(fmt::format("{}: {} USD", name, tick_text(*v)));
  }
  cost.series.push_back(std::move(usd));
  out.push_back(std::move(day)), out.push_back(std::move(load)), out.push_back(std::move(cost));
}

}  // namespace

void add_plan_charts(const Result& result, std::vector<Chart>& out) {
  const Json& j = result.json;
  const auto list = [&](const char* key) -> const Json* {
    return j.is_object() && j.contains(key) && j[key].is_array() && !j[key].empty() ? &j[key] : nullptr;
  };
  if (const Json* frontier = list("pareto")) {
    out.push_back(frontier_chart("pareto", "Throughput per GPU against speed per user", *frontier,
                                 list("pareto_by_gpu"), "output tokens/s per GPU", "output_tokens_per_s_per_gpu"));
    add_speed_limit(result, out.back());
  } else if (result.points.size() > 1) {
    out.push_back(pareto_chart("pareto", result.points));
  }
  if (const Json* frontier = list("pareto_cost")) {
    out.push_back(frontier_chart("pareto-cost", "Cost against speed per user", *frontier, list("pareto_cost_by_gpu"),
                                 "USD per million output tokens", "usd_per_million_output_tokens"));
    add_speed_limit(result, out.back());
  }
  if (!is_nearest(result)) out.push_back(ranking_chart(result));  // of one that misses there is none
  add_objective_chart(result, out);
  if (const Json* changes = list("sensitivities")) out.push_back(tornado(*changes));
  if (j.is_object() && j.contains("fleet") && j["fleet"].is_object()) add_day_charts(j["fleet"], out);
}

void add_ladder_charts(const Result& result, std::vector<Chart>& out) {
  out.push_back(waterfall(result.points, "ladder-tpot", "Techniques one after another: time per output token",
                          "TPOT, ms", "mean_tpot_ms", true));
  out.push_back(waterfall(result.points, "ladder-ttft", "Techniques one after another: time to first token", "TTFT, ms",
                          "mean_ttft_ms", true));
  out.push_back(waterfall(result.points, "ladder-throughput", "Techniques one after another: throughput",
                          "output tokens/s", "output_tokens_per_s", false));
}

/// The cost of each service together with the others, and alone.
void add_services_charts(const Result& result, std::vector<Chart>& out) {
  if (!result.json.is_object() || !result.json.contains("services") || !result.json["services"].is_array()) return;
  Chart c{.id = "services-cost", .title = "Cost of each service", .x = {.title = "USD/h"}, .horizontal = true};
  Series together{
      .name = "its share of what is bought for all", .shape = Shape::kBars, .write_labels = true, .color = 2},
      alone{.name = "its fleet by itself", .shape = Shape::kBars, .write_labels = true, .color = 7};
  const auto add = [&](Series& s, const std::string& name, double usd) {
    s.x.push_back(static_cast<double>(c.y.categories.size())), s.y.push_back(usd);
    s.labels.push_back(fmt::format("{}: {} USD/h", name, tick_text(usd)));
    c.y.categories.push_back(name);
  };
  const Json& services = result.json["services"];
  for (std::size_t i = services.size(); i-- > 0;) {  // the first on top
    const Json& service = services[i];
    const std::string name = text_at(service, "name");
    if (const auto usd = number_at(service, "usd_per_hour_alone")) add(alone, name + ", by itself", *usd);
    if (const auto usd = number_at(service, "usd_per_hour")) add(together, name, *usd);
  }
  c.series = {std::move(together), std::move(alone)};
  if (!c.y.categories.empty()) out.push_back(std::move(c));
}

}  // namespace roofcast::reports
