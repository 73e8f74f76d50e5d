#include "sim/plan/measured/bench_run.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "tests/base/temporary_folder.h"

using namespace roofcast;

namespace {

BenchRun read(std::string_view text) {
  const TemporaryFolder folder;
  return read_bench_run(folder.write("bench.json", text));
}

std::string error_of(std::string_view text) {
  const TemporaryFolder folder;
  const std::string path = folder.write("bench.json", text);
  try {
    (void)read_bench_run(path);
  } catch (const ConfigError& e) {
    return std::string(e.what()).substr(path.size());
  }
  return "no error";
}

constexpr const char* kVllm = R"({"date": "20260101-000000", "backend": "vllm", "label": null,
 "model_id": "meta-llama/Llama-3.1-8B-Instruct", "num_prompts": 10, "request_rate": "inf", "burstiness": 1.0,
 "max_concurrency": 4, "duration": 2.0, "completed": 9, "total_input_tokens": 900, "total_output_tokens": 90,
 "request_throughput": 4.5, "request_goodput": null, "output_throughput": 45.0, "mean_ttft_ms": 50.0,
 "median_ttft_ms": 48.0, "p99.9_ttft_ms": 80.0, "mean_tpot_ms": 10.0, "std_itl_ms": 1.5, "p99_e2el_ms": 200.0,
 "mean_client_queue_time_ms": 3.0, "input_lens": [100, 100, 0], "generated_texts": ["\ud83d\ude00"]})";

}  // namespace

TEST_CASE("a run's file: vllm bench serve") {
  const BenchRun run = read(kVllm);
  CHECK(run.tool == "vllm bench serve");
  CHECK(run.model == "meta-llama/Llama-3.1-8B-Instruct");
  CHECK(run.unlimited_rate);
  CHECK_FALSE(run.request_rate);
  CHECK(run.max_concurrency == 4);
  CHECK(run.requests() == 10);
  CHECK(run.failed == 1);  // sent, and not completed
  CHECK(run.mean_prompt() == 100);
  CHECK(run.mean_output() == 10);
  CHECK(run.value("p99.9_ttft_ms") == 80);
  CHECK(run.value("std_itl_ms") == 1.5);
  CHECK_FALSE(run.value("request_goodput"));                // null: no goodput was asked for
  CHECK_FALSE(run.value("mean_client_queue_time_ms"));      // not a latency that is predicted
  CHECK(run.prompt_lengths == std::vector<int>{100, 100});  // a failed request has none
  // 9 requests in 2 s, each 50 ms + 9 x 10 ms: 4.5/s x 0.14 s
  CHECK(*run.mean_in_flight() == doctest::Approx(0.63));
}

TEST_CASE("a run's file: a finite rate, and SGLang's words") {
  const BenchRun run = read(R"({"backend": "sglang", "request_rate": 2.5, "max_concurrency": null, "duration": 4,
    "completed": 10, "total_input_tokens": 1000, "total_output_tokens": 100, "total_throughput": 275.0,
    "mean_e2e_latency_ms": 150.0, "p99_e2e_latency_ms": 190.0, "mean_ttft_ms": 60.0})");
  CHECK(run.tool == "SGLang bench_serving");
  CHECK(run.request_rate == 2.5);
  CHECK_FALSE(run.max_concurrency);
  CHECK(run.value("total_token_throughput") == 275);
  CHECK(run.value("mean_e2el_ms") == 150);
  CHECK(run.value("p99_e2el_ms") == 190);
  CHECK(run.requests() == 10);
}

