// Time of one estimate through the C++ library; python/bench/speed.py measures the same through Python.
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
