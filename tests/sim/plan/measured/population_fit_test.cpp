#include "sim/plan/measured/population_fit.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>

#include "base/config_library.h"
#include "sim/plan/measured/left_out.h"
#include "sim/plan/parallel.h"
#include "sim/step/deployment.h"
#include "tests/base/messages.h"
#include "tests/sim/plan/measured/rows.h"

using namespace roofcast;
using rows::Cells;

namespace {

std::size_t index_of(std::string_view name) {
  const auto costs = population_costs();
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (costs[i].name == name) return i;
  }
  FAIL("no cost " << name);
  return 0;
}

/// Small closed loops of one engine: one and two GPUs, light and loaded, short prompts and long ones.
std::vector<Cells> loops(const std::string& engine, const std::string& version, const Cells& changes = {}) {
  std::vector<Cells> runs;
  for (const char* isl : {"64", "512"}) {
    for (const char* users : {"1", "8", "32"})
      runs.push_back(rows::closed_loop(rows::with({{"engine", engine},
                                                   {"engine_version", version},
                                                   {"isl", isl},
                                                   {"osl", "32"},
                                                   {"concurrency", users},
                                                   {"tp", *users == '8' ? "2" : "1"}},
                                                  changes)));
  }
  return runs;
}

/// Costs of the tests' own, so that a new fit of the shipped ones changes nothing here.
HostCosts own_costs() {
  return {.step_time = 200 * kMicrosecond,
          .sequence_time = 2 * kMicrosecond,
          .scheduler_time = kMillisecond,
          .scheduler_sequence_time = 20 * kMicrosecond,
          .prefill_step_time = 2 * kMillisecond,
          .launch_time = 15 * kMicrosecond,
          .request_time = kMillisecond,
          .request_latency = 5 * kMillisecond,
          .token_time = 40 * kMicrosecond,
          .prompt_token_time = 3 * kMicrosecond,
          .rank_skew = 4 * kMicrosecond};
}

MeasuredRuns read_runs(const CsvTable& table) {
  MeasuredRuns runs = read_measured_runs(table);
  for (MeasuredRun& run : runs.runs) run.deployment->engine.host = own_costs();
  return runs;
}

/// The runs with the figures that they are predicted under other costs.
CsvTable measured_under(const std::vector<Cells>& runs,
                        const std::function<void(HostCosts&, const std::string& engine)>& change) {
  std::vector<Cells> out(runs.size());
  parallel_for_each_index(runs.size(), [&](std::size_t i) {
    MeasuredRun run = read_runs(rows::table({runs[i]})).runs.at(0);
    change(run.deployment->engine.host, run.deployment->engine.name);
    const auto pricer = make_model_pricer(run.deployment);
    const RunPrediction p = predict_run(run, *pricer);
    out[i] = rows::with(runs[i],
                        {{"ttft_ms", fmt::format("{:.9g}", p.ttft_ms)}, {"tpot_ms", fmt::format("{:.9g}", p.tpot_ms)}});
  });
  return rows::table(out);
}

/// Costs after a few rounds of fitting, each around those of the one before.
PopulationCosts fitted(const CsvTable& table, int rounds, double* first_loss = nullptr, double* last_loss = nullptr) {
  MeasuredRuns runs = read_runs(table);
  PopulationCosts costs;
  for (int round = 0; round < rounds; ++round) {
    PopulationFit fit;
    fit.add(runs, table);
    if (round == 0 && first_loss != nullptr) *first_loss = fit.loss();
    costs = fit.fit([](const MeasuredRun&) { return true; });
    for (MeasuredRun& run : runs.runs) set_costs(run, costs);
  }
  PopulationFit last;
  last.add(runs, table);
  if (last_loss != nullptr) *last_loss = last.loss();
  return costs;
}

}  // namespace

TEST_CASE("population: every cost has an expectation and a spread") {
  for (const PopulationCost& cost : population_costs()) {
    INFO(cost.name);
    CHECK(cost.expected > 0);
    CHECK(cost.spread > 0);
    CHECK(cost.departure > 0);
  }
  CHECK(population_costs()[index_of("scheduler_time")].member == &HostCosts::scheduler_time);
  CHECK(population_costs()[index_of("step_time")].owner == CostOwner::kEngine);
  CHECK(population_costs()[index_of("token_time")].owner == CostOwner::kFrontEnd);
  CHECK(population_costs()[index_of("launch_pace")].owner == CostOwner::kHost);
}

TEST_CASE("population: whose costs a run has") {
  const auto of = [](const Cells& changes) { return membership_of(rows::read(rows::closed_loop(changes))); };
  // By CostOwner: engine, front end, host.
  CHECK(of({}) == Membership{"engine vllm", "front end vllm", "host unknown h100-sxm"});
  CHECK(of({{"front_end", "dynamo"}}) == Membership{"engine vllm", "front end dynamo", "host unknown h100-sxm"});
  CHECK(of({{"front_end", "none"}})[1] == "");
  CHECK(of({{"engine", "sglang"}, {"engine_version", "0.5.9"}, {"protocol", "nvidia"}}) ==
        Membership{"engine sglang", "front end dynamo", "host aiconfigurator h100-sxm"});
}

