#include "sim/plan/steady_load.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <vector>

#include "base/random.h"
#include "sim/plan/front_end_load.h"
#include "sim/plan/scenario.h"

using namespace roofcast;

namespace {

Scenario scenario_of(const std::string& text) {
  return read_scenario(parse_config_text(text, "steady.yaml"), Fidelity::kCalibrated);
}

EstimateRequest request_of(int users, int prompt, int output) {
  EstimateRequest request;
  request.batch = users, request.prompt_tokens = prompt, request.output_tokens = output;
  return request;
}

template <class T>
T one_of(Random& random, const std::vector<T>& values) {
  return values[static_cast<std::size_t>(random.uniform_integer(0, static_cast<std::int64_t>(values.size()) - 1))];
}

/// What a user gets who writes the closed loop down and plays it for long.
ServingMetrics played(const std::string& deployment, const EstimateRequest& r) {
  const Scenario s = scenario_of(
      fmt::format("{}workload:\n  arrivals: {{process: closed_loop, concurrency: {}}}\n  prompt_tokens: {}\n"
                  "  output_tokens: {}\n  requests: {}\n",
                  deployment, r.batch, r.prompt_tokens, r.output_tokens, 60 * r.batch + 20));
  return simulate(s.deployment, *s.workload, s.serving);
}

}  // namespace

TEST_CASE("a steady load: 20 rounds are within 5 % of 60, for every engine") {
  Random random(11);
  int compared = 0;
  const auto compare = [&](const std::string& deployment, EstimateRequest r) {
    const Scenario asked = scenario_of(deployment);
    r.speculation = asked.serving.speculation;
    CAPTURE(deployment);
    CAPTURE(r.batch);
    CAPTURE(r.prompt_tokens);
    CAPTURE(r.output_tokens);
    const SteadyLoad steady = steady_load(asked.deployment, r);
    const ServingMetrics m = played(deployment, r);
    REQUIRE(steady.left_out.empty());
    REQUIRE(m.completed > 0);
    ++compared;
    CHECK(steady.tpot.in(kMillisecond) == doctest::Approx(m.tpot_ms.mean()).epsilon(0.05));
    CHECK(steady.output_tokens_per_s == doctest::Approx(m.output_tokens / m.duration.base()).epsilon(0.05));
  };
  const std::vector<std::string> machines{
      "model: llama-3.1-8b\ngpu: h100-sxm\n", "model: llama-3.1-70b\ngpu: h200-sxm\nparallelism: {tp: 4}\n",
      "model: qwen3-30b-a3b\ngpu: h100-sxm\nparallelism: {attention_dp: 4, ep: 4}\n"};
  for (const char* engine : {"vllm", "vllm@0.12", "sglang", "trtllm", "trtllm@1.1", "lmdeploy"}) {
    for (int i = 0; i < 5; ++i) {
      compare(one_of(random, machines) + "engine: " + engine + "\n",
              request_of(one_of<int>(random, {1, 4, 16, 64}), one_of<int>(random, {100, 500, 2000}),
                         one_of<int>(random, {30, 150, 400})));
    }
  }
  for (const char* local : {"llama-cpp", "ollama", "mlx", "tgi", "hf-transformers"}) {
    const std::string gpu = std::string(local) == "mlx" ? "apple-m2-ultra" : "h100-sxm";
    for (const int users : {1, 4}) {
      compare(fmt::format("model: llama-3.1-8b\ngpu: {}\nengine: {}\n", gpu, local), request_of(users, 500, 100));
    }
  }
  compare("model: llama-3.1-8b\ngpu: h100-sxm\nspeculation: {method: eagle3}\n", request_of(16, 500, 200));
  CHECK(compared == 41);
}

TEST_CASE("a steady load: a front end that sends fewer tokens than the GPUs compute binds") {
  const Scenario s =
      scenario_of("model: llama-3.1-8b\ngpu: h100-sxm\nengine: {name: trtllm, host: {token_time: 1 ms}}\n");
  const SteadyLoad steady = steady_load(s.deployment, request_of(64, 500, 500));
  CHECK(steady.front_end_share > kFrontEndBinds);
  CHECK(steady.output_tokens_per_s == doctest::Approx(1000).epsilon(0.02));  // one server, 1 ms a token
}

TEST_CASE("a steady load: replicas multiply the tokens, not the time between them") {
  const Scenario s = scenario_of("model: llama-3.1-8b\ngpu: h100-sxm\n");
  EstimateRequest one = request_of(8, 500, 50), three = one;
  three.replicas = 3;
  const SteadyLoad alone = steady_load(s.deployment, one), together = steady_load(s.deployment, three);
  CHECK(together.output_tokens_per_s == 3 * alone.output_tokens_per_s);
  CHECK(together.tpot == alone.tpot);
}

TEST_CASE("a steady load: one user's TPOT is its decode steps, however long the prompt") {
  for (const char* engine : {"sglang", "vllm", "trtllm"}) {
    const Scenario s = scenario_of(fmt::format("model: llama-3.1-8b\ngpu: h100-sxm\nengine: {}\n", engine));
    StepModel model(s.deployment);
    for (const int prompt : {100, 2000, 30000}) {
      CAPTURE(engine);
      CAPTURE(prompt);
      const SteadyLoad steady = steady_load(s.deployment, request_of(1, prompt, 16));
      const Seconds step = model.time({.decodes = 1, .decode_context = prompt + 8.0});
      CHECK(steady.tpot.base() == doctest::Approx(step.base()).epsilon(0.1));
    }
  }
}

TEST_CASE("a steady load: more users than an engine runs at a time wait") {
  const auto tokens_per_s = [](int most) {
    const Scenario s =
        scenario_of(fmt::format("model: llama-3.1-8b\ngpu: h100-sxm\nengine: {{max_num_seqs: {}}}\n", most));
    return steady_load(s.deployment, request_of(64, 500, 50)).output_tokens_per_s;
  };
  CHECK(tokens_per_s(8) < tokens_per_s(64) / 2);
}

TEST_CASE("a steady load: says why there is none") {
  const auto reason = [](const char* deployment, const EstimateRequest& r, Fidelity fidelity = Fidelity::kCalibrated) {
    return steady_load(read_scenario(parse_config_text(deployment, "steady.yaml"), fidelity).deployment, r).left_out;
  };
  constexpr const char* kLlama = "model: llama-3.1-8b\ngpu: h100-sxm\n";
  EstimateRequest context = request_of(4, 500, 50);
  context.context = 700;
  CHECK(reason(kLlama, request_of(4, 500, 50)).empty());
  CHECK(reason(kLlama, context).starts_with("--context prices one decode step"));
  CHECK(reason(kLlama, request_of(4, 500, 1)) == "a request of one output token has no TPOT");
  CHECK(reason(kLlama, request_of(4, 500, 50), Fidelity::kIdeal).starts_with("the datasheet's roofline"));
  CHECK(reason("model: llama-3.1-405b\ngpu: h100-sxm\n", request_of(4, 500, 50)) == "it does not fit");
  CHECK(reason(kLlama, request_of(30000, 500, 50)).starts_with("users are many"));
  CHECK(reason(kLlama, request_of(4, 500, 20000)).starts_with("answers are long"));
  CHECK(reason("model: llama-2-7b\ngpu: h100-sxm\n", request_of(1, 5000, 50)) == "no such request runs to its end");
}