TEST_CASE("a run's file: AIPerf, whose inter token latency is TPOT") {
  const BenchRun run = read(R"({"schema_version": "1.3", "aiperf_version": "0.10.0",
    "request_throughput": {"unit": "requests/sec", "avg": 2.0}, "request_count": {"unit": "requests", "avg": 20.0},
    "request_latency": {"unit": "ms", "avg": 400.0, "p99": 500.0},
    "time_to_first_token": {"unit": "sec", "avg": 0.05, "p50": 0.04},
    "inter_token_latency": {"unit": "ms", "avg": 12.0, "std": 1.0},
    "inter_chunk_latency": {"unit": "ms", "avg": 13.0},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 64.0},
    "input_sequence_length": {"unit": "tokens", "avg": 256.0}, "total_output_tokens": {"unit": "tokens", "avg": 640.0},
    "benchmark_duration": {"unit": "sec", "avg": 10.0}, "error_request_count": null,
    "input_config": {"endpoint": {"model_names": ["openai/gpt-oss-20b"]}, "loadgen": {"concurrency": 8}}})");
  CHECK(run.tool == "AIPerf");
  CHECK(run.model == "openai/gpt-oss-20b");
  CHECK(run.completed == 20);
  CHECK(run.failed == 0);
  CHECK(run.input_tokens == 5120);  // 20 x 256
  CHECK(run.output_tokens == 640);
  CHECK(run.value("mean_ttft_ms") == 50);
  CHECK(run.value("median_ttft_ms") == 40);
  CHECK(run.value("mean_tpot_ms") == 12);
  CHECK(run.value("mean_itl_ms") == 13);
  CHECK(run.value("p99_e2el_ms") == 500);
  CHECK(run.max_concurrency == 8);
  CHECK(run.unlimited_rate);
}

TEST_CASE("a run's file: what is wrong is said with the file and the key") {
  CHECK(error_of("") == ": the file is empty");
  CHECK(error_of("{\"completed\": 1, ").find("the JSON ends too early") != std::string::npos);
  CHECK(error_of("{\"completed\": NaN}") == ": 'completed' must be a number from 0 up, got \"NaN\"");
  CHECK(error_of("{\"completed\": -Infinity}") == ": 'completed' must be a number from 0 up, got \"-Infinity\"");
  CHECK(error_of("{\"completed\": nonsense}").find("not valid JSON here") != std::string::npos);
  CHECK(error_of("[1]").find(": not the result of a known tool: vllm bench serve") == 0);
  CHECK(error_of("{}").find(": not the result of a known tool: vllm bench serve") == 0);
  CHECK(error_of(R"({"model_type": "llama", "hidden_size": 4096})").find(": not the result of a known tool") == 0);
  CHECK(error_of("{\"completed\": 4}\n{\"comple").find(":2:") == 0);  // half a line
  const std::string start = R"({"completed": 5, "duration": 1, "total_input_tokens": 5, )";
  CHECK(error_of(start + "\"mean_ttft_ms\": 1}") ==
        ": missing key 'total_output_tokens' of a result of vllm bench serve");
  CHECK(error_of(start + "\"total_output_tokens\": 5}") == "no error");  // a throughput is enough
  CHECK(error_of(start + "\"total_output_tokens\": 5, \"mean_ttft_ms\": null}") ==
        ": 'mean_ttft_ms' must be a number from 0 up, got null");
  CHECK(error_of(start + "\"total_output_tokens\": 5, \"output_throughput\": 1000}") ==
        ": 'output_throughput' is 1000, but the counts and the duration make 5");
  CHECK(error_of(start + "\"total_output_tokens\": 5, \"request_throughput\": 5.2}") == "no error");
  CHECK(error_of(start + "\"total_output_tokens\": \"5\"}") ==
        ": 'total_output_tokens' must be a number from 0 up, got \"5\"");
  CHECK(error_of(start + "\"total_output_tokens\": 5, \"request_rate\": \"fast\"}").find("'request_rate'") == 2);
  CHECK(error_of(start + "\"total_output_tokens\": 5, \"input_lens\": 7}").find("'input_lens' must be a list") == 2);
  CHECK(error_of(R"({"completed": 0, "duration": 1, "total_input_tokens": 0, "total_output_tokens": 0})")
            .find("completed no request") != std::string::npos);
  CHECK(error_of(start + "\"total_output_tokens\": 5, \"median_ttft_ms\": 50, \"p99_ttft_ms\": 10}") ==
        ": p99_ttft_ms (10) is below median_ttft_ms (50): these are not percentiles of one run");
  CHECK(error_of(start + "\"total_output_tokens\": 5, \"p90_itl_ms\": 9, \"p99_itl_ms\": 8, \"p99_ttft_ms\": 1}") ==
        ": p99_itl_ms (8) is below p90_itl_ms (9): these are not percentiles of one run");
  CHECK(error_of(start + "\"total_output_tokens\": 5, \"p90_itl_ms\": 9, \"p99_itl_ms\": 9}") == "no error");
  CHECK(error_of(R"({"request_latency": {"unit": "ms"}, "request_count": 5})") ==
        ": 'request_count' must be a map with 'unit' and 'avg'");
  CHECK(error_of(R"({"time_to_first_token": {}, "request_count": {"avg": 1}})") ==
        ": missing 'request_throughput.avg' of a result of GenAI-Perf");
}

