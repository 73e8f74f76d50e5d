// What one estimate costs through the library: python/bench/speed.py asks the same through Python.
#include <benchmark/benchmark.h>

#include "roofcast/roofcast.h"

namespace {

void one_estimate(benchmark::State& state) {
  const roofcast::Scenario scenario = roofcast::Scenario().set("model", "llama-3.1-8b").set("gpu", "h100-sxm");
  for (auto _ : state) benchmark::DoNotOptimize(roofcast::estimate(scenario, {.batch = 16}));
}
BENCHMARK(one_estimate)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
