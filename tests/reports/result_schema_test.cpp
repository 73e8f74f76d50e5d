// Every kind of result written by its own writer and read back: what charts and pages read is there.
#include "reports/result_schema.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/config_node.h"
#include "reports/charts.h"
#include "reports/comparison_report.h"
#include "reports/estimate_report.h"
#include "reports/ladder_report.h"
#include "reports/plan_report.h"
#include "reports/run_observers.h"
#include "reports/services_report.h"
#include "reports/simulation_report.h"
#include "reports/sweep_report.h"
#include "sim/plan/measured/comparison.h"
#include "sim/plan/steady_load.h"
#include "sim/step/deployment.h"
#include "tests/base/temporary_folder.h"

using namespace roofcast;
using namespace roofcast::reports;

namespace {

using Groups = std::vector<std::string>;

constexpr const char* kLoaded =
    "{model: llama-3.1-8b, gpu: h100-sxm, objectives: {ttft_p90: 2 s}, workload: {arrivals: {process: poisson, rate: "
    "20 /s}, prompt_tokens: 100, output_tokens: 20, requests: 60}";

ConfigTree tree(const std::string& more = "}") { return parse_config_text(kLoaded + more, "test.yaml"); }
Scenario scenario(const std::string& more = "}") { return read_scenario(tree(more), Fidelity::kCalibrated); }

std::string estimate_text(const Scenario& s) {
  EstimateRequest request;
  request.speculation = s.serving.speculation;
  Estimate e = estimate(s.deployment, request);
  e.steady = steady_load(s.deployment, request);
  return estimate_report(e, *s.deployment, "json");
}

std::string simulation_text(const Scenario& s) {
  IntervalObserver intervals;
  const ServingMetrics metrics = simulate(s.deployment, *s.workload, s.serving, &intervals);
  return simulation_report(metrics, s, "json", intervals.json());
}

std::string sweep_text(const std::string& run) {
  const SweepSpec sweep = parse_sweep(
      parse_config_text("{run: " + run + ", scenario: " + kLoaded + "}, grid: {gpu: [h100-sxm, a100-sxm]}}", "sweep"));
  SweepStore store(":memory:");
  const std::atomic<bool> go{false};
  const SweepOutcome outcome = run_sweep(sweep, Fidelity::kCalibrated, store, go);
  return sweep_report(sweep, outcome, store, "json");
}

std::string plan_text() {
  return plan_report(answer_plan(tree(", search: {gpus: [h100-sxm], max_gpus: 2, tp: [1]}}"), {}), "json");
}

std::string services_text() {
  const std::string load =
      "objectives: {ttft_p90: 2 s}, workload: {arrivals: {process: poisson, rate: 20 /s}, prompt_tokens: 100, "
      "output_tokens: 20}}";
  return services_report(
      answer_services(parse_config_text("{model: llama-3.1-8b, services: [{name: a, " + load + ", {name: b, " + load +
                                            "], search: {gpus: [h100-sxm], max_gpus: 4, tp: [1], confidence: 0}}",
                                        "test.yaml"),
                      {}),
      "json");
}

std::string ladder_text() {
  return ladder_report(climb(tree(), Fidelity::kCalibrated, {.concurrency = 8, .requests = 16}), "json");
}

std::string comparison_text() {
  const Scenario s = scenario();
  BenchRun run;
  run.completed = 60;
  run.duration_s = 3;
  run.values = {{"mean_ttft_ms", 50}, {"mean_tpot_ms", 20}, {"output_throughput", 400}};
  return comparison_report(compare_with_run(s, run), s, "json");
}

/// Whether any entry of the lists on a path, "points[].result.reason", has its last key.
bool holds(const Json& at, const std::string& path) {
  const std::size_t dot = path.find('.');
  std::string part = path.substr(0, dot);
  const bool list = part.ends_with("[]");
  if (list) part.resize(part.size() - 2);
  if (!at.is_object() || !at.contains(part)) return false;
  if (dot == std::string::npos) return true;
  const std::string rest = path.substr(dot + 1);
  if (!list) return holds(at[part], rest);
  return std::any_of(at[part].begin(), at[part].end(), [&](const Json& entry) { return holds(entry, rest); });
}

/// Reads the result back, and says which groups of its schema it has none of.
std::string words(const Groups& groups) { return fmt::format("{}", fmt::join(groups, " ")); }

Groups absent_of(const std::string& text, ResultKind kind) {
  const Json json = Json::parse(text);
  CHECK(json.begin().key() == "kind");
  CHECK(json["kind"] == name_of(kind));
  const TemporaryFolder folder;
  const Result result = read_result(folder.write("result.json", text));
  CHECK(result.kind == kind);
  const std::vector<Chart> charts = charts_of(std::vector{result}, "x");
  CHECK(!charts.empty());
  Groups absent;
  for (const result_keys::KeyGroup& group : schema_of(kind).groups) {
    const std::string first = fmt::format("{}{}", group.place, group.keys.front());
    if (group.presence != result_keys::Presence::kSometimes && !holds(json, first)) absent.push_back(first);
  }
  return absent;
}

std::string error_of(const Json& json) {
  try {
    (void)read_kind(json, "r.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("schema: an estimate and a simulation hold every declared key") {
  CHECK(absent_of(estimate_text(scenario(", speculation: {method: eagle, num_speculative_tokens: 2}}")),
                  ResultKind::kEstimate) == Groups{});
  const char* scaled = ", autoscaling: {min: 1, max: 2, policy: concurrency, target: 8}}";
  CHECK(words(absent_of(simulation_text(scenario(scaled)), ResultKind::kSimulation)) ==
        "adapters.hit_rate kv_offload.hit_rate mean_ttfat_ms clients[].good_share kv_tiers.hit_rate "
        "samples.generated_tokens clients[].name");  // techniques that are off
}

TEST_CASE("schema: a sweep's points hold the metrics of their kind of run") {
  CHECK(words(absent_of(sweep_text("estimate"), ResultKind::kSweep)) ==
        "points[].result.cancelled points[].result.duration points[].result.saturated points[].result.mean_ttft_ms "
        "points[].result.reason points[].result.waiting points[].result.objectives_met points[].error");
  CHECK(words(absent_of(sweep_text("simulate"), ResultKind::kSweep)) ==
        "points[].result.ttft_ms points[].result.reason points[].result.waiting points[].error");
}

TEST_CASE("schema: plans, a ladder and a comparison hold every declared key") {
  CHECK(words(absent_of(plan_text(), ResultKind::kPlan)) ==
        "fleet.static.usd fleet.hours[].start_s owned.gpu growth[].gpu growth[].stages[].month");  // no day, no growth
  CHECK(words(absent_of(services_text(), ResultKind::kServicesPlan)) ==
        "shared_instances[].gpu binding_limits[].limit growth[].month");  // nothing shared, bound, or growing
  CHECK(absent_of(ladder_text(), ResultKind::kLadder) == Groups{});
  CHECK(absent_of(comparison_text(), ResultKind::kComparison) == Groups{});
}

TEST_CASE("schema: a missing or renamed key is reported, with the schema") {
  const Json good = Json::parse(estimate_text(scenario()));
  Json renamed = good;
  renamed["memory"]["weights"] = renamed["memory"]["weight_bytes"];
  renamed["memory"].erase("weight_bytes");
  CHECK(error_of(good) == "no error");
  CHECK(error_of(renamed) == "r.json: 'memory.weight_bytes' is missing, a key of every estimate of schema 1");
  Json operators = good;
  operators["operators"][2].erase("time_us");
  CHECK(error_of(operators) == "r.json: 'operators[2].time_us' is missing, a key of every estimate of schema 1");
  Json interval = Json::parse(simulation_text(scenario()));
  interval["intervals"][0].erase("waiting");
  CHECK(error_of(interval) == "r.json: 'intervals[0].waiting' is missing, a key of every simulation of schema 1");
  CHECK_THROWS_AS(result_text(renamed), InternalError);
}

TEST_CASE("schema: a file of no kind, of another kind, of another schema") {
  CHECK(error_of(Json::object()).find("r.json: not a result of roofcast: no 'kind' and 'schema'") == 0);
  CHECK(error_of({{"kind", "estimat"}, {"schema", 1}}).find("unknown kind of result 'estimat'") != std::string::npos);
  CHECK(error_of({{"kind", "estimate"}, {"schema", 2}}) ==
        "r.json: an estimate of schema 2; this roofcast reads schema 1");
  // Its cost of output was that of all tokens.
  CHECK(error_of({{"kind", "ladder"}, {"schema", 1}}) == "r.json: a ladder of schema 1; this roofcast reads schema 2");
}

TEST_CASE("csv of results: one row a point, numbers in full, units in the header") {
  const Scenario s = scenario();
  const Estimate e = estimate(s.deployment, {});
  const CsvTable one = CsvTable::parse(estimate_report(e, *s.deployment, "csv"), "e.csv");
  REQUIRE(one.rows() == 1);
  CHECK(one.number(0, one.column("tpot_ms")) == e.tpot.in(kMillisecond));
  CHECK(one.number(0, one.column("tp")) == 1);
  const CsvTable run =
      CsvTable::parse(simulation_report(simulate(s.deployment, *s.workload, s.serving), s, "csv"), "s.csv");
  REQUIRE(run.rows() == 1);
  CHECK(run.number(0, run.column("completed")) == 60);
  CHECK(run.number(0, run.column("energy_joules")) > 0);
  CHECK(run.number(0, run.column("total_output_tokens")) > 60);
  const Ladder ladder = climb(tree(), Fidelity::kCalibrated, {.concurrency = 8, .requests = 16});
  const CsvTable rungs = CsvTable::parse(ladder_report(ladder, "csv"), "l.csv");
  REQUIRE(rungs.rows() == ladder.rungs.size());
  CHECK(rungs.number(0, rungs.column("memory_bytes")) == ladder.rungs[0].memory.base());
}
