#include "sim/plan/measured/host_fit.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "sim/step/deployment.h"
#include "tests/base/messages.h"
#include "tests/sim/plan/measured/rows.h"

using namespace roofcast;
using rows::Cells;

namespace {

/// Two groups of closed-loop runs whose measured values are the predictions, the second's times `off`.
CsvTable two_groups(double off) {
  std::vector<Cells> runs;
  for (const char* model : {"llama-3.1-8b", "qwen3-8b"}) {
    for (const char* users : {"1", "2", "3", "4", "5"}) {
      const Cells run = rows::closed_loop({{"model", model}, {"concurrency", users}});
      const RunPrediction p = rows::predict(rows::read(run));
      const double factor = runs.size() < 5 ? 1 : off;
      runs.push_back(rows::with(run, {{"ttft_ms", fmt::format("{:.9g}", factor * p.ttft_ms)},
                                      {"tpot_ms", fmt::format("{:.9g}", factor * p.tpot_ms)}}));
    }
  }
  return rows::table(runs);
}

/// Five runs of a deployment with figures that nothing was fitted to.
CsvTable five(const Cells& run) {
  std::vector<Cells> runs;
  for (const char* users : {"1", "2", "4", "8", "16"})
    runs.push_back(rows::with(run, {{"concurrency", users}, {"ttft_ms", "30"}, {"tpot_ms", "8"}}));
  return rows::table(runs);
}

}  // namespace

TEST_CASE("host fit: a group that is far off for another reason does not count") {
  for (const double off : {1.1, 4.0}) {
    const CsvTable table = two_groups(off);
    MeasuredRuns runs = read_measured_runs(table);
    const HostFit fit = fit_host(runs, table, "vllm", {.max_evaluations = 5, .starts = 1});
    REQUIRE(fit.groups.size() == 2);
    CHECK(fit.groups[0].counted);
    CHECK(fit.groups[1].counted == (off < 2));
  }
}

TEST_CASE("host fit: costs that are not fitted stay in the predictions and in the result") {
  const CsvTable table = five(rows::closed_loop({{"tp", "2"}}));
  MeasuredRuns runs = read_measured_runs(table);
  for (MeasuredRun& run : runs.runs) run.deployment->engine.host.worker_time = 7 * kMicrosecond;
  const HostFit fit = fit_host(runs, table, "vllm", {.max_evaluations = 3, .starts = 1});
  CHECK(fit.host.worker_time == 7 * kMicrosecond);
  CHECK(runs.runs[0].deployment->engine.host.worker_time == 7 * kMicrosecond);
}

TEST_CASE("host fit: workers apart all have the costs that are tried") {
  const CsvTable table = five(rows::apart());
  MeasuredRuns runs = read_measured_runs(table);
  REQUIRE(runs.kind == RunKind::kDisaggregated);
  const Seconds own = runs.runs[0].deployment->engine.host.step_time;
  const HostFit fit = fit_host(runs, table, "vllm", {.max_evaluations = 5, .starts = 1});
  CHECK(runs.runs[0].serving.disaggregation->prefill->engine.host.step_time == fit.host.step_time);
  CHECK(runs.runs[0].deployment->engine.host.step_time == fit.host.step_time);
  CHECK(fit.host.step_time != own);
}

TEST_CASE("host fit: costs that no run shows stay as they are") {
  const CsvTable table = five(rows::closed_loop());
  MeasuredRuns runs = read_measured_runs(table);
  const Seconds own = runs.runs[0].deployment->engine.host.rank_skew;
  const HostFit fit = fit_host(runs, table, "vllm", {.max_evaluations = 5, .starts = 1});
  const auto left = [&](std::string_view cost) {
    return std::find(fit.unexercised.begin(), fit.unexercised.end(), cost) != fit.unexercised.end();
  };
  CHECK(left("rank_skew"));  // one GPU has no collectives
  CHECK(fit.host.rank_skew == own);
  CHECK_FALSE(left("step_time"));
  CHECK_FALSE(left("request_latency"));
}

TEST_CASE("host fit: runs of another engine are not its") {
  const CsvTable table = five(rows::closed_loop());
  MeasuredRuns runs = read_measured_runs(table);
  CHECK(message_of([&] { fit_host(runs, table, "sglang", {}); }) ==
        "no scored run of engine 'sglang' can be predicted");
  CHECK(message_of([&] { fit_host(runs, table, "vllm", {.smallest_group = 6}); }) ==
        "no group of engine 'vllm' has 6 runs or more to fit to");
}
