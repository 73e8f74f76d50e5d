#include "sim/plan/estimate.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/plan/power.h"
#include "sim/plan/scenario.h"
#include "sim/plan/steady_load.h"
#include "sim/plan/token_bill.h"
#include "sim/plan/usual_lengths.h"
#include "sim/step/deployment.h"

using namespace roofcast;

namespace {

const EstimateRequest kBatch{.batch = 10, .prompt_tokens = 1000, .output_tokens = 10, .context = std::nullopt};

/// A request waits 5 ms beside its prompt's 1 us a token and what a test gives the front end.
std::shared_ptr<Deployment> behind_front_end() {
  auto d = std::make_shared<Deployment>(
      *read_scenario(parse_config_text("{model: llama-3.1-8b, gpu: h100-sxm}", "test.yaml"), Fidelity::kCalibrated)
           .deployment);
  d->engine.host.request_latency = Seconds(5e-3);
  d->engine.host.prompt_token_time = Seconds(1e-6);
  return d;
}

}  // namespace

TEST_CASE("estimate: prompts of just the token budget pass a pipeline as those of a token more") {
  const Scenario s = read_scenario(
      parse_config_text("model: llama-3.1-70b\ngpu: h100-sxm\nengine: {name: vllm, max_num_batched_tokens: 8192}\n"
                        "parallelism: {tp: 2, pp: 4}\n",
                        "s.yaml"),
      Fidelity::kCalibrated);
  const auto ttft = [&](int prompt) {
    EstimateRequest request;
    request.batch = 16, request.prompt_tokens = prompt, request.output_tokens = 1;
    return estimate(s.deployment, request).ttft.base();
  };
  CHECK(ttft(8192) == doctest::Approx(ttft(8193)).epsilon(0.1));
  const auto last = [&](int prompt) {
    WorkloadSpec all;
    all.requests = 16;
    all.prompt_tokens.law = LengthSpec::Fixed{prompt};
    all.output_tokens.law = LengthSpec::Fixed{1};
    return simulate(s.deployment, all, {}).ttft_ms.max();
  };
  CHECK(last(8192) == doctest::Approx(last(8193)).epsilon(0.25));
}

TEST_CASE("lengths that nobody names fit the model") {
  const auto usual = [](const std::string& model, std::optional<int> prompt = {}, std::optional<int> output = {}) {
    const auto d =
        read_scenario(parse_config_text("{model: " + model + ", gpu: h100-sxm}", "test.yaml"), Fidelity::kCalibrated)
            .deployment;
    const RequestLengths lengths = usual_lengths(*d, prompt, output);
    return std::pair(lengths.prompt_tokens, lengths.output_tokens);
  };
  CHECK(usual("llama-3.1-8b") == std::pair(1024, 128));
  CHECK(usual("llama-3.1-8b", 7) == std::pair(7, 128));
  CHECK(usual("gpt-2") == std::pair(896, 128));  // of 1024 positions
  CHECK(usual("gpt-2", 1000) == std::pair(1000, 24));
  CHECK(usual("gpt-2", {}, 1000) == std::pair(24, 1000));
  CHECK(usual("gpt-2", 2000) == std::pair(2000, 1));  // too long is said elsewhere
  CHECK(usual("{name: gpt-2, n_positions: 100}") == std::pair(88, 12));
  CHECK(usual("whisper-large-v3") == std::pair(4, 128));
  CHECK(usual("whisper-large-v3", 400) == std::pair(400, 48));  // of 448
  CHECK(usual("bart-large-cnn") == std::pair(1024, 128));
  CHECK(usual("bart-large-cnn", {}, 2000) == std::pair(1024, 2000));
}