TEST_CASE("a run's file: SGLang's line has Infinity, and lines follow one another") {
  const std::string line = R"({"backend": "sglang", "request_rate": Infinity, "max_concurrency": 16, "duration": 4,
    "completed": 10, "total_input_tokens": 1000, "total_output_tokens": 100, "total_throughput": 275.0,
    "mean_ttft_ms": 60.0, "note": "NaN, Infinity"})";
  std::string one;
  for (const char c : line) one += c == '\n' ? ' ' : c;
  const TemporaryFolder folder;
  const std::string path = folder.write("sglang.jsonl", one + "\n" + one + "\n");
  CHECK(read_bench_runs(path).size() == 2);
  const BenchRun run = read_bench_run(path, 2);
  CHECK(run.unlimited_rate);
  CHECK(run.load() == "concurrency 16");
  CHECK(error_of(one + "\n" + one) == ": holds 2 runs, --run N takes one: 1 concurrency 16; 2 concurrency 16");
  CHECK_THROWS_WITH_AS((void)read_bench_run(path, 3),
                       (path + ": holds 2 runs, --run N takes one: 1 concurrency 16; 2 "
                               "concurrency 16")
                           .c_str(),
                       ConfigError);
}

TEST_CASE("a run's file: GenAI-Perf has no duration") {
  const BenchRun run = read(R"({"request_throughput": {"unit": "requests/sec", "avg": 2.0},
    "request_count": {"unit": "count", "avg": 20.0}, "request_latency": {"unit": "ms", "avg": 400.0, "p75": 410.0},
    "time_to_first_token": {"unit": "ms", "avg": 50.0}, "inter_token_latency": {"unit": "ms", "avg": 12.0},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 60.0},
    "output_sequence_length": {"unit": "tokens", "avg": 30.0},
    "input_sequence_length": {"unit": "tokens", "avg": 200.0},
    "input_config": {"model_names": ["llama"], "perf_analyzer": {"stimulus": {"concurrency": 4}}}})");
  CHECK(run.tool == "GenAI-Perf");
  CHECK(run.duration_s == 10);  // 20 requests at 2/s
  CHECK(run.input_tokens == 4000);
  CHECK(run.output_tokens == 600);
  CHECK(run.model == "llama");
  CHECK(run.max_concurrency == 4);
  CHECK(run.value("mean_tpot_ms") == 12);
}

namespace {

/// One benchmark of GuideLLM 0.4 and later.
std::string guidellm(const std::string& strategy) {
  return R"({"config": {"strategy": )" + strategy + R"(}, "duration": 20.0,
    "metrics": {"request_totals": {"successful": 10, "incomplete": 3, "errored": 1, "total": 14},
      "requests_per_second": {"successful": {"mean": 0.5}}, "output_tokens_per_second": {"successful": {"mean": 50.0}},
      "prompt_token_count": {"successful": {"mean": 512.0}}, "output_token_count": {"successful": {"mean": 100.0}},
      "request_latency": {"successful": {"mean": 1.5, "median": 1.4, "percentiles": {"p99": 2.0}}},
      "time_to_first_token_ms": {"successful": {"mean": 60.0, "std_dev": 5.0,
        "percentiles": {"p95": 75.0, "p999": 90.0}}},
      "time_per_output_token_ms": {"successful": {"mean": 15.0}},
      "inter_token_latency_ms": {"successful": {"mean": 14.5, "median": 14.0}}},
    "requests": {"successful": [{"prompt_tokens": 512, "output_tokens": 100}]}})";
}

}  // namespace

