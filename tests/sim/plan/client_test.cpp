#include "sim/plan/client.h"
#include "sim/model/model_spec.h"

#include <doctest/doctest.h>

#include "base/config_library.h"
#include "sim/plan/scenario.h"
#include "sim/serve/workload.h"
#include "tests/base/messages.h"

using namespace roofcast;

namespace {

const SourceLocation kOrigin{"s.yaml", 2, 9};

ConfigTree expanded(const std::string& workload, const DeploymentFacts& facts = {}) {
  return expand_client(parse_config_text("{" + workload + "}", "w.yaml"), facts);
}
std::string yaml(const std::string& workload, const DeploymentFacts& facts = {}) {
  return to_yaml(*expanded(workload, facts));
}
WorkloadSpec read(const std::string& workload, const DeploymentFacts& facts = {}) {
  return parse_workload(ConfigReader(expanded(workload, facts), "a workload"));
}
std::string refused(const std::string& workload, const DeploymentFacts& facts = {}) {
  return message_of([&] { read(workload, facts); });
}

DeploymentFacts running(const std::string& engine, const std::string& version, const ModelSpec* model) {
  DeploymentFacts facts;
  facts.engine = engine;
  facts.version = version;
  facts.model = model;
  return facts;
}

const std::string kLengths = ", prompt_tokens: 1000, output_tokens: 100";

}  // namespace

TEST_CASE("clients: a workload without one is returned as it is") {
  const ConfigTree plain = parse_config_text("{requests: 3, prompt_tokens: 9}", "w.yaml");
  CHECK(expand_client(plain, {}) == plain);
  CHECK(expand_client(nullptr, {}) == nullptr);
}

TEST_CASE("clients: users in flight become a closed loop, requests and warm-up by their number") {
  // 10 requests a user after 2 of warm-up
  CHECK(yaml("client: aiconfigurator, concurrency: 16" + kLengths) ==
        "prompt_tokens: 1000\noutput_tokens: 100\narrivals:\n  process: closed_loop\n  concurrency: 16\n"
        "requests: 160\nwarmup_requests: 32\n");
  const WorkloadSpec w = read("client: aiconfigurator, concurrency: 16" + kLengths);
  CHECK(w.arrivals.process == ArrivalSpec::Process::kClosedLoop);
  CHECK(w.arrivals.concurrency == 16);
  CHECK(w.requests == 160);
  CHECK(w.warmup_requests == 32);
  CHECK(w.prompt_tokens.longest() == 1000);
}

TEST_CASE("clients: sends are delayed as the client or the user says") {
  CHECK(yaml("client: aiconfigurator, concurrency: 2, send_delay: 5 ms" + kLengths)
            .find("arrivals:\n  process: closed_loop\n  concurrency: 2\n  send_delay: 5 ms\n") != std::string::npos);
  const ArrivalSpec burst = read("client: vllm-bench, rate: inf, send_delay: 3 ms" + kLengths).arrivals;
  CHECK(burst.process == ArrivalSpec::Process::kAllAtOnce);
  CHECK(burst.send_delay.in(kMillisecond) == doctest::Approx(3));
  CHECK(read("client: vllm-bench, concurrency: 2" + kLengths).arrivals.send_delay == Seconds(0));
  CHECK(refused("client: vllm-bench, rate: 2 /s, send_delay: 3 ms" + kLengths)
            .find("'send_delay' belongs to closed_loop and all_at_once arrivals") != std::string::npos);
  CHECK(refused("client: vllm-bench, send_delay: 3 ms, arrivals: {process: all_at_once}" + kLengths)
            .find("'arrivals' says how requests arrive; leave this out") != std::string::npos);
  check_client(parse_config_text("{name: mine, loads: [closed_loop], send_delay: 7 ms}", "mine.yaml"));
}

