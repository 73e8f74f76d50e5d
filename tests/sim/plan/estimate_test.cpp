#include "sim/plan/estimate.h"

#include <doctest/doctest.h>

#include "sim/plan/power.h"
#include "sim/plan/scenario.h"

using namespace roofcast;

TEST_CASE("estimate: the prompts of a batch pass the front end and the GPU one after another") {
  auto d = std::make_shared<Deployment>(
      *read_scenario(parse_config_text("{model: llama-3.1-8b, gpu: h100-sxm}", "test.yaml"), Fidelity::kCalibrated)
           .deployment);
  const EstimateRequest batch{.batch = 10, .prompt_tokens = 1000, .output_tokens = 10, .context = std::nullopt};
  d->engine.host.request_latency = Seconds(5e-3);
  d->engine.host.prompt_token_time = Seconds(1e-6);
  // 1 ms + 1000 us = 2 ms a prompt, less than the 10 ms or more that its prefill takes: hidden but for the first.
  d->engine.host.request_time = Seconds(1e-3);
  const Estimate hidden = estimate(d, batch);
  CHECK(hidden.prefill.time > Seconds(100e-3));
  CHECK(hidden.ttft.base() == doctest::Approx(5e-3 + 2e-3 + hidden.prefill.time.base()));
  // 200 ms a prompt: the GPU waits for each, and computes the last one after all have come.
  d->engine.host.request_time = Seconds(199e-3);
  const Estimate late = estimate(d, batch);
  CHECK(late.ttft.base() == doctest::Approx(5e-3 + 10 * 200e-3 + late.prefill.time.base() / 10));
}

TEST_CASE("estimate: an engine that does not cut prompts prefills as many whole ones a step as its budget holds") {
  const auto steps = [](bool chunked, int budget, int prompt) {
    auto d = std::make_shared<Deployment>(
        *read_scenario(parse_config_text("{model: llama-3.1-8b, gpu: h100-sxm}", "test.yaml"), Fidelity::kCalibrated)
             .deployment);
    d->engine.chunked_prefill = chunked;
    d->engine.max_num_batched_tokens = budget;
    return estimate(d, {.batch = 8, .prompt_tokens = prompt, .output_tokens = 1, .context = std::nullopt})
        .prefill_steps;
  };
  CHECK(steps(true, 2500, 1000) == 4);   // 8,000 tokens by 2,500
  CHECK(steps(false, 2500, 1000) == 4);  // two prompts a step
  CHECK(steps(true, 1700, 1000) == 5);
  CHECK(steps(false, 1700, 1000) == 8);
  CHECK(steps(false, 500, 1000) == 8);  // more than an engine takes: one at a time
}

TEST_CASE("utilization is of the fastest format that a product runs in") {
  const auto at_peak = [](const std::string& scenario, Dtype format) {
    const auto d = read_scenario(parse_config_text(scenario, "test.yaml"), Fidelity::kCalibrated).deployment;
    return utilization_of(*d, Seconds(1), d->gpu.peak(format) * Seconds(1), Bytes(0)).compute;
  };
  CHECK(at_peak("{model: llama-3.1-8b, gpu: h100-sxm}", Dtype::kBf16) == doctest::Approx(1));
  CHECK(at_peak("{model: llama-3.1-8b, gpu: h100-sxm, precision: fp8}", Dtype::kFp8) == doctest::Approx(1));
  // Attention has 16 bit beside fp32 weights, and beside int8 ones on a GPU whose int8 units are slower.
  CHECK(at_peak("{model: llama-3.1-8b, gpu: h100-sxm, precision: fp32}", Dtype::kBf16) == doctest::Approx(1));
  CHECK(at_peak("{model: llama-3.1-8b, gpu: b300-sxm, precision: smoothquant}", Dtype::kBf16) == doctest::Approx(1));
  CHECK(at_peak("{model: glm-5, gpu: h100-sxm, precision: bf16}", Dtype::kFp8) == doctest::Approx(1));  // its indexer
}