TEST_CASE("estimate: the prompts of a batch pass the front end and the GPU one after another") {
  const std::shared_ptr<Deployment> d = behind_front_end();
  // 1 ms + 1000 us = 2 ms a prompt, less than the 10 ms or more that its prefill takes: hidden but for the first.
  d->engine.host.request_time = Seconds(1e-3);
  const Estimate hidden = estimate(d, kBatch);
  CHECK(hidden.prefill.time > Seconds(100e-3));
  CHECK(hidden.ttft.base() == doctest::Approx(5e-3 + 2e-3 + hidden.prefill.time.base()));
  CHECK(hidden.front_end.base() == doctest::Approx(5e-3 + 2e-3));
  // 200 ms a prompt: the GPU waits for each, and computes the last one after all have come.
  d->engine.host.request_time = Seconds(199e-3);
  const Estimate late = estimate(d, kBatch);
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

TEST_CASE("a cache of 8 bit does not halve the power of 16-bit products") {
  const auto joules = [](const std::string& model, const std::string& cache) {
    const auto d =
        read_scenario(parse_config_text("{model: " + model + ", gpu: h100-sxm, precision: {kv_cache: " + cache + "}}",
                                        "test.yaml"),
                      Fidelity::kCalibrated)
            .deployment;
    return power_of(d->gpu, drawn_by(*d, Seconds(1), Flops(3e14), Bytes(1e12))).value;
  };
  CHECK(joules("mamba-2.8b", "fp8") == joules("mamba-2.8b", "bf16"));
  CHECK(joules("llama-3.1-8b", "fp8") == joules("llama-3.1-8b", "bf16"));
}

TEST_CASE("MFU asks for attention's format only where a layer attends") {
  const auto mfu = [](const std::string& cache) {
    const auto d = read_scenario(parse_config_text(
                                     "{model: mamba-2.8b, gpu: h100-sxm, precision: {kv_cache: " + cache + "}}", "t"),
                                 Fidelity::kCalibrated)
                       .deployment;
    return utilization_of(*d, Seconds(1), Flops(3e14), Bytes(0)).compute;
  };
  CHECK(mfu("fp8") == mfu("bf16"));
}

namespace {

Estimate of(const std::string& yaml, Fidelity fidelity, EstimateRequest request) {
  return estimate(read_scenario(parse_config_text(yaml, "test.yaml"), fidelity).deployment, request);
}

}  // namespace

TEST_CASE("what fits counts activations in the ideal plan, too") {
  // Llama-2-13B: 26.0 GB and 0.82 MB a token; 62 sequences of 1,152 tokens take 58.5 GB, buffers of 8,192 tokens 0.93:
  // 85.5 of 85.0 GB. 61 take 57.6.
  const auto at = [](int batch) {
    return of("{model: llama-2-13b, gpu: h100-sxm}", Fidelity::kIdeal,
              {.batch = batch, .prompt_tokens = 1024, .output_tokens = 128, .context = std::nullopt});
  };
  for (const int batch : {1, 30, 61, 62, 70}) {
    const Estimate e = at(batch);
    const double used = e.memory.weights.base() + e.memory.cache.base() + e.memory.activations.base();
    CHECK(e.memory.fits == (used <= e.memory.capacity.base()));
  }
  CHECK(at(61).memory.fits);
  CHECK_FALSE(at(62).memory.fits);
  CHECK(at(62).memory.max_batch == 61);
}

TEST_CASE("naive attention holds the scores of a layer: heads x queries x keys in 16 bit") {
  const auto activations = [](const std::string& model, int tp, const std::string& kernel, int prompt) {
    return of("{model: " + model + ", gpu: h200-sxm, parallelism: {tp: " + std::to_string(tp) +
                  "}, engine: {name: vllm, max_num_batched_tokens: 32768, attention_kernel: " + kernel + "}}",
              Fidelity::kCalibrated,
              {.batch = 1, .prompt_tokens = prompt, .output_tokens = 16, .context = std::nullopt})
        .memory.activations.base();
  };
  const auto scores = [&](const std::string& model, int tp, int prompt) {
    return activations(model, tp, "naive", prompt) - activations(model, tp, "flash", prompt);
  };
  CHECK(scores("llama-3.1-8b", 1, 32768) == doctest::Approx(32.0 * 32768 * 32768 * 2));  // 68.7 GB
  CHECK(scores("llama-3.1-8b", 2, 8192) == doctest::Approx(16.0 * 8192 * 8192 * 2));
  CHECK(scores("deepseek-v3", 8, 8192) == doctest::Approx(16.0 * 8192 * 8192 * 2));  // 128 heads over 8 GPUs
}

TEST_CASE("naive attention over latents expands every cached token for every head, in decode too") {
  const auto at = [](const std::string& kernel) {
    return of("{model: deepseek-v3, gpu: h200-sxm, parallelism: {tp: 8}, engine: {name: vllm, attention_kernel: " +
                  kernel + "}}",
              Fidelity::kIdeal, {.batch = 4, .prompt_tokens = 4096, .output_tokens = 16, .context = 4096});
  };
  const auto flops = [](const Estimate& e, const std::string& name) {
    double sum = 0;
    for (const OperatorTime& line : e.decode.operators) sum += line.name == name ? line.cost.flops.base() : 0;
    return sum;
  };
  // 61 layers: 4 x 4096 latents of 512 to 16 heads of 128 + 128; 16 heads over 4096 tokens of 192 + 128 dimensions.
  CHECK(flops(at("naive"), "kv_b_proj") == doctest::Approx(61.0 * 2 * 4 * 4096 * 512 * 16 * 256));
  CHECK(flops(at("naive"), "attention") == doctest::Approx(61.0 * 4 * 16 * 4096 * 2 * 320).epsilon(0.001));
  CHECK(flops(at("flash"), "kv_b_proj") == 0);
  const auto refused = [](const std::string& model, const std::string& kernel) {
    try {
      of("{model: " + model +
             ", gpu: b200-sxm, parallelism: {tp: 8}, engine: {name: vllm, attention_kernel: " + kernel + "}}",
         Fidelity::kIdeal, {});
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused("deepseek-v3", "flash_unsplit").find("always split the context") != std::string::npos);
  CHECK(refused("deepseek-v3.2", "naive").find("chosen or compressed") != std::string::npos);
  CHECK(refused("deepseek-v3", "naive").empty());
}

TEST_CASE("estimate: a cached token costs something, and no more than one that is computed") {
  for (const char* text :
       {"{model: deepseek-v3, gpu: h200-sxm, parallelism: {tp: 8}}",
        "{model: qwen3-next-80b-a3b, gpu: h200-sxm, parallelism: {tp: 4}}", "{model: nemotron-h-8b, gpu: h100-sxm}",
        "{model: falcon-mamba-7b, gpu: h100-sxm}", "{model: llama-3.1-8b, gpu: h100-sxm}"}) {
    const auto d = read_scenario(parse_config_text(text, "test.yaml"), Fidelity::kCalibrated).deployment;
    for (const int prompt : {64, 1024, 4096}) {
      CAPTURE(text);
      CAPTURE(prompt);
      const Estimate e =
          estimate(d, {.batch = 8, .prompt_tokens = prompt, .output_tokens = 64, .context = std::nullopt});
      CHECK(e.cost.usd_per_million_cached_input_tokens > 0);
      CHECK(e.cost.usd_per_million_cached_input_tokens <= e.cost.usd_per_million_input_tokens);
    }
  }
}

TEST_CASE("estimate: cached tokens do not pay for another kernel of the prompt's own tokens") {
  // GLM-5's indexer chooses 2048 tokens. A prompt of 1025 after as many cached ones sees 2050, and runs the kernel of
  // chosen tokens; so does one of 2048 after one. What that costs the prompt is not a cached token's.
  const auto d = read_scenario(parse_config_text("{model: glm-5, gpu: h200-sxm, engine: vllm, parallelism: {tp: 8}, "
                                                 "precision: fp8}",
                                                 "test.yaml"),
                               Fidelity::kCalibrated)
                     .deployment;
  StepModel model(d);
  const auto seconds = [&](int prompt) { return cached_token_seconds(model, prompt); };
  CHECK(seconds(2048) == doctest::Approx(seconds(2049)).epsilon(0.02));
  CHECK(seconds(1025) < 1.2 * seconds(2049));
  CHECK(seconds(1023) == doctest::Approx(seconds(1024)).epsilon(0.02));
}

TEST_CASE("estimate: a context is held against the memory, as a prompt of that length is") {
  const auto d =
      read_scenario(parse_config_text("{model: llama-3.1-8b, gpu: h100-sxm}", "test.yaml"), Fidelity::kCalibrated)
          .deployment;
  const EstimateRequest shorter{.batch = 256, .prompt_tokens = 1024, .output_tokens = 128, .context = std::nullopt};
  EstimateRequest longer = shorter;
  longer.context = 131072;
  CHECK(estimate(d, shorter).memory.fits);
  const Estimate e = estimate(d, longer);
  CHECK(!e.memory.fits);
  // 32 layers x 8 heads x 128 x 2 x 2 bytes = 131,072 bytes a token
  CHECK(e.memory.cache.base() == doctest::Approx(256.0 * 131072 * 131072));
  longer.context = 1100;  // below the sequence's end: nothing changes
  CHECK(estimate(d, longer).memory.cache == estimate(d, shorter).memory.cache);
}

TEST_CASE("estimate: a front end of several servers takes in so many prompts at a time") {
  const std::shared_ptr<Deployment> d = behind_front_end();
  d->engine.host.request_time = Seconds(399e-3);
  // 400 ms a prompt: four servers let one through every 100 ms, longer than its prefill.
  d->engine.api_servers = 4;
  const Estimate e = estimate(d, kBatch);
  REQUIRE(e.prefill.time < Seconds(1));
  CHECK(e.ttft.base() == doctest::Approx(5e-3 + 400e-3 + 9 * 100e-3 + e.prefill.time.base() / 10));
  // Their intake bounds the steady load, too: ten requests a second of ten tokens each.
  CHECK(steady_load(d, kBatch).output_tokens_per_s == doctest::Approx(100).epsilon(0.05));
}

namespace {

EstimateRequest request_of(int batch, int prompt, int output) {
  EstimateRequest r;
  r.batch = batch;
  r.prompt_tokens = prompt;
  r.output_tokens = output;
  return r;
}

}  // namespace

TEST_CASE("a batch beyond what the engine runs at a time is priced as those that run") {
  const auto of = [](const std::string& scenario, int batch) {
    const auto d = read_scenario(parse_config_text(scenario, "test.yaml"), Fidelity::kCalibrated).deployment;
    return estimate(d, request_of(batch, 128, 128));
  };
  const std::string eight = "{model: llama-3.1-8b, gpu: h100-sxm, engine: {name: vllm, max_num_seqs: 8}}";
  const Estimate some = of(eight, 8), more = of(eight, 64);
  CHECK(some.waiting == 0);
  CHECK(more.waiting == 56);
  CHECK(more.request.batch == 8);
  CHECK(more.output_tokens_per_s == some.output_tokens_per_s);
  CHECK(more.tpot == some.tpot);
  CHECK(more.cost.joules_per_output_token == some.cost.joules_per_output_token);
  CHECK(more.cost.usd_per_million_output_tokens == some.cost.usd_per_million_output_tokens);
  CHECK(more.memory.cache == some.memory.cache);
  // Each of four ranks runs eight.
  const Estimate ranks =
      of("{model: qwen3-30b-a3b, gpu: h100-sxm, parallelism: {attention_dp: 4, ep: 4}, engine: {name: vllm, "
         "max_num_seqs: 8}}",
         40);
  CHECK(ranks.request.batch == 32);
  CHECK(ranks.waiting == 8);
  const auto ideal = read_scenario(parse_config_text(eight, "test.yaml"), Fidelity::kIdeal).deployment;
  CHECK(estimate(ideal, request_of(64, 128, 128)).request.batch == 64);  // the lectures' arithmetic knows no engine
}

TEST_CASE("an engine without blocks has room for regions of its longest request") {
  const auto of = [](const std::string& engine, int batch) {
    const auto d =
        read_scenario(parse_config_text("{model: llama-3.1-8b, gpu: h100-sxm, engine: {name: vllm, " + engine + "}}",
                                        "test.yaml"),
                      Fidelity::kCalibrated)
            .deployment;
    return std::pair(estimate(d, request_of(batch, 128, 128)), d);
  };
  // 131,072 tokens of 131,072 bytes: 17.2 GB each, of some 55 GB
  const auto [whole, d] = of("block_size: 0", 100);
  CHECK(whole.memory.max_batch == std::floor(d->memory.cache.base() / (131072.0 * 131072.0)));
  CHECK(whole.memory.max_batch < 5);
  CHECK(whole.request.batch == whole.memory.max_batch);
  CHECK(whole.waiting == 100 - whole.request.batch);
  CHECK(whole.memory.max_context == 131072);
  const auto [small, e] = of("block_size: 0, max_model_len: 256", 100);
  CHECK(small.memory.fits);
  CHECK(small.memory.max_batch <= std::floor(e->memory.cache.base() / (256 * 131072.0)));  // buffers take some
  CHECK(small.memory.max_batch > 1000);
  CHECK(small.waiting == 0);
}