TEST_CASE("clients: a rate becomes Poisson arrivals, and an infinite one all requests at once") {
  const WorkloadSpec w = read("client: vllm-bench, rate: 2.5 /s" + kLengths);
  CHECK(w.arrivals.process == ArrivalSpec::Process::kPoisson);
  CHECK(w.arrivals.rate.base() == 2.5);
  CHECK(w.requests == 1000);
  CHECK(w.warmup_requests == 0);
  CHECK(read("client: vllm-bench, rate: inf" + kLengths).arrivals.process == ArrivalSpec::Process::kAllAtOnce);
  CHECK(read("client: vllm-bench" + kLengths).arrivals.process == ArrivalSpec::Process::kAllAtOnce);
  // Users of a client that counts no requests by them: as many as it sends in any case.
  CHECK(read("client: vllm-bench, concurrency: 8" + kLengths).requests == 1000);
  CHECK(read("client: sglang-bench, concurrency: 8" + kLengths).warmup_requests == 1);
}

TEST_CASE("clients: a load lasts as long as its client specifies") {
  const WorkloadSpec w = read("client: mlperf-server, rate: 2 /s" + kLengths);
  CHECK(w.duration == Seconds(600));
  CHECK(read("client: mlperf-offline" + kLengths).requests == 24576);
  // trtllm-bench sends the fewer requests the longer they are: 256, 2500, 5500 tokens of both lengths.
  const auto requests = [](int prompt, int output, const std::string& version = "1.2.0") {
    return read("client: trtllm-bench, prompt_tokens: " + std::to_string(prompt) +
                    ", output_tokens: " + std::to_string(output),
                running("trtllm", version, nullptr))
        .requests;
  };
  CHECK(requests(128, 128) == 30000);
  CHECK(requests(129, 128) == 3000);
  CHECK(requests(500, 2000) == 3000);
  CHECK(requests(2048, 2048) == 1500);
  CHECK(requests(5000, 500) == 1500);
  CHECK(requests(20000, 2000) == 1000);
  CHECK(requests(128, 128, "0.10.0") == 2000);  // gptManagerBenchmark until 0.11
  CHECK(requests(128, 128, "0.11.0") == 30000);
}

TEST_CASE("clients: a burst draws a hundred distinct prompts again and again") {
  const WorkloadSpec w = read("client: aiperf, concurrency: 4" + kLengths);
  CHECK(w.requests == 40);
  CHECK(w.prefix_groups == 100);
  CHECK(w.shared_prefix_tokens == 1000);  // whole prompts are equal
  CHECK(read("client: genai-perf, concurrency: 4" + kLengths).prefix_groups == 100);
  CHECK(read("client: aiperf, concurrency: 4, distinct_prompts: 7" + kLengths).prefix_groups == 7);
  CHECK(read("client: aiconfigurator, concurrency: 4" + kLengths).shared_prefix_tokens == 0);
}

TEST_CASE("clients: InferenceX's draws lengths from 0.8 L to L as NumPy does") {
  const WorkloadSpec w = read("client: inferencex, concurrency: 4, prompt_tokens: 1024, output_tokens: 8");
  // int(0.8 x 1024) = 819, int(0.8 x 8) = 6
  const auto& prompts = std::get<LengthSpec::Uniform>(w.prompt_tokens.law);
  const auto& outputs = std::get<LengthSpec::Uniform>(w.output_tokens.law);
  CHECK(prompts.min == 819);
  CHECK(prompts.max == 1024);
  CHECK(outputs.min == 6);
  CHECK(outputs.max == 8);
  CHECK(w.requests == 40);
  CHECK(w.warmup_requests == 8);
  REQUIRE(w.listed != nullptr);
  CHECK(w.listed->size() == 40);
  CHECK(read("client: inferencex, concurrency: 4, prompt_tokens: 1, output_tokens: 1").prompt_tokens.longest() == 1);
}

TEST_CASE("clients: SGLang's draws lengths from 1 to L") {
  // random-range-ratio 0.0: python/sglang/bench_serving.py draws from max(1, 0.0 L) to L; the mean is near half of L.
  const WorkloadSpec w = read("client: sglang-bench, rate: inf" + kLengths);
  CHECK(w.prompt_tokens.mean() == doctest::Approx(500.5).epsilon(0.02));
  CHECK(w.output_tokens.mean() == doctest::Approx(50.5).epsilon(0.02));
}

