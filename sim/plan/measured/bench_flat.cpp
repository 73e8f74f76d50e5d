// vllm bench serve and SGLang bench_serving: one map of flat keys.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/plan/measured/bench_reader.h"

namespace roofcast {
namespace {

/// Translates SGLang's key names to vLLM's.
std::string vllm_key(const std::string& key) {
  if (key == "total_throughput") return "total_token_throughput";
  const auto at = key.find("_e2e_latency_ms");
  return at == std::string::npos ? key : key.substr(0, at) + "_e2el_ms";
}

bool is_infinite(const std::string& word) { return word == "inf" || word == "Infinity"; }

/// Requests per second; "inf" (vLLM) or Infinity (SGLang) is unlimited; SGLang's "trace" states no rate.
void read_rate(const BenchReader& in, BenchRun& run) {
  const auto* rate = in.at("request_rate");
  const std::string word = in.text("request_rate");
  if (rate == nullptr || word == "trace") return;
  if (is_infinite(word)) {
    run.unlimited_rate = true;
  } else {
    run.request_rate = in.checked(*rate, "request_rate");
    if (*run.request_rate == 0) in.fail("'request_rate' must be more than 0");
  }
}

/// Checks that the numbers of a file are consistent. Clients differ by a few percent in when they start to count.
void check_rate(const BenchReader& in, const BenchRun& run, const char* key, double count) {
  constexpr double kTolerance = 0.1;
  const auto given = in.number(key);
  const double counted = count / run.duration_s;
  if (given && std::abs(*given - counted) > kTolerance * std::max(*given, counted))
    in.fail(fmt::format("'{}' is {:.4g}, but the counts and the duration make {:.4g}", key, *given, counted));
}

}  // namespace

BenchRun read_flat_run(const BenchReader& in, std::string_view tool) {
  BenchRun run;
  run.tool = tool;
  run.model = in.text("model_id");
  if (run.model.empty()) run.model = in.text("/server_info/model_path");
  run.num_prompts = in.number("num_prompts");
  run.max_concurrency = in.number("max_concurrency");
  run.constant_rate = is_infinite(in.text("burstiness"));
  if (!run.constant_rate) run.burstiness = in.number("burstiness");
  read_rate(in, run);
  run.completed = in.required("completed");
  run.failed = in.number("failed").value_or(std::max(0.0, run.num_prompts.value_or(0) - run.completed));
  run.duration_s = in.required("duration");
  if (run.duration_s <= 0) in.fail("the run's duration must be more than 0");
  run.input_tokens = in.required("total_input_tokens");
  run.output_tokens = in.required("total_output_tokens");
  if (run.completed > 0 && (run.input_tokens <= 0 || run.output_tokens <= 0))
    in.fail("the run has no tokens in or none out");
  check_rate(in, run, "request_throughput", run.completed);
  check_rate(in, run, "output_throughput", run.output_tokens);
  run.prompt_lengths = in.lengths("input_lens");
  run.output_lengths = in.lengths("output_lens");
  for (const char* key :
       {"request_throughput", "request_goodput", "output_throughput", "total_token_throughput", "total_throughput"}) {
    if (const auto value = in.number(key)) run.values.emplace_back(vllm_key(key), *value);
  }
  for (const auto& [key, value] : in.json().items()) {
    if (parse_latency_key(vllm_key(key))) run.values.emplace_back(vllm_key(key), in.checked(value, key));
  }
  return run;
}

}  // namespace roofcast
