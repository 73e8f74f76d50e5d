#include "reports/plan_tables.h"

#include <algorithm>
#include <array>
#include <functional>

#include <fmt/format.h>

#include "reports/provenance.h"
#include "reports/table.h"
#include "sim/plan/prices.h"
#include "sim/plan/system_spread.h"
#include "sim/step/deployment.h"

namespace roofcast::reports {
namespace {

constexpr std::size_t kFrontierShown = 16;

std::string with_features(const Candidate& c, std::string layout) {
  static constexpr std::array<std::string_view, 4> kOverlaps{"", " single_batch", " two_batch", " dual_batch"};
  layout += kOverlaps[static_cast<std::size_t>(c.scenario.deployment->engine.expert_overlap)];
  const SpeculationSpec& s = c.scenario.serving.speculation;
  return s.active() ? layout + fmt::format(" {} k {}", name_of(s.method), s.num_speculative_tokens) : layout;
}

std::string count_of(int replicas, int spare) {
  return spare > 0 ? fmt::format("{}+{}", replicas, spare) : std::to_string(replicas);
}

std::string gpus_text(const PlannedDeployment& p) {
  return paid_gpus_of(p) > p.gpus() ? fmt::format("{} of {:.0f}", p.gpus(), paid_gpus_of(p)) : std::to_string(p.gpus());
}

const Deployment& deployment_of(const PlannedDeployment& p) { return *p.candidate.scenario.deployment; }

std::string constants_of(const Deployment& d) {
  if (d.fidelity == Fidelity::kIdeal) return "datasheet";
  if (of_another_vendor(d)) return "other vendor";
  return d.carried_over_from().empty() ? "measured" : "carried over";
}

/// Columns with at most this rank are always shown.
constexpr int kNeeded = 0, kSameOfAll = 6;

/// A column of the ranking; if the table is too wide, columns with the highest `rank` are dropped first.
struct Column {
  int rank;
  std::string name;
  std::function<std::string(const PlannedDeployment&)> cell;
};

/// Columns about the fleet and its performance.
void add_fleet_columns(const PlanAnswer& a, std::vector<Column>& columns) {
  columns.insert(columns.end(), {{kNeeded, "GPU", [](const auto& p) { return p.candidate.gpu; }},
                                 {kNeeded, "GPUs", [](const auto& p) { return gpus_text(p); }},
                                 {1, "engine", [](const auto& p) { return engine_name(deployment_of(p).engine); }},
                                 {kNeeded, "fleet", [](const auto& p) { return fleet_layout(p); }},
                                 {kNeeded, "formats", [](const auto& p) { return p.candidate.precision; }}});
  if (a.result.ranked.empty()) return;
  for (const Objective& o : a.result.ranked.front().candidate.scenario.objectives)
    columns.push_back(
        {kNeeded, o.name(), [o](const auto& p) { return human_time(observed(o, p.result.metrics).base()); }});
  const auto judged = [](const PlannedDeployment& p) { return p.probability.has_value(); };
  if (std::any_of(a.result.ranked.begin(), a.result.ranked.end(), judged))
    columns.push_back({kNeeded, "P", [](const auto& p) {
                         return p.probability ? fmt::format("{:.0f} %", 100 * *p.probability) : std::string("-");
                       }});
}

/// Columns about cost; for a job that ends, the total cost.
void add_cost_columns(const PlanAnswer& a, std::vector<Column>& columns) {
  const bool job = a.result.kind == LoadKind::kWhole;
  const auto price = [&a](const PlannedDeployment& p) { return token_price(p, a.plan); };
  if (job) {
    columns.push_back({kNeeded, "time", [](const auto& p) { return human_time(p.result.metrics.duration.base()); }});
    columns.push_back({kNeeded, "USD", [](const auto& p) {
                         return significant(p.usd_per_hour() * p.result.metrics.duration.in(kHour), 3);
                       }});
  }
  columns.insert(
      columns.end(),
      {{job ? 1 : kNeeded, "USD/h", [](const auto& p) { return usd(p.usd_per_hour()); }},
       {3, "USD/M in", [=](const auto& p) { return significant(price(p).usd_per_million_input, 3); }},
       {3, "USD/M cached", [=](const auto& p) { return significant(price(p).usd_per_million_cached_input, 3); }},
       {3, "USD/M out", [=](const auto& p) { return significant(price(p).usd_per_million_output, 3); }},
       {a.plan.goal == PlanGoal::kThroughput ? kNeeded : 2, "tokens/s/GPU",
        [](const auto& p) { return significant(p.tokens_per_s_per_gpu()); }},
       {4, "tokens/s/user", [](const auto& p) { return significant(p.tokens_per_s_per_user(), 3); }}});
}

/// Columns about provenance and settings.
void add_detail_columns(const PlanAnswer& a, std::vector<Column>& columns) {
  columns.insert(
      columns.end(),
      {{1, "constants", [](const auto& p) { return constants_of(deployment_of(p)); }},
       {5, "price", [](const auto& p) { return price_line(deployment_of(p), p.bill().decode.quote); }},
       {4, "seqs", [](const auto& p) { return std::to_string(deployment_of(p).engine.max_num_seqs); }},
       {4, "tokens",
        [](const auto& p) {
          const Deployment& prefilling = p.candidate.disaggregated() ? p.candidate.prefill() : deployment_of(p);
          return std::to_string(prefilling.engine.max_num_batched_tokens);
        }},
       {4, "J/token", [&a](const auto& p) { return significant(token_price(p, a.plan).joules_per_output_token, 3); }},
       {4, "margin", [](const auto& p) {
          return p.result.verdicts.empty() ? "-" : fmt::format("{:.0f} %", 100 * (1 - p.result.worst_ratio));
        }}});
}

/// Ranks settings that differ between rows first; columns that are the same in all rows are dropped first.
void rank_by_content(VerdictTable& table) {
  if (table.rows.size() < 2) return;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const bool same = std::all_of(table.rows.begin(), table.rows.end(),
                                  [&](const auto& row) { return row[i] == table.rows.front()[i]; });
    if (same && (table.ranks[i] != kNeeded || table.columns[i] == "formats")) table.ranks[i] = kSameOfAll;
    if (!same && (table.columns[i] == "engine" || table.columns[i] == "constants")) table.ranks[i] = kNeeded;
    if (!same && (table.columns[i] == "seqs" || table.columns[i] == "tokens")) table.ranks[i] = 1;
  }
}

}  // namespace

