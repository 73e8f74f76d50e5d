// The cheapest deployments that meet an objective, the nearest one where none does, and the notes beside the answer.
#include <cstdio>
#include <string>

#include "roofcast/roofcast.h"

namespace {

void print_deployment(const roofcast::Result& result, const std::string& key) {
  std::printf("%.0f x %s, tp %.0f: %.2f USD/h\n", result.number(key + ".gpus"), result.text(key + ".gpu").c_str(),
              result.number(key + ".parallelism.tp"), result.number(key + ".usd_per_hour"));
}

void print_plan(const roofcast::Scenario& scenario) {
  const roofcast::Result result = roofcast::plan(scenario);
  for (std::size_t i = 0; i < result.size("deployments"); ++i)
    print_deployment(result, "deployments." + std::to_string(i));
  if (!result.answered()) {
    std::printf("no answer: %s\nnearest: ", result.reason().c_str());
    print_deployment(result, "nearest");
  }
  for (const std::string& note : result.notes()) std::printf("note: %s\n", note.c_str());
}

}  // namespace

int main() {
  try {
    auto scenario = roofcast::Scenario::from_text(R"(
model: llama-3.1-8b
objectives: {ttft_p90: 1 s, tpot_p90: 20 ms}
workload:
  arrivals: {process: poisson, rate: 8 /s}
  prompt_tokens: 1000
  output_tokens: 100
  requests: 200
search: {gpus: [h100-sxm, l40s], tp: [1, 2], max_gpus: 4}
)");
    print_plan(scenario);
    print_plan(scenario.set("objectives.ttft_p90", "1 us"));
    print_plan(scenario.set("search.gpus", "[h100-sxn]"));
  } catch (const roofcast::Error& error) {
    std::printf("refused: %s\n", error.what());
  }
}
