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
  CHECK(error_of("{\n\"completed\": NaN}").find(":2:") == 0);
  CHECK(error_of("{\"completed\": NaN}").find("NaN and Infinity are no numbers of JSON") != std::string::npos);
  CHECK(error_of("{\"completed\": -Infinity}").find("NaN and Infinity") != std::string::npos);
  CHECK(error_of("{\"completed\": nonsense}").find("not valid JSON here") != std::string::npos);
  CHECK(error_of("{}\n{}\n").find(":2:1: a second document begins here") == 0);  // SGLang appends its runs
  CHECK(error_of("[1]").find("a map") != std::string::npos);
  CHECK(error_of("{}") == ": missing key 'completed' of a result of vllm bench serve");
  const std::string start = R"({"completed": 5, "duration": 1, "total_input_tokens": 5, )";
  CHECK(error_of(start + "\"mean_ttft_ms\": 1}") ==
        ": missing key 'total_output_tokens' of a result of vllm bench serve");
  CHECK(error_of(start + "\"total_output_tokens\": 5}").find("none of mean_ttft_ms") != std::string::npos);
  CHECK(error_of(start + "\"total_output_tokens\": 5, \"mean_ttft_ms\": null}") ==
        ": 'mean_ttft_ms' must be a number from 0 up, got null");
  CHECK(error_of(start + "\"total_output_tokens\": \"5\"}") ==
        ": 'total_output_tokens' must be a number from 0 up, got \"5\"");
  CHECK(error_of(start + "\"total_output_tokens\": 5, \"request_rate\": \"fast\"}").find("'request_rate'") == 2);
  CHECK(error_of(start + "\"total_output_tokens\": 5, \"input_lens\": 7}").find("'input_lens' must be a list") == 2);
  CHECK(error_of(R"({"completed": 0, "duration": 1, "total_input_tokens": 0, "total_output_tokens": 0})")
            .find("completed no request") != std::string::npos);
  CHECK(error_of(R"({"request_latency": {"unit": "ms"}, "request_count": 5})") ==
        ": 'request_count' must be a map with 'unit' and 'avg'");
  CHECK(error_of(R"({"time_to_first_token": {}, "request_count": {"avg": 1}})") ==
        ": missing 'benchmark_duration.avg' of a result of AIPerf");
}

TEST_CASE("latency keys: a statistic and a latency") {
  CHECK(parse_latency_key("median_itl_ms")->percentile == 50);
  CHECK(parse_latency_key("p99.9_e2el_ms")->percentile == 99.9);
  CHECK(parse_latency_key("mean_tpot_ms")->statistic == LatencyKey::Statistic::kMean);
  for (const char* key : {"ttft_ms", "mean_ttft", "mean_x_ms", "p101_ttft_ms", "q9_ttft_ms", "p_ttft_ms", "_ms", ""})
    CHECK_FALSE(parse_latency_key(key));
}
