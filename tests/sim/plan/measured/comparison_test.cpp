#include "sim/plan/measured/comparison.h"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/config_node.h"

using namespace roofcast;

namespace {

/// Host costs of the tests' own, so that a new fit of the profile changes nothing here.
std::string host(double factor = 1, double latency_ms = 5) {
  const auto us = [factor](double value) { return fmt::format("{} us", factor * value); };
  return fmt::format(
      "host: {{step_time: {}, sequence_time: {}, prefill_step_time: {}, launch_time: {}, request_time: {}, "
      "request_latency: {}, token_time: {}, prompt_token_time: {}}}",
      us(300), us(10), us(10000), us(15), us(900), us(1000 * latency_ms), us(45), us(4));
}

Scenario scenario(const std::string& host_costs = host(), int concurrency = 64, const std::string& more = "",
                  int output = 64) {
  return read_scenario(
      parse_config_text(
          fmt::format(
              "{{model: llama-3.1-8b, gpu: h100-sxm, engine: {{name: vllm, {}{}}}, workload: {{arrivals: {{process: "
              "closed_loop, concurrency: {}}}, prompt_tokens: 1024, output_tokens: {}, requests: 128}}}}",
              host_costs, more, concurrency, output),
          "test"),
      Fidelity::kCalibrated);
}

/// A run as `vllm bench serve` would have measured it on the simulated machine.
BenchRun measured(const Scenario& s) {
  const ServingMetrics m = simulate(s.deployment, *s.workload, s.serving);
  BenchRun run;
  run.num_prompts = 128;
  run.max_concurrency = s.workload->arrivals.concurrency;
  run.unlimited_rate = true;
  run.completed = static_cast<double>(m.completed);
  run.duration_s = m.duration.base();
  run.input_tokens = m.input_tokens;
  run.output_tokens = m.output_tokens;
  for (const char* key : {"output_throughput", "mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "median_itl_ms"})
    run.values.emplace_back(key, *predicted_value(m, key));
  return run;
}

const ComparedMetric& metric(const Comparison& c, const std::string& name) {
  return *std::find_if(c.metrics.begin(), c.metrics.end(), [&](const ComparedMetric& m) { return m.name == name; });
}

}  // namespace

TEST_CASE("comparison: a run that the prediction matches needs no explanation") {
  const Comparison c = compare_with_run(scenario(), measured(scenario()));
  CHECK(c.mismatches.empty());
  CHECK(c.assumptions.empty());
  CHECK(c.distance == doctest::Approx(0).epsilon(1e-9));
  CHECK(metric(c, "mean_ttft_ms").ratio().value() == doctest::Approx(1));
  CHECK(c.findings.front().find("nothing is left to explain") != std::string::npos);
  // the parts of TPOT and of TTFT add up to them
  CHECK(c.shares->step_gpu_ms + c.shares->step_host_ms + c.shares->tpot_others_ms ==
        doctest::Approx(metric(c, "mean_tpot_ms").predicted));
  CHECK(c.shares->queue_ms + c.shares->front_end_ms + c.shares->prefill_ms + c.shares->ttft_others_ms ==
        doctest::Approx(metric(c, "mean_ttft_ms").predicted));
}

TEST_CASE("comparison: what its 90 % intervals contain has nothing to explain, and what they do not is named") {
  BenchRun run = measured(scenario());
  const auto scale = [&](const std::string& key, double factor) {
    for (auto& [name, value] : run.values) value *= name == key ? factor : 1;
  };
  scale("mean_ttft_ms", 1.2);  // the intervals of TTFT and TPOT are never as narrow as this
  scale("mean_tpot_ms", 1.08);
  const Comparison inside = compare_with_run(scenario(), run);
  CHECK(inside.distance > kAgreement);
  const ComparedMetric& ttft = metric(inside, "mean_ttft_ms");
  REQUIRE(ttft.low);
  CHECK(*ttft.low < ttft.predicted);
  CHECK(*ttft.high > ttft.measured);
  REQUIRE(inside.outside);
  CHECK(inside.outside->empty());
  CHECK(inside.findings.front() ==
        "the measured figures are inside the 90 % intervals of the prediction: nothing to explain");
  scale("mean_tpot_ms", 4);
  const Comparison outside = compare_with_run(scenario(), run);
  CHECK(*outside.outside == std::vector<std::string>{"mean_tpot_ms"});
  CHECK(outside.findings.front() == "outside the 90 % interval of the prediction: mean_tpot_ms");
}

TEST_CASE("comparison: what is measured where nothing is predicted is outside; what is not judged is not inside") {
  BenchRun run = measured(scenario(host(), 64, "", 1));  // one token each: there is no TPOT
  for (auto& [name, value] : run.values) value = name == "mean_tpot_ms" ? 20 : value;
  const Comparison c = compare_with_run(scenario(host(), 64, "", 1), run);
  REQUIRE(c.outside);
  CHECK(*c.outside == std::vector<std::string>{"mean_tpot_ms"});
  run = measured(scenario());
  run.values = {{"mean_e2el_ms", 1e6}};  // no TTFT, TPOT or throughput at all
  run.output_tokens = 0;
  CHECK_FALSE(compare_with_run(scenario(), run).outside);
}

TEST_CASE("comparison: to a measured nothing there is no ratio") {
  CHECK(ComparedMetric{"failed", 0, {}, 3}.ratio() == std::nullopt);
  CHECK(ComparedMetric{"failed", 2, {}, 3}.ratio() == 1.5);
}

TEST_CASE("comparison: a planted cause is found, and its numbers are those of the run") {
  const std::vector<std::pair<Scenario, const char*>> planted{
      {scenario(host(), 64, ", max_num_batched_tokens: 2048"), "max_num_batched_tokens 2048"},
      {scenario(host(), 64, ", max_num_seqs: 16"), "max_num_seqs 16"},
      {scenario(host(2)), "host time x2"}};
  for (const auto& [machine, cause] : planted) {
    const Comparison c = compare_with_run(scenario(), measured(machine));
    REQUIRE_FALSE(c.assumptions.empty());
    INFO(cause);
    CHECK(c.distance > kAgreement);
    CHECK(c.assumptions.front().change == cause);
    CHECK(c.assumptions.front().explains == doctest::Approx(1).epsilon(1e-6));
    CHECK(c.assumptions.front().predicted.ttft_ms == doctest::Approx(c.measured.ttft_ms));
    CHECK(std::any_of(c.findings.begin(), c.findings.end(),
                      [&](const std::string& f) { return f.find(cause) != std::string::npos; }));
  }
}

TEST_CASE("comparison: another load than the scenario's is said and adopted") {
  BenchRun run = measured(scenario(host(), 16));
  run.num_prompts = 130;
  run.failed = 2;
  const Comparison c = compare_with_run(scenario(), run);
  REQUIRE(c.mismatches.size() == 2);
  CHECK(c.mismatches[0].what == "arrivals");
  CHECK(c.mismatches[0].run == "closed loop, concurrency 16");
  CHECK(c.mismatches[1].what == "requests");
  CHECK(c.distance_as_written > 0.3);
  CHECK(c.distance < kAgreement);
  CHECK(*metric(c, "mean_ttft_ms").as_written > 1.5 * metric(c, "mean_ttft_ms").predicted);
  CHECK(std::any_of(c.findings.begin(), c.findings.end(),
                    [](const std::string& f) { return f.find("2 of 130 requests failed") == 0; }));
}

TEST_CASE("comparison: lengths are scaled to the run's, single ones taken as they are") {
  const Scenario s = scenario();
  const ServingMetrics m = simulate(s.deployment, *s.workload, s.serving);
  BenchRun run = measured(s);
  run.input_tokens = 128 * 512;
  std::vector<LoadMismatch> mismatches;
  WorkloadSpec w = workload_of_run(s, run, m, mismatches);
  REQUIRE(mismatches.size() == 1);
  CHECK(mismatches[0].what == "prompt tokens");
  CHECK(w.prompt_tokens.mean() == 512);
  CHECK(w.output_tokens.mean() == 64);
  run.prompt_lengths = {500, 524};
  run.model = "mistralai/Mixtral-8x7B-v0.1";
  mismatches.clear();
  w = workload_of_run(s, run, m, mismatches);
  CHECK(w.prompt_tokens.longest() == 524);
  REQUIRE(mismatches.size() == 2);
  CHECK(mismatches[0].what == "model");
  CHECK_FALSE(mismatches[0].adopted);
}

TEST_CASE("comparison: a finite rate with burstiness is a gamma process") {
  const Scenario s = scenario();
  const ServingMetrics m = simulate(s.deployment, *s.workload, s.serving);
  BenchRun run = measured(s);
  run.unlimited_rate = false;
  run.request_rate = 8;
  run.burstiness = 0.25;  // cv = 1 / sqrt(0.25)
  std::vector<LoadMismatch> mismatches;
  const WorkloadSpec w = workload_of_run(s, run, m, mismatches);
  CHECK(w.arrivals.process == ArrivalSpec::Process::kGamma);
  CHECK(w.arrivals.cv == 2);
  CHECK(w.arrivals.rate.base() == 8);
}

TEST_CASE("host fit: a slower host is found from runs of one user and of many") {
  std::vector<BenchRun> runs;
  for (const int users : {1, 32}) runs.push_back(measured(scenario(host(1, 40), users)));
  runs[0].path = "one", runs[1].path = "many";
  const HostFit fit = fit_host_to_runs(scenario(host(), 32), runs, 300);
  REQUIRE(fit.groups.size() == 2);
  for (const HostFitGroup& g : fit.groups) {
    INFO(g.group);
    CHECK(g.fitted.ttft < 0.08);
    CHECK(g.fitted.tpot < 0.08);
  }
  CHECK(fit.host.request_latency.in(kMillisecond) > 20);  // of 40; the scenario has 5
  CHECK(fit.host.token_time.in(kMicrosecond) < 150);      // of 200: what the runs hardly see stays near its 45
}
