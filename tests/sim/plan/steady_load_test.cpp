#include "sim/plan/steady_load.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <span>

#include "base/random.h"
#include "sim/plan/scenario.h"
#include "sim/plan/steady_rate.h"

using namespace roofcast;

namespace {

template <class T>
T one_of(Random&& random, std::initializer_list<T> values) {
  return values.begin()[random.uniform_integer(0, static_cast<std::int64_t>(values.size()) - 1)];
}
template <class T>
T one_of(Random& random, std::initializer_list<T> values) {
  return values.begin()[random.uniform_integer(0, static_cast<std::int64_t>(values.size()) - 1)];
}

struct Drawn {
  std::string text;
  int users, prompt, output;
};

constexpr const char* kServers[] = {"model: llama-3.1-8b\ngpu: h100-sxm\n",
                                    "model: llama-3.1-70b\ngpu: h200-sxm\nparallelism: {tp: 4}\n",
                                    "model: gpt-oss-120b\ngpu: b200-sxm\n",
                                    "model: deepseek-v3\ngpu: b200-sxm\nparallelism: {attention_dp: 8, ep: 8}\n"};
constexpr int kUsers[] = {4, 16, 64, 256};

/// Users whose outputs differ, so that their requests do not stay in lockstep.
Drawn draw(const std::string& engine, std::uint64_t seed, std::span<const char* const> machines = kServers,
           std::span<const int> users = kUsers) {
  Random random(seed);
  const auto any = [&](const auto& values) {
    return values[static_cast<std::size_t>(random.uniform_integer(0, static_cast<std::int64_t>(values.size()) - 1))];
  };
  Drawn drawn{.text = "",
              .users = any(users),
              .prompt = one_of(random, {100, 500, 1000, 3000, 6000}),
              .output = one_of(random, {50, 150, 400, 1000, 2000})};
  const std::string machine = any(machines);
  drawn.text = fmt::format(
      "{}engine: {}\nworkload:\n  arrivals: {{process: closed_loop, concurrency: {}}}\n  prompt_tokens: {}\n"
      "  output_tokens: {{distribution: uniform, min: {}, max: {}}}\n  requests: {}\n  warmup_requests: {}\n",
      machine, engine, drawn.users, drawn.prompt, drawn.output / 10, drawn.output * 19 / 10, 8 * drawn.users + 100,
      4 * drawn.users);
  return drawn;
}

EstimateRequest request_of(int users, int prompt, int output) {
  EstimateRequest request;
  request.batch = users, request.prompt_tokens = prompt, request.output_tokens = output;
  return request;
}

struct Difference {
  double tpot, throughput;
};

/// Of the closed form to the simulation; nothing where the engine cannot run so many at a time, or refuses such
/// prompts.
std::optional<Difference> difference(const Drawn& drawn) {
  const Scenario s = read_scenario(parse_config_text(drawn.text, "steady.yaml"), Fidelity::kCalibrated);
  StepModel model(s.deployment);
  const EstimateRequest request = request_of(drawn.users, drawn.prompt, drawn.output);
  const std::optional<SteadyLoad> steady = steady_load(model, request);
  if (!steady) return std::nullopt;
  const ServingMetrics m = simulate(s.deployment, *s.workload, s.serving);
  if (m.completed == 0) return std::nullopt;
  return Difference{steady->tpot.in(kMillisecond) / m.tpot_ms.mean() - 1,
                    steady->output_tokens_per_s / steady_output_rate(*s.workload, m) - 1};
}

}  // namespace

/// How many deployments were compared, and how many of them are more than 15 % apart.
struct Tally {
  int compared = 0, apart = 0;
  void add(const Drawn& drawn) {
    CAPTURE(drawn.text);
    const std::optional<Difference> d = difference(drawn);
    if (!d) return;
    const double larger = std::max(std::abs(d->tpot), std::abs(d->throughput));
    ++compared;
    apart += larger > 0.15 ? 1 : 0;
    CHECK(larger < 0.3);
  }
};

/// Few and short outputs of many users, and prompts about as long as the largest graph, are what the mean of
/// independent prompts does not describe.
TEST_CASE(
    "a steady load: the closed form and the simulation agree within 15 %, of one deployment in twenty within 30 %") {
  Tally tally;
  for (const char* engine : {"vllm", "vllm@0.12", "sglang", "trtllm", "trtllm@1.1", "lmdeploy"}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) tally.add(draw(engine, seed));
  }
  // The last two are none of TGI's models.
  for (std::uint64_t seed = 1; seed <= 20; ++seed) tally.add(draw("tgi", seed, std::span(kServers).first(2)));
  CHECK(tally.compared >= 110);
  CHECK(20 * tally.apart <= tally.compared);
}

/// Nine of ten within 15 %, all within 30 %.
TEST_CASE(
    "a steady load: the two agree where ranks wait for each other's prompts, for one user of eight ranks or many") {
  constexpr const char* machines[] = {"model: deepseek-v3\ngpu: b200-sxm\nparallelism: {attention_dp: 8, ep: 8}\n",
                                      "model: gpt-oss-120b\ngpu: b200-sxm\nparallelism: {attention_dp: 4, ep: 4}\n"};
  constexpr int users[] = {2, 4, 8, 12, 16, 32, 128};
  Tally tally;
  for (const char* waits : {"prefill_wait_steps: 60", "prefill_wait_steps: 500, prefill_batch_steps: 10"}) {
    const std::string engine = fmt::format("{{name: trtllm, attention_dp_balance: true, {}}}", waits);
    for (std::uint64_t seed = 1; seed <= 20; ++seed) tally.add(draw(engine, seed, machines, users));
  }
  CHECK(tally.compared >= 35);
  CHECK(10 * tally.apart <= tally.compared);
}