TEST_CASE("clients: the user's settings override the client's") {
  const WorkloadSpec w = read(
      "client: inferencex, concurrency: 4, requests: 7, warmup_requests: 0, drawn_as: law, output_tokens: 100, "
      "prompt_tokens: {distribution: uniform, min: 5, max: 9}");
  CHECK(w.requests == 7);
  CHECK(w.warmup_requests == 0);
  CHECK(w.listed == nullptr);
  CHECK(std::get<LengthSpec::Uniform>(w.prompt_tokens.law).min == 5);   // a law is a law
  CHECK(std::get<LengthSpec::Uniform>(w.output_tokens.law).min == 80);  // a number is L
  const WorkloadSpec timed = read("client: vllm-bench, rate: 2 /s, duration: 30 s" + kLengths);
  CHECK(timed.duration == Seconds(30));
  CHECK(timed.requests == 0);  // no number of requests beside it
  const WorkloadSpec own = read("client: vllm-bench, arrivals: {process: gamma, rate: 3 /s, cv: 2}" + kLengths);
  CHECK(own.arrivals.process == ArrivalSpec::Process::kGamma);
}

TEST_CASE("clients: changes by day, engine and model") {
  const ModelSpec deepseek = parse_model(load_named("models", "deepseek-v3", kOrigin)),
                  llama = parse_model(load_named("models", "llama-3.1-8b", kOrigin));
  const auto longest = [&](const std::string& day, const ModelSpec& model, const char* engine,
                           const std::string& client = "inferencex") {
    return read("client: " + client + ", concurrency: 4, prompt_tokens: 7140, output_tokens: 8" +
                    (day.empty() ? "" : ", client_date: " + day),
                running(engine, "", &model))
        .prompt_tokens.longest();
  };
  // Under transformers 5 DeepSeek's prompts of 7,140 tokens came back as 35,921, until it was mended.
  CHECK(longest("2026-04-17", deepseek, "sglang") == 35921);
  CHECK(longest("2026-05-01", deepseek, "sglang") == 7140);
  DeploymentFacts apart = running("sglang", "", &deepseek);  // its client runs in another image
  apart.disaggregated = true;
  CHECK(
      read("client: inferencex, concurrency: 4, prompt_tokens: 7140, output_tokens: 8, client_date: 2026-04-17", apart)
          .prompt_tokens.longest() == 7140);
  CHECK(longest("", deepseek, "sglang") == 7140);  // the newest client
  CHECK(longest("2026-04-17", llama, "sglang") == 7140);
  CHECK(longest("2026-04-17", deepseek, "vllm") == 7140);
  CHECK(longest("2026-04-17", deepseek, "sglang", "aiconfigurator") == 7140);
  // Five times the tokens in text that takes 1.6 times as long to cut.
  const WorkloadSpec grown =
      read("client: inferencex, concurrency: 4, client_date: 2026-04-17, prompt_tokens: 7140, output_tokens: 8",
           running("sglang", "", &deepseek));
  CHECK(grown.prompt_text == doctest::Approx(1.6 * 7140 / 35921));
}

TEST_CASE("clients: a change of lengths goes over numbers, not over laws") {
  const auto outputs = [](const std::string& prompt, const std::string& output) {
    return read("client: vllm-sharegpt, rate: inf, prompt_tokens: " + prompt + ", output_tokens: " + output)
        .output_tokens;
  };
  // The means of its ShareGPT sample, 202 and 214, are means of widely different lengths.
  CHECK(outputs("202", "214").longest() == 1024);
  CHECK(outputs("202", "214").mean() == doctest::Approx(214).epsilon(0.01));
  CHECK(outputs("182", "234").longest() == 1024);  // to within 10 %
  CHECK(outputs("181", "234").longest() == 234);
  CHECK(outputs("467", "256").longest() == 256);
  CHECK(outputs("202", "{distribution: fixed, value: 214}").longest() == 214);
  // Other clients take numbers as they are.
  CHECK(read("client: vllm-performance-suite, rate: inf, prompt_tokens: 202, output_tokens: 214")
            .output_tokens.longest() == 214);
}

