#include "reports/bench_file.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "reports/openmetrics.h"
#include "sim/plan/measured/bench_run.h"
#include "sim/plan/measured/llama_bench.h"
#include "tests/base/temporary_folder.h"

using namespace roofcast;
using namespace roofcast::reports;

namespace {

Scenario scenario(const std::string& arrivals) {
  return read_scenario(
      parse_config_text(
          "{model: llama-3.1-8b, gpu: h100-sxm, workload: {arrivals: " + arrivals +
              ", prompt_tokens: {distribution: fixed, value: 300}, output_tokens: {distribution: uniform, "
              "min: 10, max: 50}, requests: 60}}",
          "test.yaml"),
      Fidelity::kCalibrated);
}

ServingMetrics run(const Scenario& s) { return simulate(s.deployment, *s.workload, s.serving); }

}  // namespace

TEST_CASE("a simulated run in every load generator's format reads back as itself") {
  const TemporaryFolder folder;
  for (const char* arrivals : {"{process: poisson, rate: 20 /s}", "{process: closed_loop, concurrency: 8}"}) {
    const Scenario s = scenario(arrivals);
    const ServingMetrics m = run(s);
    // loadgen and llama-bench cannot say every load: see below
    for (const char* name : {"vllm", "sglang", "aiperf", "genai-perf", "guidellm"}) {
      const BenchFormat& format = find_bench_format(name, "--bench-format");
      CAPTURE(arrivals);
      CAPTURE(format.name);
      const BenchRun read = read_bench_run(folder.write(std::string(format.name), format.write(m, s)));
      CHECK(read.model == "llama-3.1-8b");
      CHECK(read.completed == 60);
      CHECK(read.failed == 0);
      CHECK(read.load() == (s.workload->arrivals.rate.base() > 0 ? "poisson 20/s" : "concurrency 8"));
      CHECK(read.duration_s == doctest::Approx(m.duration.base()));
      CHECK(read.input_tokens == doctest::Approx(18000));
      CHECK(read.output_tokens == doctest::Approx(m.output_tokens));
      CHECK(read.values.size() >= 20);
      for (const auto& [key, value] : read.values) {
        CAPTURE(key);
        CHECK(value == doctest::Approx(*predicted_value(m, key)));
      }
    }
  }
  CHECK_THROWS_WITH_AS((void)find_bench_format("aiprf", "--bench-format"),
                       "--bench-format: unknown format 'aiprf'; nearest is 'aiperf' (valid: vllm, sglang, aiperf, "
                       "genai-perf, guidellm, loadgen, llama-bench)",
                       ConfigError);
}

TEST_CASE("a simulated run at equal gaps reads back at equal gaps") {
  const TemporaryFolder folder;
  const Scenario s = scenario("{process: constant, rate: 20 /s}");
  const BenchRun read =
      read_bench_run(folder.write("vllm", find_bench_format("vllm", "--bench-format").write(run(s), s)));
  CHECK(read.constant_rate);
  CHECK_FALSE(read.burstiness);
  CHECK(*read.request_rate == 20);
}

TEST_CASE("a simulated run as LoadGen logs it reads back with its latencies, tokens and load") {
  const TemporaryFolder folder;
  const BenchFormat& format = find_bench_format("loadgen", "");
  for (const auto& [arrivals, load] : {std::pair{"{process: poisson, rate: 20 /s}", "poisson 20/s"},
                                       {"{process: all_at_once}", "all at once"},
                                       {"{process: closed_loop, concurrency: 1}", "concurrency 1"}}) {
    CAPTURE(arrivals);
    const Scenario s = scenario(arrivals);
    const ServingMetrics m = run(s);
    const BenchRun read = read_bench_run(folder.write("mlperf_log_detail.txt", format.write(m, s)));
    CHECK(read.tool == "MLPerf LoadGen");
    CHECK(read.completed == 60);
    CHECK(read.load() == load);
    CHECK(read.doubts.empty());
    CHECK(read.duration_s == doctest::Approx(m.duration.base()));
    CHECK(read.output_tokens == doctest::Approx(m.output_tokens));
    CHECK(read.values.size() == 2 + 3 * 7);
    for (const auto& [key, value] : read.values) {
      CAPTURE(key);
      // LoadGen counts one query less in the rate of the server scenario, and whole nanoseconds
      const bool one_less = key == "request_throughput" && s.workload->arrivals.rate.base() > 0;
      CHECK(value == doctest::Approx(*predicted_value(m, key) * (one_less ? 59.0 / 60 : 1)));
    }
  }
  CHECK_THROWS_WITH_AS(format.check(scenario("{process: closed_loop, concurrency: 8}")),
                       "--bench-format: LoadGen has no closed loop of 8 clients; it sends at a rate, all at once, or "
                       "with concurrency 1",
                       ConfigError);
}