TEST_CASE("a steady load: the two agree for layers of states, whose prompts outside of graphs the host launches") {
  const char* const machines[] = {"model: nemotron-h-8b\ngpu: gb200\n", "model: nemotron-h-8b\ngpu: h100-sxm\n",
                                  "model: qwen3-next-80b-a3b\ngpu: h200-sxm\nparallelism: {tp: 4}\n"};
  constexpr int users[] = {4, 16, 64, 128};
  Tally tally;
  for (const char* engine : {"{name: vllm, prefix_caching: false}", "{name: sglang, prefix_caching: false}"}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) tally.add(draw(engine, seed, machines, users));
  }
  CHECK(tally.compared >= 20);  // none where prompts gather
  CHECK(10 * tally.apart <= tally.compared);
}

/// A budget of few hundred tokens, of which the users' decodes are a good part.
TEST_CASE("a steady load: the two agree where decodes take much of the tokens that a step may have") {
  constexpr const char* machines[] = {"model: llama-3.1-8b\ngpu: h100-sxm\n",
                                      "model: qwen3-next-80b-a3b\ngpu: h100-sxm\nparallelism: {tp: 4}\n"};
  constexpr int users[] = {16, 64, 128};
  Tally tally;
  for (const char* engine : {"vllm", "trtllm", "lmdeploy"}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const int budget = one_of(Random(seed).fork(7), {256, 384, 512, 768, 1024});
      tally.add(draw(fmt::format("{{name: {}, max_num_batched_tokens: {}, prefix_caching: false}}", engine, budget),
                     seed, machines, users));
    }
  }
  CHECK(tally.compared >= 20);
  CHECK(10 * tally.apart <= tally.compared);
}

TEST_CASE("a steady load: the two agree for one to sixteen users of a GPU at home") {
  struct Local {
    const char *engine, *machine;
  };
  constexpr int users[] = {1, 4, 16};
  Tally tally;
  for (const Local& local : {Local{"llama-cpp", "model: llama-3.1-8b\ngpu: rtx-4090\nprecision: gguf_q4_k_m\n"},
                             Local{"ollama", "model: llama-3.1-8b\ngpu: rtx-4090\nprecision: gguf_q4_k_m\n"},
                             Local{"exllamav2", "model: llama-3.1-8b\ngpu: rtx-4090\nprecision: exl_4bpw\n"},
                             Local{"exllamav3", "model: llama-3.1-8b\ngpu: rtx-4090\nprecision: exl_4bpw\n"}}) {
    const char* const machines[] = {local.machine};
    for (std::uint64_t seed = 1; seed <= 20; ++seed) tally.add(draw(local.engine, seed, machines, users));
  }
  CHECK(tally.compared >= 40);
  CHECK(20 * tally.apart <= tally.compared);
}

TEST_CASE("a steady load: engines that run static batches have none") {
  for (const char* engine : {"mlx", "hf-transformers"}) {
    const Scenario s = read_scenario(
        parse_config_text(fmt::format("model: llama-3.1-8b\ngpu: {}\nengine: {}\n",
                                      std::string(engine) == "mlx" ? "apple-m2-ultra" : "h100-sxm", engine),
                          "static.yaml"),
        Fidelity::kCalibrated);
    StepModel model(s.deployment);
    CHECK(!steady_load(model, request_of(4, 500, 100)));
  }
}

TEST_CASE("a steady load: a front end that sends fewer tokens than the GPUs compute binds") {
  const Drawn drawn = draw("{name: trtllm, host: {token_time: 1 ms}}", 1);
  const Scenario s = read_scenario(parse_config_text(drawn.text, "steady.yaml"), Fidelity::kCalibrated);
  StepModel model(s.deployment);
  const EstimateRequest request = request_of(64, 500, 500);
  const std::optional<SteadyLoad> steady = steady_load(model, request);
  REQUIRE(steady);
  CHECK(steady->front_end_share == 1.0);
  CHECK(steady->output_tokens_per_s == doctest::Approx(1000));
}

TEST_CASE("a steady load: TPOT is never below a decode step, however long the prompts") {
  for (const char* engine : {"sglang", "vllm", "trtllm"}) {
    const Scenario s = read_scenario(
        parse_config_text(fmt::format("model: llama-3.1-8b\ngpu: h100-sxm\nengine: {}\n", engine), "steady.yaml"),
        Fidelity::kCalibrated);
    StepModel model(s.deployment);
    for (const int prompt : {100, 2000, 30000, 100000}) {
      for (const int output : {2, 16, 64}) {
        CAPTURE(engine);
        CAPTURE(prompt);
        CAPTURE(output);
        const std::optional<SteadyLoad> steady = steady_load(model, request_of(1, prompt, output));
        REQUIRE(steady);
        const Seconds step = model.time({.decodes = 1, .decode_context = prompt + output / 2.0});
        CHECK(steady->tpot.base() == doctest::Approx(step.base()));  // one user: nothing else runs in between
      }
    }
  }
}