TEST_CASE("clients: a load that a client does not send is refused") {
  CHECK(refused("client: mlperf-server, concurrency: 8" + kLengths) ==
        "w.yaml:1:38: client 'mlperf-server' does not send a fixed number of requests in flight (it takes 'rate')");
  CHECK(refused("client: inferencex, rate: 2 /s" + kLengths) ==
        "w.yaml:1:28: client 'inferencex' does not send requests at a rate (it takes 'concurrency')");
  CHECK(refused("client: static-batch, rate: inf" + kLengths).find("does not send requests at a rate") !=
        std::string::npos);
  CHECK(refused("client: aiperf" + kLengths) == "w.yaml:1:1: client 'aiperf' needs 'concurrency' or 'rate'");
  CHECK(refused("client: vllm-bench, concurrency: 8, rate: 2 /s" + kLengths) ==
        "w.yaml:1:44: 'concurrency' and 'rate' are two kinds of load; give one");
  CHECK(refused("client: aiperf, concurrency: 0" + kLengths).find("'concurrency' must be between 1 and 1000000") !=
        std::string::npos);
  CHECK(refused("client: aiperf, concurrency: many" + kLengths).find("'concurrency' must be") != std::string::npos);
  CHECK(refused("client: inferencex, concurrency: 4, prompt_tokens: 0, output_tokens: 4")
            .find("'prompt_tokens' must be between 1 and") != std::string::npos);
  CHECK(refused("client: inferencex, concurrency: 4, output_tokens: 4, "
                "prompt_tokens: {distribution: lognormal, mean: 100, cv: 1}")
            .find("needs prompt and output lengths of 'distribution: uniform'") != std::string::npos);
}

TEST_CASE("clients: found by name, by another name, or by file") {
  CHECK(find_client("inferencex", kOrigin) == "inferencex");
  CHECK(find_client("nvidia", kOrigin) == "aiconfigurator");
  CHECK(read("client: nvidia, concurrency: 2" + kLengths).requests == 20);
  CHECK(refused("client: inferencx, concurrency: 2" + kLengths)
            .starts_with("w.yaml:1:10: unknown client 'inferencx'; nearest is 'inferencex'"));
}

TEST_CASE("clients: every shipped one can be read, and sends each of its loads") {
  CHECK(names_of("clients").size() >= 11);
  for (const std::string& name : names_of("clients")) {
    INFO(name);
    const ConfigTree document = load_named("clients", name, kOrigin);
    CHECK_NOTHROW(check_client(document));
    CHECK((*document->find("name"))->scalar == name);
    CHECK(document->find("source") != nullptr);
    for (const ConfigTree& load : (*document->find("loads"))->items) {
      const std::string keys = load->scalar == "closed_loop" ? ", concurrency: 4"
                               : load->scalar == "open_loop" ? ", rate: 4 /s"
                                                             : ", requests: 4";
      CHECK_NOTHROW(read("client: " + name + keys + kLengths));
    }
  }
}

TEST_CASE("clients: a document that is not right is answered where it is wrong") {
  const auto answer = [](const std::string& keys) {
    return message_of([&] { check_client(parse_config_text("{name: mine, " + keys + "}", "c.yaml")); });
  };
  CHECK(answer("loads: [closed_loop]") == "");
  CHECK(answer("loads: [closed_lop]").find("unknown load 'closed_lop'; nearest is 'closed_loop'") != std::string::npos);
  CHECK(answer("loads: [open_loop], requests: -1").find("'requests'") != std::string::npos);
  CHECK(answer("loads: [open_loop], length_ratio: 2").find("'length_ratio' must be") != std::string::npos);
  CHECK(answer("loads: [open_loop], changes: [{when: {engin: x}, workload: {requests: 3}}]")
            .find("unknown key 'engin'") != std::string::npos);
  CHECK(answer("loads: [open_loop], length_ration: 0.5").find("unknown key 'length_ration'") != std::string::npos);
}

TEST_CASE("clients: a scenario's workload may name one, in a file of workloads or beside its keys") {
  const auto scenario = [](const std::string& workload) {
    return read_scenario(
        parse_config_text("model: llama-3.1-8b\ngpu: h100-sxm\nengine: vllm\nworkload: " + workload, "s.yaml"),
        Fidelity::kCalibrated);
  };
  const Scenario s = scenario("{client: aiconfigurator, concurrency: 3, prompt_tokens: 100, output_tokens: 10}");
  REQUIRE(s.workload);
  CHECK(s.workload->arrivals.concurrency == 3);
  CHECK(s.workload->requests == 30);
  CHECK(message_of([&] {
          scenario("{client: aiconfigurator, rate: 3 /s, prompt_tokens: 100, output_tokens: 10}");
        }).starts_with("s.yaml:4:"));
}
