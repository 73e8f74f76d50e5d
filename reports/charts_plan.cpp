// Plots of a plan and of a ladder of techniques.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "reports/charts.h"
#include "reports/html_text.h"

namespace roofcast {
namespace {

std::string name_of_rung(const ResultPoint& rung) { return text_at(rung.result, "name"); }

/// The first rung and the last as whole bars, what each technique adds or saves floating between them.
Chart waterfall(const std::vector<ResultPoint>& rungs, const char* id, const char* title, const char* unit,
                ResultKey key, bool less_is_better) {
  Chart c{.id = id, .title = title, .x = {.title = unit}, .horizontal = true};
  Series whole{.name = "before and after", .shape = Shape::kBars, .color = 7},
      better{.name = "better", .shape = Shape::kBars, .color = 2},
      worse{.name = "worse", .shape = Shape::kBars, .color = 1};
  std::vector<std::pair<std::string, double>> steps;
  for (const ResultPoint& rung : rungs) {
    if (const auto v = number_at(rung.result, key)) steps.emplace_back(shortened(name_of_rung(rung), 40), *v);
  }
  if (steps.size() < 2) return c;
  const double rows = static_cast<double>(steps.size());
  const auto add = [&](Series& s, double row, double from, double to, const std::string& label) {
    s.x.push_back(row), s.base.push_back(from), s.y.push_back(to), s.labels.push_back(label);
  };
  c.y.categories.assign(steps.size() + 1, "");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double row = rows - static_cast<double>(i), value = steps[i].second,
                 before = i == 0 ? 0 : steps[i - 1].second;
    c.y.categories[static_cast<std::size_t>(row)] = steps[i].first;
    const bool good = (value < before) == less_is_better;
    const std::string text = i == 0 ? fmt::format("{}: {}", steps[i].first, tick_text(value))
                                    : fmt::format("{}: {} to {}", steps[i].first, tick_text(before), tick_text(value));
    add(i == 0 ? whole : good ? better : worse, row, before, value, text);
  }
  c.y.categories[0] = "all together";
  add(whole, 0, 0, steps.back().second, fmt::format("all together: {}", tick_text(steps.back().second)));
  c.stacked = false;
  c.series = {std::move(whole), std::move(better), std::move(worse)};
  return c;
}

}  // namespace

void add_plan_charts(const Result& result, std::vector<Chart>& out) {
  out.push_back(pareto_chart("pareto", result.points));
  const std::vector<std::string> keys = varying_keys(result.points);
  Chart c{.id = "plan-cost",
          .title = "Cost of a million output tokens by deployment",
          .x = {.title = "USD per million output tokens"},
          .horizontal = true};
  Series s{.name = "cost", .shape = Shape::kBars};
  constexpr std::size_t kShown = 15;
  const std::size_t count = std::min(kShown, result.points.size());
  for (std::size_t i = 0; i < count; ++i) {
    const ResultPoint& p = result.points[count - 1 - i];
    const auto usd = number_at(p.result, "usd_per_million_output_tokens");
    if (!usd) continue;
    s.x.push_back(static_cast<double>(c.y.categories.size())), s.y.push_back(*usd);
    c.y.categories.push_back(point_label(p, keys));
    s.labels.push_back(fmt::format("{}: {} USD", c.y.categories.back(), tick_text(*usd)));
  }
  if (result.points.size() > kShown)
    c.caption = fmt::format("The first {} of {} deployments.", kShown, result.points.size());
  c.series.push_back(std::move(s));
  out.push_back(std::move(c));
}

void add_ladder_charts(const Result& result, std::vector<Chart>& out) {
  out.push_back(waterfall(result.points, "ladder-tpot", "Techniques one after another: time per output token",
                          "TPOT, ms", "mean_tpot_ms", true));
  out.push_back(waterfall(result.points, "ladder-ttft", "Techniques one after another: time to first token", "TTFT, ms",
                          "mean_ttft_ms", true));
  out.push_back(waterfall(result.points, "ladder-throughput", "Techniques one after another: throughput",
                          "output tokens/s", "output_tokens_per_s", false));
}

}  // namespace roofcast
