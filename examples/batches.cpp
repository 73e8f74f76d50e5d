// What a larger batch costs a user and gains the operator, and the error for an invalid scenario.
#include <cstdio>

#include "roofcast/roofcast.h"

int main() {
  roofcast::Scenario scenario;
  scenario.set("model", "llama-3.1-8b").set("gpu", "h100-sxm").set("precision.weights", "fp8");

  for (const int batch : {1, 16, 256, 4096}) {
    const roofcast::Result result = roofcast::estimate(scenario, {.batch = batch, .prompt_tokens = 2000});
    const roofcast::Milliseconds tpot = result.time("tpot_ms");
    std::printf("batch %4d: %6.2f ms a token, %8.0f tokens/s, %5.1f GB of weights%s\n", batch, tpot.count(),
                result.number("output_tokens_per_s"), result.bytes("memory.weight_bytes").gigabytes(),
                result.answered() ? "" : ", does not fit");
  }

  const auto load = roofcast::Scenario::from_text(R"(
model: llama-3.1-8b
gpu: h100-sxm
workload:
  arrivals: {process: poisson, rate: 8 /s}
  prompt_tokens: 1000
  output_tokens: 100
  requests: 200
)");
  const roofcast::Result run = roofcast::simulate(load);
  std::printf("under load: %.0f requests, p99 TTFT %.1f ms\n", run.number("completed"),
              roofcast::Milliseconds(run.time("p99_ttft_ms")).count());

  try {
    (void)roofcast::simulate(roofcast::Scenario(load).set("parallelism.tp", "two"));
  } catch (const roofcast::Error& error) {
    std::printf("refused: %s\n", error.what());
  }
}