VerdictTable ranking_table(const PlanAnswer& a) {
  std::vector<Column> columns;
  add_fleet_columns(a, columns);
  add_cost_columns(a, columns);
  add_detail_columns(a, columns);
  VerdictTable table{.columns = {}, .rows = {}, .in_all = a.result.ranked.size()};
  for (const Column& c : columns) table.columns.push_back(c.name), table.ranks.push_back(c.rank);
  for (std::size_t i = 0; i < std::min(kRowsShown, a.result.ranked.size()); ++i) {
    std::vector<std::string>& row = table.rows.emplace_back();
    for (const Column& c : columns) row.push_back(c.cell(a.result.ranked[i]));
  }
  rank_by_content(table);
  return table;
}

VerdictTable frontier_table(const PlanResult& r) {
  const bool job = r.kind == LoadKind::kWhole;
  const Objective* limited = frontier_objective(r.candidates.front().scenario);
  VerdictTable table{.columns = {"GPU", "layout", "formats", "tokens/s/user", "tokens/s/GPU", "USD/M out"}, .rows = {}};
  if (limited != nullptr || !job) table.columns.push_back(limited != nullptr ? limited->name() : "p99 TTFT");
  if (limited != nullptr) table.columns.emplace_back("objectives");
  const std::size_t rows = std::min(kFrontierShown, r.frontier.size());
  for (std::size_t row = 0; row < rows; ++row) {  // at even steps, including both ends
    const ParetoPoint& p = r.frontier[rows > 1 ? row * (r.frontier.size() - 1) / (rows - 1) : 0];
    const Candidate& c = candidate_of(r, p.candidate);
    std::vector<std::string>& cells = table.rows.emplace_back(
        std::vector<std::string>{c.gpu, layout_of(c), c.precision, significant(p.tokens_per_s_per_user, 3),
                                 significant(p.tokens_per_s_per_gpu), significant(p.usd_per_million_output, 3)});
    if (limited != nullptr || !job) cells.push_back(human_time(p.limited.base()));
    if (limited != nullptr) cells.emplace_back(p.met ? "met" : "missed");
  }
  return table;
}

std::string layout_of(const Candidate& c) {
  const std::string decode = layout_of(c.scenario.deployment->sharding);
  return with_features(c, c.disaggregated() ? layout_of(c.prefill().sharding) + " > " + decode : decode);
}

std::string fleet_layout(const PlannedDeployment& p) {
  const Candidate& c = p.candidate;
  const std::string decode = count_of(p.replicas, p.spare) + " x " + layout_of(c.scenario.deployment->sharding);
  if (!c.disaggregated()) return with_features(c, decode);
  return with_features(
      c, count_of(p.prefill_replicas, p.spare) + " x " + layout_of(c.prefill().sharding) + " > " + decode);
}

double paid_gpus_of(const PlannedDeployment& p) { return p.bill().paid_gpus(); }

const Candidate& candidate_of(const PlanResult& r, std::uint64_t index) {
  return *std::find_if(r.candidates.begin(), r.candidates.end(), [&](const Candidate& c) { return c.index == index; });
}

}  // namespace roofcast::reports