TEST_CASE("population: runs of engines that schedule for themselves count, when they are believed") {
  const auto counts = [](const Cells& changes) {
    return in_population(rows::read(rows::closed_loop(rows::with({{"ttft_ms", "30"}, {"tpot_ms", "8"}}, changes))));
  };
  CHECK(counts({}));
  CHECK(counts({{"engine", "trtllm"}, {"engine_version", "1.2.0"}}));
  CHECK_FALSE(counts({{"engine_version", "0.7.3"}}));  // of before, with costs of its own
  CHECK_FALSE(counts({{"suspect", "1"}}));
  CHECK_FALSE(counts({{"tpot_ms", "0.1"}}));          // impossible
  CHECK_FALSE(counts({{"model", "llama-3.1-70b"}}));  // does not fit
}

TEST_CASE("population: costs are set for decode and prefill workers alike, each by its owner") {
  PopulationCosts costs;
  const std::size_t n = population_costs().size();
  costs["engine vllm"] = std::vector<double>(n, 11);
  costs["front end dynamo"] = std::vector<double>(n, 23);
  costs["host unknown h100-sxm"] = std::vector<double>(n, 1.25);
  MeasuredRun run = rows::read(rows::apart({{"front_end", "dynamo"}}));
  const Seconds gap = run.deployment->engine.host.graph_gap;
  set_costs(run, costs);
  for (const EngineSpec& engine : {run.deployment->engine, run.serving.disaggregation->prefill->engine}) {
    for (const PopulationCost& cost : population_costs()) {
      INFO(cost.name);
      if (cost.member == nullptr)
        CHECK(engine.launch_speed == doctest::Approx(1 / 1.25));  // the time of a launch over the usual
      else
        CHECK((engine.host.*cost.member).in(kMicrosecond) ==
              doctest::Approx(cost.owner == CostOwner::kFrontEnd ? 23 : 11));
    }
    CHECK(engine.host.graph_gap == gap);  // no cost of the population
  }
  // What belongs to a member that is not there is left as it is.
  MeasuredRun other =
      rows::read(rows::closed_loop({{"engine", "sglang"}, {"engine_version", "0.5.9"}, {"gpu", "h200-sxm"}}));
  const EngineSpec before = other.deployment->engine;
  set_costs(other, costs);
  CHECK(other.deployment->engine.host.step_time == before.host.step_time);
  CHECK(other.deployment->engine.host.token_time == before.host.token_time);
  CHECK(other.deployment->engine.launch_speed == before.launch_speed);
}

TEST_CASE("population: runs leave a fit with the costs that they came with") {
  const CsvTable table = measured_under(loops("vllm", "0.19.0"), [](HostCosts&, const std::string&) {});
  MeasuredRuns runs = read_runs(table);
  const HostCosts before = runs.runs[0].deployment->engine.host;
  PopulationFit fit;
  fit.add(runs, table);
  for (const PopulationCost& cost : population_costs()) {
    if (cost.member != nullptr) CHECK(runs.runs[0].deployment->engine.host.*cost.member == before.*cost.member);
  }
  CHECK(runs.runs[0].deployment->engine.launch_speed == 1.0);
  CHECK(fit.loss() < 1e-6);  // they are their own predictions
}

TEST_CASE("population: costs that made-up runs were made with are found again") {
  // Two costs on which light runs depend most: the step, three times what the engine has, and the fixed delay of the
  // front end, twice.
  const auto change = [](HostCosts& host, const std::string&) {
    host.step_time = 3 * host.step_time;
    host.request_latency = 2 * host.request_latency;
  };
  const std::vector<Cells> runs = loops("vllm", "0.19.0");
  const HostCosts own = own_costs();
  double first = 0, last = 0;
  const PopulationCosts costs = fitted(measured_under(runs, change), 4, &first, &last);
  const std::vector<double>&engine = costs.at("engine vllm"), &front = costs.at("front end vllm");
  CHECK(engine[index_of("step_time")] == doctest::Approx(3 * own.step_time.in(kMicrosecond)).epsilon(0.25));
  CHECK(front[index_of("request_latency")] == doctest::Approx(2 * own.request_latency.in(kMicrosecond)).epsilon(0.25));
  CHECK(first > 0.05);
  CHECK(last < 0.25 * first);
}

