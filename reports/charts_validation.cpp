// Charts of `validate`: predicted against measured, and residuals; of `compare`: one run against its prediction.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/number_text.h"
#include "reports/charts.h"
#include "reports/html_text.h"
#include "reports/validation_pairs.h"

namespace roofcast::reports {
namespace {

void add_scatter(const ValidationPairs& v, std::vector<Chart>& out) {
  Chart c{.id = "predicted-" + v.id, .title = fmt::format("Predicted against measured {}", v.name)};
  c.x = {.title = fmt::format("measured, {}", v.unit), .log = true};
  c.y = {.title = fmt::format("predicted, {}", v.unit), .log = true};
  double low = 1e300, high = 0;
  for (const ValidationGroup& g : v.groups) {
    Series s{.name = g.name, .shape = Shape::kPoints, .x = g.measured, .y = g.predicted, .labels = g.labels};
    for (const auto* values : {&g.measured, &g.predicted}) {
      for (const double v : *values) low = std::min(low, v), high = std::max(high, v);
    }
    c.series.push_back(std::move(s));
  }
  if (low >= high) high = low * 2;
  const double from = low / 1.3, to = high * 1.3;
  c.x.low = c.y.low = from, c.x.high = c.y.high = to;  // one scale: the diagonal is exact
  c.bands.push_back({"within 10 %", {from, to}, {0.9 * from, 0.9 * to}, {1.1 * from, 1.1 * to}, 2});
  c.series.push_back({.name = "exact", .x = {from, to}, .y = {from, to}, .color = 7});
  c.caption = fmt::format("{} rows; mean absolute error {:.1f} %, median {:.1f} %, {:.0f} % of the rows within 10 %.{}",
                          v.rows, v.mape, v.median, v.within_ten,
                          v.skipped > 0 ? fmt::format(" {} rows have no prediction.", v.skipped) : "");
  out.push_back(std::move(c));
}

void add_residuals(const ValidationPairs& v, std::vector<Chart>& out) {
  Chart c{.id = "residuals-" + v.id, .title = fmt::format("Residuals of {}", v.name)};
  c.x = {.title = fmt::format("measured, {}", v.unit), .log = true};
  c.y = {.title = "predicted over measured - 1, %", .low = -100.0, .high = 100.0};
  std::size_t outside = 0;
  double low = 1e300, high = 0;
  for (const ValidationGroup& g : v.groups) {
    Series s{.name = g.name, .shape = Shape::kPoints};
    for (std::size_t i = 0; i < g.measured.size(); ++i) {
      const double residual = 100 * (g.predicted[i] / g.measured[i] - 1);
      if (residual > 100) ++outside;
      s.x.push_back(g.measured[i]), s.y.push_back(std::min(residual, 100.0));
      s.labels.push_back(g.labels[i]);
      low = std::min(low, g.measured[i]), high = std::max(high, g.measured[i]);
    }
    c.series.push_back(std::move(s));
  }
  c.bands.push_back({"within 10 %", {low, std::max(high, low * 1.01)}, {-10, -10}, {10, 10}, 2});
  c.lines.push_back({false, 0, ""});
  c.caption = outside > 0 ? fmt::format("{} rows above +100 % are drawn at the edge.", outside) : "";
  out.push_back(std::move(c));
}

}  // namespace

namespace {

/// Fits the axis to floating bars, which need not include 0.
void fit_to_bars(Chart& c) {
  double low = 1e300, high = -1e300;
  for (const Series& s : c.series) {
    for (std::size_t i = 0; i < s.y.size(); ++i)
      low = std::min({low, s.y[i], s.base[i]}), high = std::max({high, s.y[i], s.base[i]});
  }
  if (!(low < high)) return;
  c.x.low = low - 0.1 * (high - low), c.x.high = high + 0.15 * (high - low);
}

/// Predictions of one figure, unchanged and with one assumption changed at a time: bars from the measured value to the
/// predicted one.
void add_explanations(const Json& j, const char* id, const char* name, const char* key, std::vector<Chart>& out) {
  const auto figure = [&](const Json& of) -> std::optional<double> {
    const auto found = of.find(key);
    return found != of.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
  };
  if (!j.contains("measured") || !j.contains("predicted") || !j["assumptions"].is_array()) return;
  const auto measured = figure(j["measured"]), predicted = figure(j["predicted"]);
  if (!measured || !predicted || *measured <= 0 || j["assumptions"].empty()) return;
  struct Row {
    std::string name;
    double value;
  };
  std::vector<Row> rows{{"as it is", *predicted}};
  for (const Json& a : j["assumptions"]) {
    if (const auto v = a.contains("predicted") ? figure(a["predicted"]) : std::nullopt)
      rows.push_back({shortened(text_at(a, "change"), 60), *v});
  }
  const auto off = [&](const Row& r) { return std::abs(std::log(r.value / *measured)); };
  std::stable_sort(rows.begin() + 1, rows.end(), [&](const Row& a, const Row& b) { return off(a) < off(b); });
  constexpr std::size_t kShown = 12;
  if (rows.size() > kShown) rows.resize(kShown);
  Chart c{.id = id,
          .title = fmt::format("What would explain {}: one assumption changed at a time", name),
          .x = {.title = fmt::format("{} ms", name)},
          .lines = {{true, *measured, "measured"}},
          .horizontal = true};
  Series base{.name = "prediction as it is", .shape = Shape::kBars, .color = 7},
      closer{.name = "closer to the measured", .shape = Shape::kBars, .color = 2},
      farther{.name = "no closer", .shape = Shape::kBars, .color = 1};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& r = rows[rows.size() - 1 - i];
    Series& s = i + 1 == rows.size() ? base : off(r) < off(rows.front()) ? closer : farther;
    s.x.push_back(static_cast<double>(i)), s.base.push_back(*measured), s.y.push_back(r.value);
    s.labels.push_back(
        fmt::format("{}: {} ms predicted, {} measured", r.name, tick_text(r.value), tick_text(*measured)));
    c.y.categories.push_back(r.name);
  }
  c.caption = "Each bar runs from the measured value to a prediction. The closest of what was tried.";
  for (Series* s : {&base, &closer, &farther}) s->write_labels = true;
  c.series = {std::move(base), std::move(closer), std::move(farther)};
  fit_to_bars(c);
  out.push_back(std::move(c));
}

}  // namespace