TEST_CASE("a run's file: GuideLLM holds one run for each rate") {
  const TemporaryFolder folder;
  const std::string path = folder.write("benchmarks.json", R"({"args": {"model": "org/model"}, "benchmarks": [)" +
                                                               guidellm(R"({"type_": "synchronous"})") + "," +
                                                               guidellm(R"({"type_": "constant", "rate": 0.5})") + "," +
                                                               guidellm(R"({"type_": "concurrent", "streams": 8})") +
                                                               "," + guidellm(R"({"type_": "throughput"})") + "]}");
  const std::vector<BenchRun> runs = read_bench_runs(path);
  REQUIRE(runs.size() == 4);
  CHECK(runs[0].load() == "concurrency 1");
  CHECK(runs[1].load() == "constant 0.5/s");
  CHECK(runs[2].load() == "concurrency 8");
  CHECK(runs[3].load() == "all at once");
  const BenchRun run = read_bench_run(path, 2);
  CHECK(run.model == "org/model");
  CHECK(run.completed == 10);
  CHECK(run.failed == 1);  // the incomplete were cut off at the end
  CHECK(run.input_tokens == 5120);
  CHECK(run.output_tokens == 1000);
  CHECK(run.value("mean_ttft_ms") == 60);
  CHECK(run.value("std_ttft_ms") == 5);
  CHECK(run.value("p99.9_ttft_ms") == 90);
  CHECK(run.value("mean_tpot_ms") == 14.5);  // not time_per_output_token_ms, which holds the first token
  CHECK(run.value("p99_e2el_ms") == 2000);
  CHECK(run.value("output_throughput") == 50);
  CHECK(run.prompt_lengths.empty());  // a sample of the requests
  CHECK(error_of(R"({"benchmarks": []})") == ": the GuideLLM report holds no benchmark: did the run finish?");
  CHECK(error_of(R"({"benchmarks": [{"metrics": {}}]})") ==
        ": missing 'metrics.request_totals.successful' of a GuideLLM benchmark");
}

TEST_CASE("a run's file: the detail log of MLPerf LoadGen") {
  const auto line = [](const std::string& key, const std::string& value) {
    return R"(:::MLLOG {"key": ")" + key + R"(", "value": )" + value +
           R"(, "time_ms": 1.5, "namespace": "mlperf::logging", "event_type": "POINT_IN_TIME", "metadata": {}})" + "\n";
  };
  const std::string start = line("loadgen_version", "\"5.1\"") + line("generated_query_count", "101") +
                            line("generated_samples_per_query", "1");
  // 100 gaps of samples at 4/s sent and 2/s done: 50 s, and 100 / 4/s = 25 s of sending at 400 tokens/s
  const BenchRun run =
      read(start + line("result_validity", "\"INVALID\"") + line("result_query_count", "101") +
           line("result_scheduled_samples_per_sec", "4") + line("result_completed_samples_per_sec", "2") +
           line("result_token_throughput_with_loadgen_overhead", "400") + line("result_mean_latency_ns", "5000000000") +
           line("result_first_token_mean_latency_ns", "250000000") +
           line("result_first_token_99.00_percentile_latency_ns", "900000000") +
           line("result_time_per_output_token_99.00_percentile_ns", "40000000") +
           line("result_time_to_output_token_mean", "30000000"));
  CHECK(run.tool == "MLPerf LoadGen");
  CHECK(run.completed == 101);
  CHECK(run.request_rate == 4);
  CHECK(run.duration_s == 50);
  CHECK(run.output_tokens == 10000);
  CHECK(run.input_tokens == 0);  // not said
  CHECK(run.value("mean_ttft_ms") == 250);
  CHECK(run.value("p99_ttft_ms") == 900);
  CHECK(run.value("p99_tpot_ms") == 40);
  CHECK(run.value("mean_tpot_ms") == 30);
  CHECK(run.value("mean_e2el_ms") == 5000);
  CHECK(run.doubts == std::vector<std::string>{"LoadGen calls the run INVALID"});
  CHECK(error_of(start).find("the log ends before its results") != std::string::npos);
  CHECK(error_of(start + ":::MLLOG {\"key\": \"res").find("the JSON ends too early") != std::string::npos);
  CHECK(error_of("====\nMLPerf Results Summary\n====\n").find("give mlperf_log_detail.txt") != std::string::npos);
}

namespace {

constexpr const char* kBefore = R"(# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="org/m"} 1000.0
vllm:generation_tokens_total{engine="0",model_name="org/m"} 100.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="org/m"} 1.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="org/m"} 1.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="org/m"} 9.0
process_cpu_seconds_total NaN
)";
constexpr const char* kAfter = R"(vllm:prompt_tokens_total{engine="0",model_name="org/m"} 11000.0
vllm:generation_tokens_total{engine="0",model_name="org/m"} 1100.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="org/m"} 9.0
vllm:request_success_total{engine="0",finished_reason="stop",model_name="org/m"} 2.0
vllm:request_success_total{engine="0",finished_reason="abort",model_name="org/m"} 1.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.04",model_name="org/m"} 0.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.06",model_name="org/m"} 6.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1",model_name="org/m"} 6.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.25",model_name="org/m"} 11.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="org/m"} 11.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="org/m"} 11.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="org/m"} 10.0
vllm:inter_token_latency_seconds_count{engine="0",model_name="org/m"} 900.0
vllm:inter_token_latency_seconds_sum{engine="0",model_name="org/m"} 9.0
vllm:prefix_cache_queries_total{engine="0",model_name="org/m"} 10000.0
vllm:prefix_cache_hits_total{engine="0",model_name="org/m"} 2500.0
)";

