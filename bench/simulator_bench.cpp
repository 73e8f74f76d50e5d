// Speed of the simulator itself. ./dev bench

#include <benchmark/benchmark.h>

#include "base/config_library.h"
#include "sim/plan/estimate.h"
#include "sim/plan/scenario.h"

namespace roofcast {
namespace {

Scenario scenario(const char* text) { return read_scenario(parse_config_text(text, "bench"), Fidelity::kCalibrated); }

const char* const kLlama8b = R"(
model: llama-3.1-8b
gpu: h100-sxm
engine: {name: vllm}
workload:
  arrivals: {process: closed_loop, concurrency: 16}
  prompt_tokens: {distribution: fixed, value: 1024}
  output_tokens: {distribution: fixed, value: 128}
  requests: 1000
)";

/// A decode step with a cached price (this one), and without.
void step_query_warm(benchmark::State& state) {
  StepModel model(scenario(kLlama8b).deployment);
  double context = 16 * 1024;
  for (auto _ : state) {
    context = context < 16 * 4096 ? context + 16 : 16 * 1024;
    benchmark::DoNotOptimize(model.time({.decodes = 16, .decode_context = context, .prefills = {}}));
  }
}
BENCHMARK(step_query_warm);

void step_query_fresh(benchmark::State& state) {
  const auto deployment = scenario(kLlama8b).deployment;
  int decodes = 1025;
  std::optional<StepModel> model;
  for (auto _ : state) {
    if (++decodes > 1024) {
      state.PauseTiming();
      model.emplace(deployment);
      decodes = 1;
      state.ResumeTiming();
    }
    benchmark::DoNotOptimize(model->time({.decodes = decodes, .decode_context = decodes * 2000.0, .prefills = {}}));
  }
}
BENCHMARK(step_query_fresh);

void one_estimate(benchmark::State& state) {
  const auto deployment = scenario(kLlama8b).deployment;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        estimate(deployment, {.batch = 64, .prompt_tokens = 1024, .output_tokens = 128, .context = {}, .replicas = 1}));
  }
}
BENCHMARK(one_estimate);

/// Requests simulated per second: in lockstep at concurrency 16, and as a Poisson stream of chats.
void serve(benchmark::State& state, const Scenario& s) {
  std::int64_t requests = 0;
  for (auto _ : state) requests += simulate(s.deployment, *s.workload, s.serving).completed;
  state.counters["requests"] = benchmark::Counter(static_cast<double>(requests), benchmark::Counter::kIsRate);
}
void serve_lockstep(benchmark::State& state) { serve(state, scenario(kLlama8b)); }
BENCHMARK(serve_lockstep);

void serve_chat(benchmark::State& state) {
  serve(state, scenario(R"(
model: llama-3.1-8b
gpu: h100-sxm
engine: {name: vllm}
workload:
  arrivals: {process: poisson, rate: 6 /s}
  prompt_tokens: {distribution: lognormal, mean: 1155, p50: 1020, max: 8192}
  output_tokens: {distribution: lognormal, mean: 211, p50: 129, max: 1000}
  requests: 20000
)"));
}
BENCHMARK(serve_chat);

}  // namespace
}  // namespace roofcast

BENCHMARK_MAIN();
