// Charts that compare results: latency, throughput, cost, memory.

#include <algorithm>
#include <cmath>
#include <variant>

#include <fmt/format.h>

#include "reports/charts.h"

namespace roofcast::reports {
namespace {

struct Measure {
  const char* name;
  std::variant<ResultKey, Headline> key;
  double scale = 1;
};

double value_of(const Json& j, const Measure& m) {
  const auto v = std::visit([&](const auto& key) { return number_at(j, key); }, m.key);
  return v ? *v * m.scale : std::nan("");
}

/// One horizontal bar per result and measure; nothing if no result has any of them.
void add_bars(std::span<const Result> results, Chart c, const std::vector<Measure>& measures, std::vector<Chart>& out) {
  c.horizontal = true;
  std::vector<const Result*> rows;
  for (const Result& r : results) {
    if (r.kind == ResultKind::kEstimate || r.kind == ResultKind::kSimulation) rows.insert(rows.begin(), &r);
  }
  bool any = false;
  for (const Result* r : rows) c.y.categories.push_back(r->label);
  for (const Measure& m : measures) {
    Series s{.name = m.name, .shape = Shape::kBars, .write_labels = !c.stacked};
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double v = value_of(rows[i]->json, m);
      if (!std::isfinite(v)) continue;
      s.x.push_back(static_cast<double>(i)), s.y.push_back(v);
      s.labels.push_back(fmt::format("{}, {}: {}", rows[i]->label, m.name, tick_text(v)));
      any = true;
    }
    c.series.push_back(std::move(s));
  }
  if (any && rows.size() > 1) out.push_back(std::move(c));
}

}  // namespace

void add_comparison_charts(std::span<const Result> results, std::vector<Chart>& out) {
  const auto count = std::count_if(results.begin(), results.end(), [](const Result& r) {
    return r.kind == ResultKind::kEstimate || r.kind == ResultKind::kSimulation;
  });
  if (count < 2) return;
  add_bars(results,
           {.id = "compare-ttft",
            .title = "Time to first token",
            .x = {.title = "TTFT, ms"},
            .caption = "Simulations: the median and the 99th percentile; an estimate has one value."},
           {{"TTFT", kTtft}, {"TTFT, p99", ResultKey("p99_ttft_ms")}}, out);
  add_bars(results,
           {.id = "compare-tpot",
            .title = "Time per output token",
            .x = {.title = "TPOT, ms"},
            .caption = "Simulations: the median and the 99th percentile; an estimate has one value."},
           {{"TPOT", kTpot}, {"TPOT, p99", ResultKey("p99_tpot_ms")}}, out);
  add_bars(results,
           {.id = "compare-throughput",
            .title = "Output throughput",
            .x = {.title = "output tokens/s of the whole deployment"}},
           {{"output tokens/s", kThroughput}}, out);
  add_bars(results,
           {.id = "cost",
            .title = "Cost of a million output tokens by GPU",
            .x = {.title = "USD per million output tokens"}},
           {{"cost", ResultKey("cost.usd_per_million_output_tokens")}}, out);
  add_bars(results, {.id = "compare-memory", .title = "Memory of one GPU", .x = {.title = "GB"}, .stacked = true},
           {{"weights", ResultKey("memory.weight_bytes"), 1e-9},
            {"activations", ResultKey("memory.activation_bytes"), 1e-9},
            {"KV cache", ResultKey("memory.kv_cache_bytes"), 1e-9}},
           out);
}

}  // namespace roofcast::reports