std::string scrape_error(const std::vector<std::string>& texts) {
  const TemporaryFolder folder;
  std::vector<std::string> paths;
  for (const std::string& text : texts) paths.push_back(folder.write("m" + std::to_string(paths.size()), text));
  try {
    (void)read_scrapes(paths, std::nullopt);
  } catch (const ConfigError& e) {
    return e.message();
  }
  return "no error";
}

}  // namespace

TEST_CASE("scrapes of a live server: what was counted between two") {
  const TemporaryFolder folder;
  const std::string before = folder.write("before.txt", kBefore), after = folder.write("after.txt", kAfter);
  const BenchRun run = read_scrapes({before, after}, Seconds(20));
  CHECK(run.tool == "vLLM /metrics");
  CHECK(run.model == "org/m");
  CHECK(run.completed == 10);  // 9 - 1 + 2
  CHECK(run.failed == 1);
  CHECK(run.input_tokens == 10000);
  CHECK(run.output_tokens == 1000);
  CHECK(run.observed_rate == 0.5);
  CHECK(run.value("output_throughput") == 50);
  CHECK(run.value("mean_ttft_ms") == 100);  // (10 - 9) s of 10 requests
  CHECK(run.value("mean_itl_ms") == doctest::Approx(10));
  CHECK(run.value("cached_prompt_share") == 0.25);
  // 6 of 11 lie between 40 and 60 ms; rank 5.5 is 5.5 / 6 of the way: 58.3 ms. The p99 lies between 100 and 250 ms,
  // which is too wide to tell.
  CHECK(*run.value("median_ttft_ms") == doctest::Approx(40 + 20 * 5.5 / 6));
  CHECK_FALSE(run.value("p99_ttft_ms"));
  // One scrape: all since the server began, and no rates, as nobody says for how long.
  const BenchRun whole = read_scrapes({after}, std::nullopt);
  CHECK(whole.completed == 11);
  CHECK_FALSE(whole.observed_rate);
  CHECK_FALSE(whole.value("output_throughput"));
  CHECK_FALSE(whole.mean_in_flight());
}

TEST_CASE("scrapes of a live server: what is wrong with them") {
  CHECK(scrape_error({kAfter, kBefore}).find("fell from 9 to 1") != std::string::npos);
  CHECK(scrape_error({kAfter, kAfter}) == "no request ended between the scrapes: there is nothing to compare");
  CHECK(scrape_error({"process_cpu_seconds_total 1\n"}).find("no metric of vLLM or SGLang") == 0);
  CHECK(scrape_error({"vllm:prompt_tokens_total{model_name=\"m\"} \n"}).find("has no value") != std::string::npos);
  CHECK(scrape_error({"vllm:prompt_tokens_total{model_name=\"m"}).find("the labels must be") == 0);
  CHECK(scrape_error({"vllm:prompt_tokens_total x1\n"}).find("is not a number: 'x1'") != std::string::npos);
  CHECK(scrape_error({"vllm:a_total{model_name=\"m\"} 1\nvllm:a_total{model_name=\"n\"} 1\n"})
            .find("the server has two models, m and n") == 0);
  CHECK(scrape_error({"", "", ""}).find("--prometheus: takes one scrape, or two") == 0);
  CHECK(error_of(kBefore) == ": metrics of a live server: --prometheus FILE reads them");
}

TEST_CASE("latency keys: a statistic and a latency") {
  CHECK(parse_latency_key("median_itl_ms")->percentile == 50);
  CHECK(parse_latency_key("p99.9_e2el_ms")->percentile == 99.9);
  CHECK(parse_latency_key("mean_tpot_ms")->statistic == LatencyKey::Statistic::kMean);
  for (const char* key : {"ttft_ms", "mean_ttft", "mean_x_ms", "p101_ttft_ms", "q9_ttft_ms", "p_ttft_ms", "_ms", ""})
    CHECK_FALSE(parse_latency_key(key));
}
