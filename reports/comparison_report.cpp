#include "reports/comparison_report.h"

#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/provenance.h"
#include "reports/records_csv.h"
#include "reports/result_schema.h"
#include "reports/table.h"
#include "reports/verdict.h"
#include "sim/step/deployment.h"

namespace roofcast::reports {
namespace {

Json figures_json(const RunFigures& f) {
  return {{"ttft_ms", f.ttft_ms}, {"tpot_ms", f.tpot_ms}, {"output_throughput", f.output_throughput}};
}

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json shares_json(const TimeShares& t) {
  return {{"tpot",
           {{"batch", t.batch},
            {"context_tokens", t.context},
            {"step_gpu_ms", t.step_gpu_ms},
            {"step_host_ms", t.step_host_ms},
            {"prefills_of_others_ms", t.tpot_others_ms},
            {"measured_batch", optional_json(t.measured_batch)},
            {"step_at_measured_batch_ms", t.measured_batch_step_ms}}},
          {"ttft",
           {{"queue_ms", t.queue_ms},
            {"front_end_ms", t.front_end_ms},
            {"prefill_ms", t.prefill_ms},
            {"others_ms", t.ttft_others_ms}}},
          {"requests_in_flight", {{"predicted", t.in_flight}, {"measured", optional_json(t.measured_in_flight)}}},
          {"kv_cache_peak_usage", t.kv_peak_usage},
          {"preemptions", t.preemptions}};
}

VerdictTable metric_table(const Comparison& c) {
  VerdictTable table{.columns = {"metric", "measured", "predicted", "low", "high", "ratio"}, .rows = {}};
  const auto bound = [](const std::optional<double>& value) { return value ? significant(*value) : std::string(); };
  for (const ComparedMetric& m : c.metrics) {
    table.rows.push_back({m.name, plain_number(m.measured, 6), plain_number(m.predicted, 6), bound(m.low),
                          bound(m.high), m.ratio() ? fmt::format("{:.3f}", *m.ratio()) : std::string()});
  }
  return table;
}

VerdictTable assumption_table(const Comparison& c) {
  VerdictTable table{.columns = {"changed", "TTFT", "TPOT", "tokens/s", "explains"}, .rows = {}};
  const auto ratio = [](double p, double m) { return m > 0 ? fmt::format("{:.2f}", p / m) : std::string(); };
  const auto row = [&](const std::string& name, const RunFigures& f, const std::string& explains) {
    table.rows.push_back({name, ratio(f.ttft_ms, c.measured.ttft_ms), ratio(f.tpot_ms, c.measured.tpot_ms),
                          ratio(f.output_throughput, c.measured.output_throughput), explains});
  };
  row("nothing", c.predicted, "");
  for (const Assumption& a : c.assumptions)
    row(a.change, a.predicted, a.explains < 0 ? "worse" : fmt::format("{:.0f} %", 100 * a.explains));
  return table;
}

std::string shares_text(const TimeShares& t) {
  std::string out = fmt::format(
      "predicted TPOT   {} ms GPU + {} ms host of a decode step (batch {}, {} tokens each) + {} ms prefills of "
      "others\n",
      significant(t.step_gpu_ms, 3), significant(t.step_host_ms, 3), plain_number(t.batch, 3),
      plain_number(t.context, 4), significant(t.tpot_others_ms, 3));
  out +=
      fmt::format("predicted TTFT   {} ms queue + {} ms front end + {} ms prefill alone + {} ms others in its steps\n",
                  significant(t.queue_ms, 3), significant(t.front_end_ms, 3), significant(t.prefill_ms, 3),
                  significant(t.ttft_others_ms, 3));
  if (t.measured_batch) {
    out += fmt::format("at the measured batch of {}, a decode step is predicted at {} ms\n",
                       plain_number(*t.measured_batch, 3), significant(t.measured_batch_step_ms, 3));
  }
  return out;
}

ResultVerdict verdict_of(const Comparison& c, const Scenario& s) {
  ResultVerdict verdict;
  verdict.add("", fmt::format("{}\ncompared with {} ({})\n", deployment_line(*s.deployment), c.run.path, c.run.tool));
  verdict.add("", metric_table(c));
  std::span<const std::string> rest = c.findings;
  if (c.outside && !rest.empty()) {  // the first finding states the intervals, or that there is no difference
    verdict.add("", fmt::format("low, high: 90 % interval of the prediction\n{}\n", rest.front()));
    rest = rest.subspan(1);
  }
  if (c.shares) verdict.add("", shares_text(*c.shares));
  if (!c.assumptions.empty()) {
    verdict.add("One assumption changed at a time, predicted / measured:", assumption_table(c));
    std::string roomless;
    for (const std::string& what : c.not_tried) roomless += fmt::format("{}: leaves no room to serve\n", what);
    if (!roomless.empty()) verdict.add("", roomless);
  }
  std::string findings;
  for (const std::string& finding : rest) findings += finding + "\n";
  if (!findings.empty()) verdict.add("", findings);
  return verdict;
}

}  // namespace

Json comparison_json(const Comparison& c, const Scenario& s) {
  Json out = result_head(ResultKind::kComparison);
  out.update(deployment_json(*s.deployment));
  out["bench"] = {{"file", c.run.path}, {"tool", c.run.tool}, {"model", c.run.model}};
  out["metrics"] = Json::array();
  for (const ComparedMetric& m : c.metrics) {
    out["metrics"].push_back({{"metric", m.name},
                              {"measured", m.measured},
                              {"predicted", m.predicted},
                              {"predicted_as_written", optional_json(m.as_written)},
                              {"low", optional_json(m.low)},
                              {"high", optional_json(m.high)},
                              {"ratio", optional_json(m.ratio())}});
  }
  out["mismatches"] = Json::array();
  for (const LoadMismatch& m : c.mismatches)
    out["mismatches"].push_back({{"what", m.what}, {"scenario", m.scenario}, {"run", m.run}, {"adopted", m.adopted}});
  out["difference_as_written"] = c.distance_as_written;
  out["difference"] = c.distance;
  out["measured"] = figures_json(c.measured);
  out["predicted"] = figures_json(c.predicted);
  if (c.shares) out["where_the_time_goes"] = shares_json(*c.shares);
  out["assumptions"] = Json::array();
  for (const Assumption& a : c.assumptions) {
    out["assumptions"].push_back({{"change", a.change},
                                  {"predicted", figures_json(a.predicted)},
                                  {"difference", a.distance},
                                  {"explains", a.explains},
                                  {"check", a.check}});
  }
  if (c.outside) out["outside_interval"] = *c.outside;
  out["not_tried"] = c.not_tried;
  out["findings"] = c.findings;
  out["provenance"] = provenance_json(*s.deployment);
  out["verdict"] = verdict_json(verdict_of(c, s));
  return out;
}

std::string comparison_report(const Comparison& c, const Scenario& s, const std::string& format, const Json& question) {
  if (format == "json") return result_text(comparison_json(c, s), question);
  if (format == "csv") return records_csv(comparison_json(c, s)["metrics"]);
  return verdict_text(verdict_of(c, s));
}

}  // namespace roofcast::reports