TEST_CASE("population: a front end behind two engines is one, and the engines differ") {
  const Cells behind{{"front_end", "dynamo"}};
  std::vector<Cells> runs = loops("vllm", "0.19.0", behind);
  for (const Cells& run : loops("sglang", "0.5.9", behind)) runs.push_back(run);
  const HostCosts own = own_costs();
  const CsvTable table = measured_under(runs, [&](HostCosts& host, const std::string& engine) {
    if (engine == "sglang") host.step_time = 6 * host.step_time;
    host.request_latency = 3 * host.request_latency;
  });
  const PopulationCosts costs = fitted(table, 4);
  CHECK(costs.size() == 4);  // two engines, a front end, a host
  const std::size_t step = index_of("step_time");
  CHECK(costs.at("engine sglang")[step] == doctest::Approx(6 * own.step_time.in(kMicrosecond)).epsilon(0.3));
  // vLLM's is drawn towards that, as one of the same population, but not far.
  CHECK(costs.at("engine vllm")[step] > 0.8 * own.step_time.in(kMicrosecond));
  CHECK(costs.at("engine vllm")[step] < 0.5 * costs.at("engine sglang")[step]);
  CHECK(costs.at("front end dynamo")[index_of("request_latency")] ==
        doctest::Approx(3 * own.request_latency.in(kMicrosecond)).epsilon(0.25));
}

TEST_CASE("population: a member that no run tells of has the population's costs") {
  std::vector<Cells> runs = loops("vllm", "0.19.0");
  for (const Cells& run : loops("sglang", "0.5.9")) runs.push_back(run);
  const CsvTable table =
      measured_under(runs, [](HostCosts& host, const std::string&) { host.step_time = 3 * host.step_time; });
  MeasuredRuns read = read_runs(table);
  PopulationFit fit;
  fit.add(read, table);
  const auto without = [&](const char* engine) {
    return fit.fit([&](const MeasuredRun& run) { return run.deployment->engine.name != engine; });
  };
  const std::size_t step = index_of("step_time");
  // The other engine's runs raise the population's mean, and with it what is expected of this one; less than its own
  // do.
  const double alone = without("sglang").at("engine sglang")[step],
               both = fit.fit([](const MeasuredRun&) { return true; }).at("engine sglang")[step];
  const double nothing = fit.fit([](const MeasuredRun&) { return false; }).at("engine sglang")[step];
  CHECK(nothing == doctest::Approx(population_costs()[step].expected).epsilon(0.01));  // what is expected of any
  CHECK(alone > 1.05 * nothing);
  CHECK(both > alone);
}

TEST_CASE("left out: classes by name, one or several") {
  const MeasuredRun run = rows::read(rows::closed_loop({{"protocol", "nvidia"}}));
  CHECK(class_of(run, {"version"}) == "vllm@0.19.0");
  CHECK(class_of(run, {"version", "harness"}) == "vllm@0.19.0, aiconfigurator");
  CHECK(class_of(run, {"host"}) == "aiconfigurator h100-sxm");
  CHECK(class_of(run, {"gpu", "model"}) == "h100-sxm, llama-3.1-8b");
  CHECK(class_names().size() == 5);
}

TEST_CASE("left out: a run's costs are fitted without its class") {
  // vLLM's runs ask for a step of six times the time, SGLang's for what it has. Without its own runs vLLM has less of
  // it than with them; without its own, SGLang has more.
  std::vector<Cells> cells = loops("vllm", "0.19.0");
  for (const Cells& run : loops("sglang", "0.5.9")) cells.push_back(run);
  const CsvTable table = measured_under(cells, [&](HostCosts& host, const std::string& engine) {
    if (engine == "vllm") host.step_time = 6 * host.step_time;
  });
  MeasuredRuns runs = read_runs(table);
  PopulationFit fit;
  fit.add(runs, table);
  const PopulationCosts all = fit.fit([](const MeasuredRun&) { return true; });
  const std::vector<MeasuredTable> tables{{&table, &runs}};
  leave_out(tables, {"version"});
  const std::size_t step = index_of("step_time");
  for (const MeasuredRun& run : runs.runs) {
    const std::string& engine = run.deployment->engine.name;
    const double without = run.deployment->engine.host.step_time.in(kMicrosecond),
                 with = all.at("engine " + engine)[step];
    CHECK((engine == "vllm" ? without < with : without > with));
  }
  CHECK(runs.runs.front().deployment->engine.host.step_time == runs.runs[1].deployment->engine.host.step_time);
}

TEST_CASE("left out: no run of the population is refused") {
  const CsvTable table =
      rows::table({rows::closed_loop({{"engine_version", "0.7.3"}, {"ttft_ms", "30"}, {"tpot_ms", "8"}})});
  MeasuredRuns runs = read_measured_runs(table);
  const std::vector<MeasuredTable> tables{{&table, &runs}};
  CHECK(message_of([&] { leave_out(tables, {"version"}); }).find("--leave-out: no scored closed loop") !=
        std::string::npos);
}
