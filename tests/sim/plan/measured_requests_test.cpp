#include "sim/plan/measured_requests.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"

using namespace roofcast;

namespace {

/// A folder of its own with a run in it; gone at the end.
struct Run {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("roofcast-requests-" + std::to_string(getpid()));
  std::string path = (folder / "a_requests.jsonl").string();
  explicit Run(const std::string& lines) {
    std::filesystem::create_directories(folder);
    std::ofstream(path) << lines;
    std::ofstream(folder / "a_meta.json") << R"({"engine_kwargs": {"model": "meta-llama/Llama-3.1-8B-Instruct",
      "tensor_parallel_size": 2, "max_num_seqs": 7, "max_model_len": null, "dtype": "bfloat16", "kv_cache_dtype": "auto"}})";
  }
  ~Run() { std::filesystem::remove_all(folder); }
};

std::string failure(const std::string& lines) {
  const Run run(lines);
  try {
    read_request_run(run.path, "h100-sxm");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a run of requests: latencies across two clocks, in order of arrival") {
  const Run run(
      "{\"input_toks\": 100, \"output_toks\": 11, \"arrival_time\": 1002, \"queued_ts\": 5.25, \"first_token_ts\": "
      "5.5, "
      "\"last_token_ts\": 7.5}\n\n"
      "{\"request_id\": \"early\", \"input_toks\": 64, \"output_toks\": 1, \"arrival_time\": 1000, \"queued_ts\": 3, "
      "\"first_token_ts\": 4, \"last_token_ts\": 4}");
  RequestRun read = read_request_run(run.path, "h100-sxm");
  REQUIRE(read.requests.size() == 2);
  CHECK(read.deployment->model.name == "llama-3.1-8b");
  CHECK(read.deployment->sharding.tp == 2);
  CHECK(read.deployment->engine.max_num_seqs == 7);
  // The second line waited least for the queue: the engine's clock is 997 s behind the wall's.
  CHECK(read.requests[0].id == "early");
  CHECK(read.requests[0].ttft_ms == doctest::Approx(1000));
  CHECK(read.requests[1].arrival_s == doctest::Approx(2));
  CHECK(read.requests[1].ttft_ms == doctest::Approx(500));
  CHECK(read.requests[1].tpot_ms() == doctest::Approx(200));
  predict_requests(read);
  CHECK(read.requests[1].predicted_ttft_ms > 1);
  CHECK(read.requests[1].predicted_ttft_ms < 500);
  const auto statistics = request_statistics(read);
  REQUIRE(statistics.size() == 12);
  CHECK(statistics[0].measured_ms == doctest::Approx(750));  // the median of 500 and 1000
}

TEST_CASE("a run of requests that cannot be read says where") {
  CHECK(failure("{\"input_toks\": 1").ends_with("a_requests.jsonl:1: not a JSON object"));
  CHECK(failure("\n{\"input_toks\": 1, \"arrival_time\": null}").find(":2: 'arrival_time' must be a number") !=
        std::string::npos);
  CHECK(failure("{\"arrival_time\": 1, \"input_toks\": 0}").find("'input_toks' must be a whole number") !=
        std::string::npos);
  CHECK(failure("{\"arrival_time\": 1, \"input_toks\": 1, \"output_toks\": 1, \"queued_ts\": 2, \"first_token_ts\": 1, "
                "\"last_token_ts\": 3}")
            .find("times must not go back") != std::string::npos);
  CHECK(failure("").find("no requests") != std::string::npos);
}