void add_measured_run_charts(const Result& result, std::vector<Chart>& out) {
  Chart c{.id = "measured-run", .title = "Predicted over measured, metric by metric", .horizontal = true};
  c.x = {.title = "predicted / measured"};
  Series s{.name = "ratio", .shape = Shape::kBars, .write_labels = true};
  const Json& metrics = result.json["metrics"];
  for (std::size_t i = metrics.size(); i-- > 0;) {  // the first on top
    const Json& metric = metrics[i];
    const auto ratio = number_at(metric, "ratio");
    if (!ratio || *ratio <= 0) continue;
    s.x.push_back(static_cast<double>(s.x.size())), s.base.push_back(1.0), s.y.push_back(*ratio);
    c.y.categories.push_back(text_at(metric, "metric"));
    s.labels.push_back(fmt::format("{}: {} predicted, {} measured", c.y.categories.back(),
                                   tick_text(number_at(metric, "predicted").value_or(0)),
                                   tick_text(number_at(metric, "measured").value_or(0))));
  }
  c.caption = "Each bar runs from 1, what was measured, to the forecast.";
  c.lines.push_back({true, 1.0, "as measured"});
  c.series.push_back(std::move(s));
  fit_to_bars(c);
  out.push_back(std::move(c));
  add_explanations(result.json, "explains-ttft", "TTFT", "ttft_ms", out);
  add_explanations(result.json, "explains-tpot", "TPOT", "tpot_ms", out);
}

void add_error_charts(const Result& result, std::vector<Chart>& out) {
  const Json groups = result.json.value("groups", Json::array());
  Chart c{.id = "errors",
          .title = "Errors by group",
          .x = {.title = "mean absolute error, %", .low = 0.0},
          .horizontal = true};
  Series s{.name = "mean absolute error", .shape = Shape::kBars, .write_labels = true};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Json& g = groups[groups.size() - 1 - i];
    const auto mape = number_at(g, "mape"), rows = number_at(g, "rows");
    if (!mape) continue;
    const std::string metric = text_at(g, "metric").empty() ? text_at(g, "op") : text_at(g, "metric");
    s.x.push_back(static_cast<double>(s.x.size())), s.y.push_back(100 * *mape);
    c.y.categories.push_back(text_at(g, "group") + (metric.empty() ? "" : ", " + metric));
    s.labels.push_back(
        fmt::format("{}: {} % over {:.0f} rows", c.y.categories.back(), tick_text(100 * *mape), rows.value_or(0)));
  }
  c.series.push_back(std::move(s));
  if (!c.y.categories.empty()) out.push_back(std::move(c));
}

void add_acceptance_charts(const Result& result, std::vector<Chart>& out) {
  const Json groups = result.json.value("groups", Json::array());
  Chart c{.id = "acceptance",
          .title = "Acceptance of drafts: median and quartiles",
          .x = {.title = "share of drafts accepted", .low = 0.0},
          .horizontal = true};
  Series range{.name = "quartiles", .shape = Shape::kBars};
  for (const Json& g : groups) {
    const auto low = number_at(g, "p25"), middle = number_at(g, "median"), high = number_at(g, "p75");
    if (!low || !middle || !high) continue;
    range.x.push_back(static_cast<double>(range.x.size())), range.base.push_back(*low), range.y.push_back(*high);
    c.y.categories.push_back(
        fmt::format("{}, k {:.0f}", text_at(g, "group"), number_at(g, "num_speculative_tokens").value_or(0)));
    range.labels.push_back(fmt::format("{}: median {}", c.y.categories.back(), tick_text(*middle)));
  }
  c.series.push_back(std::move(range));
  if (!c.y.categories.empty()) out.push_back(std::move(c));
}

void add_validation_charts(const Result& result, std::vector<Chart>& out) {
  for (const ValidationPairs& pairs : validation_pairs(result)) {
    add_scatter(pairs, out);
    add_residuals(pairs, out);
  }
}

}  // namespace roofcast::reports
