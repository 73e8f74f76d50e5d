#include "reports/openmetrics.h"

#include <doctest/doctest.h>

using namespace roofcast;
using namespace roofcast::reports;

TEST_CASE("openmetrics: vLLM's names, cumulative buckets, the end mark") {
  ServingMetrics m;
  m.completed = 3;
  m.input_tokens = 300;
  m.output_tokens = 30;
  for (const double ms : {30.0, 70.0, 3000.0}) m.ttft_ms.add(ms);
  const std::string text = openmetrics_text(m, "a \"quoted\" model\\");
  const std::string labels = "{job=\"roofcast\",model_name=\"a \\\"quoted\\\" model\\\\\",engine=\"0\"";
  CHECK(text.find("# TYPE vllm:prompt_tokens counter\n") != std::string::npos);
  CHECK(text.find("vllm:prompt_tokens_total" + labels + "} 300\n") != std::string::npos);
  CHECK(text.find("vllm:time_to_first_token_seconds_bucket" + labels + ",le=\"0.02\"} 0\n") != std::string::npos);
  CHECK(text.find("vllm:time_to_first_token_seconds_bucket" + labels + ",le=\"0.04\"} 1\n") !=
        std::string::npos);  // 30 ms
  CHECK(text.find("vllm:time_to_first_token_seconds_bucket" + labels + ",le=\"0.08\"} 2\n") !=
        std::string::npos);  // and 70 ms
  CHECK(text.find("vllm:time_to_first_token_seconds_bucket" + labels + ",le=\"+Inf\"} 3\n") != std::string::npos);
  CHECK(text.find("vllm:time_to_first_token_seconds_sum" + labels + "} 3.1\n") != std::string::npos);
  CHECK(text.find("vllm:request_success_total" + labels + ",finished_reason=\"length\"} 3\n") != std::string::npos);
  CHECK(text.size() - text.rfind("# EOF\n") == 6);
}

TEST_CASE("openmetrics: a run over time has a stamp on every sample, and counters that only grow") {
  ServingMetrics m;
  m.completed = 3;
  m.output_tokens = 30;
  for (const double ms : {30.0, 70.0}) m.ttft_ms.add(ms);
  const nlohmann::ordered_json interval{{"start_s", 0},
                                        {"end_s", 2},
                                        {"running", 1.5},
                                        {"waiting", 0},
                                        {"completed", 1},
                                        {"kv_cache_usage", 0.25},
                                        {"prompt_tokens_per_s", 0},
                                        {"output_tokens_per_s", 5}};
  nlohmann::ordered_json later = interval;
  later["start_s"] = 2, later["end_s"] = 4, later["completed"] = 2;
  const std::string text = openmetrics_text(m, "m", {interval, later});
  const std::string labels = "{job=\"roofcast\",model_name=\"m\",engine=\"0\"";
  CHECK(text.find("vllm:num_requests_running" + labels + "} 1.5 1735689600.000\nvllm:num_requests_running" + labels +
                  "} 1.5 1735689602.000\n") != std::string::npos);
  // 2 s x 5 tokens/s, then all 30
  CHECK(text.find("vllm:generation_tokens_total" + labels + "} 0 1735689600.000\nvllm:generation_tokens_total" +
                  labels + "} 10 1735689602.000\nvllm:generation_tokens_total" + labels + "} 30 1735689604.000\n") !=
        std::string::npos);
  CHECK(text.find("seconds_count" + labels + "} 2 1735689604.000\n") != std::string::npos);
}

TEST_CASE("openmetrics: histograms grow as latencies become known, and end with all of them") {
  // Two requests: 30 ms known at 1.03 s, 3 s known at 5 s, of a run of 60 s with a sample a second.
  ServingMetrics m;
  LatencyHistory history;
  RequestRecord quick, slow;
  quick.arrival = Seconds(1), quick.ttft = quick.e2el = Seconds(0.03), quick.output_tokens = 1;
  slow.arrival = Seconds(2), slow.ttft = slow.e2el = Seconds(3), slow.output_tokens = 1;
  history.on_request(slow), history.on_request(quick);  // as they end, not as their first tokens come
  for (const double ms : {30.0, 3000.0}) m.ttft_ms.add(ms);
  const nlohmann::ordered_json interval{{"start_s", 0},
                                        {"end_s", 60},
                                        {"running", 1.0},
                                        {"waiting", 0},
                                        {"completed", 2},
                                        {"kv_cache_usage", 0.25},
                                        {"prompt_tokens_per_s", 0},
                                        {"output_tokens_per_s", 5}};
  const std::string text = openmetrics_text(m, "m", nlohmann::ordered_json::array({interval}), history);
  const std::string count = "vllm:time_to_first_token_seconds_count{job=\"roofcast\",model_name=\"m\",engine=\"0\"} ";
  CHECK(text.find(count + "0 1735689601.000\n") != std::string::npos);
  CHECK(text.find(count + "1 1735689602.000\n") != std::string::npos);
  CHECK(text.find(count + "2 1735689605.000\n") != std::string::npos);
  CHECK(text.find(count + "2 1735689660.000\n") != std::string::npos);
}

TEST_CASE("distribution: values up to a bound") {
  Distribution d;
  for (const double v : {1.0, 2.0, 2.0, 5.0}) d.add(v);
  CHECK(d.count_at_most(0.5) == 0);
  CHECK(d.count_at_most(2) == 3);
  CHECK(d.count_at_most(5) == 4);
  CHECK(Distribution().count_at_most(1) == 0);
  Distribution many;  // more than are kept exactly: 100,000 values 1, 2, ..., half of them up to 50,000
  for (int i = 1; i <= 100000; ++i) many.add(i);
  CHECK(many.count_at_most(50000) == doctest::Approx(50000).epsilon(0.002));
}