TEST_CASE("a simulated user in llama-bench's format reads back as a prompt followed by an answer") {
  const TemporaryFolder folder;
  const BenchFormat& format = find_bench_format("llama-bench", "");
  const Scenario s = scenario("{process: closed_loop, concurrency: 1}");
  const ServingMetrics m = run(s);
  const auto read = read_llama_bench(folder.write("llama.json", format.write(m, s)));
  REQUIRE(read);
  CHECK(read->model == "llama-3.1-8b");
  REQUIRE(read->tests.size() == 2);
  CHECK(read->tests[0].name() == "pp300");
  CHECK(read->tests[0].tokens_per_s == doctest::Approx(300 / m.ttft_ms.mean() * 1e3));
  CHECK(read->tests[1].depth == 300);
  CHECK(read->tests[1].output == doctest::Approx(m.output_tokens / 60).epsilon(0.02));
  CHECK(read->tests[1].tokens_per_s == doctest::Approx(1e3 / m.tpot_ms.mean()));
  CHECK_THROWS_AS(format.check(scenario("{process: poisson, rate: 20 /s}")), ConfigError);
}

TEST_CASE("a simulated run as OpenMetrics reads back with its means, and with its rates where it has times") {
  const TemporaryFolder folder;
  const Scenario s = scenario("{process: poisson, rate: 20 /s}");
  const ServingMetrics m = run(s);
  const BenchRun read = read_scrapes({folder.write("m", openmetrics_text(m, "llama-3.1-8b", nullptr))}, m.duration);
  CHECK(read.completed == 60);
  CHECK(read.input_tokens == 18000);
  CHECK(*read.value("output_throughput") == doctest::Approx(m.output_tokens / m.duration.base()));
  for (const char* key : {"mean_ttft_ms", "mean_tpot_ms", "mean_itl_ms", "mean_e2el_ms"}) {
    CAPTURE(key);
    CHECK(*read.value(key) == doctest::Approx(*predicted_value(m, key)));
  }
  const nlohmann::ordered_json series = nlohmann::ordered_json::array({{{"start_s", 0.0},
                                                                        {"end_s", 2.0},
                                                                        {"running", 1},
                                                                        {"waiting", 0},
                                                                        {"kv_cache_usage", 0.1},
                                                                        {"prompt_tokens_per_s", 0.0},
                                                                        {"output_tokens_per_s", 0.0},
                                                                        {"completed", 0}},
                                                                       {{"start_s", 2.0},
                                                                        {"end_s", 4.0},
                                                                        {"running", 1},
                                                                        {"waiting", 0},
                                                                        {"kv_cache_usage", 0.1},
                                                                        {"prompt_tokens_per_s", 0.0},
                                                                        {"output_tokens_per_s", 0.0},
                                                                        {"completed", 60}}});
  const BenchRun timed = read_scrapes({folder.write("t", openmetrics_text(m, "llama-3.1-8b", series))}, std::nullopt);
  CHECK(timed.duration_s == doctest::Approx(4));
  CHECK(timed.observed_rate == doctest::Approx(15));
}
