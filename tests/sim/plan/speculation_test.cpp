#include "sim/plan/speculation.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/csv.h"
#include "sim/plan/acceptance.h"
#include "sim/plan/estimate.h"
#include "sim/plan/scenario.h"
#include "sim/plan/speculation_math.h"
#include "sim/step/deployment.h"
#include "tests/measured_data.h"

using namespace roofcast;

namespace {

Scenario scenario(const std::string& yaml, Fidelity fidelity = Fidelity::kIdeal) {
  return read_scenario(parse_config_text(yaml, "test.yaml"), fidelity);
}

Scenario llama_70b(const std::string& speculation, Fidelity fidelity = Fidelity::kIdeal) {
  return scenario("model: llama-2-70b\ngpu: h100-sxm\nparallelism: {tp: 4}\n" +
                      (speculation.empty() ? "" : "speculation: " + speculation),
                  fidelity);
}

Estimate run(const Scenario& s, int batch) {
  return estimate(s.deployment, {.batch = batch,
                                 .prompt_tokens = 1000,
                                 .output_tokens = 100,
                                 .context = std::nullopt,
                                 .speculation = s.serving.speculation});
}

std::string message_of(const std::string& speculation) {
  try {
    llama_70b(speculation);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a draft of a tenth of the target's bytes: E / (1 + k r)") {
  // Llama-2-7B reads 13.2 GB, 70B 137.4 GB: r = 0.096 and a bit for the caches
  const Estimate e = run(llama_70b("{method: draft_model, model: llama-2-7b, acceptance: 0.8}"), 1);
  REQUIRE(e.speculation.has_value());
  const double ratio = e.speculation->draft_time / e.speculation->plain_step / 4;
  CHECK(ratio == doctest::Approx(13.2 / 137.4).epsilon(0.05));
  CHECK(e.speculation->tokens_per_step == doctest::Approx(3.3616));
  CHECK(e.speculation->tokens_bound == doctest::Approx(4.2));
  CHECK(e.speculation->speedup ==
        doctest::Approx(speculation_speedup(0.8, 4, ratio)).epsilon(0.01));  // verifying is free
  CHECK(e.tpot.base() == doctest::Approx(e.decode.time.base() / 3.3616));
}

TEST_CASE("no speculation: no drafter in memory, the plain step") {
  const Scenario none = llama_70b("{method: none}"), plain = llama_70b("");
  const Estimate e = run(none, 4);
  CHECK_FALSE(e.speculation.has_value());
  CHECK(e.tpot == run(plain, 4).tpot);
  CHECK(none.deployment->memory.weights == plain.deployment->memory.weights);
}

TEST_CASE("without acceptance it is never faster than without speculation") {
  for (const char* method : {"eagle", "eagle3", "medusa", "ngram", "self_draft"}) {
    for (const Fidelity fidelity : {Fidelity::kIdeal, Fidelity::kCalibrated}) {
      const Estimate e = run(llama_70b(std::string("{acceptance: 0, method: ") + method + "}", fidelity), 8);
      CAPTURE(method);
      CHECK(e.speculation->speedup <= 1.0 + 1e-12);
      CHECK(e.speculation->best_drafts == 0);
    }
  }
}

TEST_CASE("the gain shrinks with the batch: verifying costs once the weights are read anyway") {
  double last = 1e9;
  for (int batch : {1, 16, 64, 256}) {
    const double speedup = run(llama_70b("{method: eagle}"), batch).speculation->speedup;
    CHECK(speedup <= last + 1e-9);
    last = speedup;
  }
  CHECK(last < 1.5);
}

TEST_CASE("acceptance by position, and from a trace of accepted drafts") {
  // 10 steps: 4 accepted nothing, 2 one, 4 two of two: P(>= 1) = 0.6, P(>= 2) = 0.4
  const std::array accepted{0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0};
  const auto by_position = acceptance_by_position(accepted, 2);
  CHECK(by_position[0] == doctest::Approx(0.6));
  CHECK(by_position[1] == doctest::Approx(0.4 / 0.6));
  const Estimate e = run(llama_70b("{method: ngram, num_speculative_tokens: 2, acceptance: [0.6, 0.6667]}"), 1);
  CHECK(e.speculation->tokens_per_step == doctest::Approx(1 + 0.6 + 0.4).epsilon(1e-3));
}

TEST_CASE("acceptance: where none is given it is as measured elsewhere, less with each draft") {
  for (const auto& [file_method, method] :
       {std::pair{"MTP", SpeculationSpec::Method::kMtp}, std::pair{"EAGLE3", SpeculationSpec::Method::kEagle3}}) {
    const std::vector<double> usual = usual_acceptance(method);
    REQUIRE(usual.size() > 4);
    for (std::size_t i = 1; i < usual.size(); ++i) CHECK(usual[i] < usual[i - 1]);
    CHECK(usual[1] / usual[0] == doctest::Approx(usual[4] / usual[3]));
    CHECK(acceptance_words(method, usual[0]).ends_with("measured on other models, on code (chat accepts less)"));
    CHECK(acceptance_words(method, 0.5) == "0.5 (an assumption)");
    const std::string table = roofcast::testing::kWholeData + "/published/inferencex_accept_len.csv";
    if (!std::filesystem::exists(table)) continue;
    // Mean tokens a step of each number of drafts, every model with the same weight.
    const CsvTable measured = CsvTable::read_file(table);
    for (int k = 1; k <= 8; ++k) {
      std::map<std::string, std::vector<double>> models;
      for (std::size_t row = 0; row < measured.rows(); ++row) {
        if (measured.at(row, measured.column("spec_decode")) == fmt::format("{} k={}", file_method, k))
          models[std::string(measured.at(row, measured.column("model")))].push_back(
              measured.number(row, measured.column("value")));
      }
      REQUIRE_FALSE(models.empty());
      double mean = 0;
      for (const auto& [model, values] : models)
        mean += std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()) /
                static_cast<double>(models.size());
      SpeculationSpec spec{.method = method, .num_speculative_tokens = k, .acceptance = usual};
      CHECK(AcceptanceLaw(spec).mean_tokens() == doctest::Approx(mean).epsilon(0.035));
    }
  }
  // Every draft of methods that nobody measured like that is accepted as often.
  CHECK(usual_acceptance(SpeculationSpec::Method::kMedusa) == std::vector<double>{0.6});
  CHECK(acceptance_deviation() == doctest::Approx(0.1));
}

TEST_CASE("acceptance leaves the speed-up open, and the time per token") {
  // 1.7 tokens a step; 0.1645 less often, the 5 % quantile of a deviation of 0.1, 1.5355: 0.903 of the speed-up
  const Estimate e =
      run(llama_70b("{method: eagle3, num_speculative_tokens: 1, acceptance: 0.7}", Fidelity::kCalibrated), 1);
  const SpeculationEstimate& s = *e.speculation;
  CHECK(s.speedup_low / s.speedup == doctest::Approx(1.5355 / 1.7));
  CHECK(s.speedup_high / s.speedup == doctest::Approx(1.8645 / 1.7));
  CHECK(e.tpot_interval.high / e.tpot > 1.7 / 1.5355);
  const LogSpread none = acceptance_spread({});
  CHECK(none.low == 0);
  CHECK(none.high == 0);
}

TEST_CASE("where drafts keep an engine from scheduling ahead, each step waits for the scheduler's work") {
  const auto drafting = [](const std::string& engine, const std::string& method) {
    return scenario("model: llama-3.1-8b\ngpu: h100-sxm\nengine: {name: " + engine +
                        "}\nspeculation: {method: " + method + ", num_speculative_tokens: 3, acceptance: 0.7}",
                    Fidelity::kCalibrated);
  };
  const Scenario before = drafting("sglang, version: 0.5.12", "eagle3"),
                 since = drafting("sglang, version: 0.5.13", "eagle3");
  CHECK_FALSE(before.deployment->engine.plans_ahead());
  CHECK(since.deployment->engine.plans_ahead());
  const SpeculationEstimate then = *run(before, 8).speculation, now = *run(since, 8).speculation;
  const HostCosts& host = before.deployment->engine.host;
  CHECK((then.verify_time - now.verify_time).base() ==
        doctest::Approx((host.scheduler_time + host.scheduler_sequence_time * 8.0).base()).epsilon(1e-6));
  CHECK(then.plain_step.base() == doctest::Approx(now.plain_step.base()));
  CHECK(drafting("vllm, version: 0.20", "ngram").deployment->engine.serial_drafts);
  CHECK_FALSE(drafting("vllm, version: 0.20", "eagle").deployment->engine.serial_drafts);
}

TEST_CASE("lookahead: no drafter, (W + G)(N - 1) positions, one of G guesses") {
  const auto looking = [](const std::string& keys) {
    return llama_70b("{method: lookahead" + keys + "}\nforce_unsupported: true");  // vLLM has none
  };
  const Estimate e = run(looking(", acceptance: 0.5, window: 4, ngram: 3, guesses: 2"), 1);
  // P(one of two guesses right in its first token) = 1 - 0.25, in both 1 - (3/4)^2
  CHECK(e.speculation->tokens_per_step == doctest::Approx(1 + 0.75 + 0.4375));
  CHECK(e.speculation->draft_time == Seconds(0));
  const Scenario s = looking(", window: 4, ngram: 3, guesses: 2");
  CHECK(s.serving.speculation.query_len() == (4 + 2) * (3 - 1));
  CHECK(s.deployment->memory.weights == llama_70b("").deployment->memory.weights);
  CHECK(message_of("{method: lookahead, num_speculative_tokens: 4}").find("num_speculative_tokens") !=
        std::string::npos);
  CHECK(message_of("{method: lookahead, ngram: 1}").find("ngram") != std::string::npos);
  // Llama-2-7B on an A100 at its usual acceptance: the paper's 1.8x on MT-bench (arXiv:2402.02057, abstract)
  const Scenario seven =
      scenario("model: llama-2-7b\ngpu: a100-sxm\nspeculation: {method: lookahead}\nforce_unsupported: true",
               Fidelity::kCalibrated);
  CHECK(run(seven, 1).speculation->speedup == doctest::Approx(1.8).epsilon(0.15));
}

TEST_CASE("suffix: as many drafts as are likely enough") {
  const auto drafts = [](const std::string& keys) {
    return llama_70b("{method: suffix" + keys + "}").serving.speculation.num_speculative_tokens;
  };
  CHECK(drafts(", acceptance: 0.5") == 3);  // 0.5, 0.25, 0.125; the fourth falls below 0.1
  CHECK(drafts(", acceptance: 0.5, min_probability: 0.125") == 3);
  CHECK(drafts(", acceptance: 0.5, min_probability: 0.126") == 2);
  CHECK(drafts(", acceptance: 0.05") == 1);
  CHECK(drafts(", acceptance: 1") == 24);
  CHECK(drafts(", acceptance: 1, num_speculative_tokens: 7") == 7);
  CHECK(drafts(", acceptance: [0.9, 0.2]") == 2);
  CHECK(message_of("{method: suffix, tree_width: 2}").find("tree_width") != std::string::npos);
  CHECK(message_of("{method: suffix, min_probability: 2}").find("min_probability") != std::string::npos);
  const Estimate e = run(llama_70b("{method: suffix, acceptance: 0.5}"), 1);
  CHECK(e.speculation->tokens_per_step == doctest::Approx(1 + 0.5 + 0.25 + 0.125));
}

TEST_CASE("a tree of two candidates a position accepts more and verifies more") {
  const Estimate chain = run(llama_70b("{method: medusa, acceptance: 0.6}"), 1);
  const Estimate tree = run(llama_70b("{method: medusa, acceptance: 0.6, tree_width: 2}"), 1);
  CHECK(tree.speculation->tokens_per_step <= tree.speculation->tokens_bound);
  CHECK(tree.speculation->draft_time == chain.speculation->draft_time);  // heads draft all candidates at once
  const auto eagle = [](int width) {
    return *run(llama_70b("{method: eagle, acceptance: 0.7, tree_width: " + std::to_string(width) + "}"), 16)
                .speculation;
  };
  CHECK(eagle(8).draft_time > eagle(4).draft_time);
  CHECK(eagle(4).draft_time > eagle(1).draft_time);
  for (const int width : {1, 2, 4, 8, 64}) CHECK(eagle(width).tokens_per_step <= eagle(width).tokens_bound);
  // EAGLE-2 (arXiv:2406.16858, table 1): 4 to 5.5 tokens of some 60 nodes, six deep, up to ten a node.
  const Estimate wide =
      run(llama_70b("{method: eagle, acceptance: 0.8, num_speculative_tokens: 6, tree_width: 10}"), 1);
  CHECK(wide.speculation->tokens_per_step > 4);
  CHECK(wide.speculation->tokens_per_step < 5.5);
  CHECK(tree.speculation->tokens_per_step > chain.speculation->tokens_per_step);
  CHECK(tree.decode.flops > chain.decode.flops);
}

TEST_CASE(
    "what drafts, as a model: one layer and 2 h^2 for EAGLE, h^2 and a head for Medusa, a quarter of the layers") {
  const ModelSpec target = llama_70b("").deployment->model;
  const double h = 8192;
  const ModelSpec eagle = draft_model(target, SpeculationSpec::Method::kEagle, 0);
  CHECK(eagle.layer_count() == 1);
  // 2 x 8192^2 + attention 2 (8192^2 + 8192 x 1024) + feed-forward 3 x 8192 x 28672, two norms
  const double layer = 2 * h * h + 2 * (h * h + h * 1024) + 3 * h * 28672 + 2 * h;
  const double words = 2.0 * 32000 * h + h;  // embedding, head, last norm
  CHECK(count_parameters(eagle).total == doctest::Approx(layer + words));
  CHECK(count_parameters(draft_model(target, SpeculationSpec::Method::kMedusa, 0)).total ==
        doctest::Approx(h * h + words).epsilon(1e-4));
  CHECK(draft_model(target, SpeculationSpec::Method::kSelfDraft, 0.25).layer_count() == 20);
}

TEST_CASE("drafters take memory from the cache: EAGLE its layer, Medusa its heads, a draft model everything") {
  const auto weights = [](const std::string& speculation) {
    return llama_70b(speculation).deployment->memory.weights.base();
  };
  const double plain = weights("");
  CHECK(weights("{method: ngram}") == plain);
  CHECK(weights("{method: self_draft}") == plain);
  CHECK(weights("{method: eagle}") - plain ==
        doctest::Approx(2 * (0.134e9 + (0.151e9 + 0.705e9) / 4)).epsilon(0.01));  // its projection is not split
  CHECK(weights("{method: medusa}") - plain == doctest::Approx(4 * 2 * (0.067e9 + 0.262e9) / 4).epsilon(0.01));
  CHECK(weights("{method: draft_model, model: llama-2-7b}") - plain == doctest::Approx(13.48e9 / 4).epsilon(0.01));
  const auto bytes_a_token = [](const std::string& s) {
    return llama_70b(s).deployment->memory.layout.bytes_per_token().base();
  };
  CHECK(bytes_a_token("{method: eagle}") / bytes_a_token("") == doctest::Approx(81.0 / 80));
}

TEST_CASE("the cheapest drafter is none: n-grams cost the verifying alone") {
  const Estimate e = run(llama_70b("{method: ngram, acceptance: 0.4}"), 1);
  CHECK(e.speculation->draft_time == Seconds(0));
  CHECK(e.speculation->speedup == doctest::Approx(expected_tokens(0.4, 4)).epsilon(0.01));
}

TEST_CASE("diffusion: a pass over a block settles a share of it") {
  const Scenario s = llama_70b("{method: diffusion, block_tokens: 32, steps: 8}");
  const Estimate e = run(s, 1);
  CHECK(e.speculation->tokens_per_step == 4);  // 32 tokens in 8 passes
  CHECK(e.speculation->draft_time == Seconds(0));
  // At one sequence the weights bound a pass of 32 tokens nearly as they bound one of 1: four times as fast at most.
  CHECK(e.speculation->speedup < 4);
  CHECK(e.speculation->speedup > 3.7);
  CHECK(e.tpot / e.decode.time == doctest::Approx(0.25));
  CHECK(run(llama_70b("{method: diffusion, block_tokens: 32, steps: 20}"), 1).speculation->tokens_per_step ==
        doctest::Approx(1.6));
  // The first tokens stand when the eight passes over the first block have run.
  CHECK(e.ttft.base() == doctest::Approx(e.prefill.time.base() + 8 * e.decode.time.base()));
  CHECK(e.request_latency.base() == doctest::Approx(e.prefill.time.base() + 25 * e.decode.time.base()));  // 100 tokens
  // One token a pass is never faster than without blocks.
  CHECK(run(llama_70b("{method: diffusion, block_tokens: 32, steps: 32}"), 8).speculation->speedup <= 1);
  // Arithmetic bounds a large batch of blocks: 256 x 32 tokens a pass.
  CHECK(run(s, 256).speculation->speedup < 1);
  CHECK(message_of("{method: diffusion, block_tokens: 16, steps: 17}").find("more passes than tokens") !=
        std::string::npos);
  CHECK(message_of("{method: diffusion, acceptance: 0.5}").find("unknown key 'acceptance'") != std::string::npos);
}

TEST_CASE("diffusion: under load every pass of a sequence gives its share") {
  const Scenario s = llama_70b("{method: diffusion, block_tokens: 16, steps: 4}");
  WorkloadSpec workload;
  workload.requests = 3;
  workload.prompt_tokens.law = LengthSpec::Fixed{100};
  workload.output_tokens.law = LengthSpec::Fixed{41};  // the first from the prompt, then ten passes of four
  const ServingMetrics m = simulate(s.deployment, workload, s.serving);
  CHECK(m.completed == 3);
  CHECK(m.output_tokens == 3 * 41);
  StepModel model(s.deployment);
  const double pass =
      model.time({.decodes = 3, .decode_context = 3 * 120, .query_len = 16, .prefills = {}}).in(kMillisecond);
  // 41 tokens take 11 passes, of which the first four give the first block; then 7 over 40 gaps.
  CHECK(m.tpot_ms.mean() == doctest::Approx(7 * pass / 40).epsilon(0.02));
}

TEST_CASE("diffusion without a cache: every pass computes prompt and answer") {
  const Scenario s = scenario(
      "model: llama-2-7b\ngpu: h100-sxm\nengine: {name: vllm, kv_cache: false}\nspeculation: {method: diffusion, "
      "block_tokens: 20, steps: 5}");
  const Estimate e = run(s, 2);
  StepModel model(s.deployment);
  const std::vector<PrefillChunk> chunks(2, PrefillChunk{1100, 0, true});
  const double pass = model.time({.decodes = 0, .decode_context = 0, .prefills = chunks}).base();
  CHECK(e.decode.time.base() == doctest::Approx(pass));
  CHECK(e.ttft.base() == doctest::Approx(5 * pass));
  CHECK(e.tpot.base() == doctest::Approx(pass / 4));
  CHECK(e.request_latency.base() == doctest::Approx(25 * pass));
}

TEST_CASE("multi-token prediction drafts as many tokens as the checkpoint has layers, or the engine takes") {
  const auto drafts = [](const std::string& engine, const std::string& model, const std::string& more = "") {
    return scenario("model: " + model + "\ngpu: h200-sxm\nparallelism: {tp: 8}\nengine: " + engine +
                    "\nspeculation: {method: mtp" + more + "}")
        .serving.speculation.num_speculative_tokens;
  };
  CHECK(drafts("vllm", "deepseek-v3") == 1);
  CHECK(drafts("trtllm", "deepseek-v3") == 1);
  CHECK(drafts("sglang", "deepseek-v3") == 3);
  CHECK(drafts("{name: vllm, mtp_drafts: 2}", "deepseek-v3") == 2);
  CHECK(drafts("vllm", "{name: deepseek-v3, num_nextn_predict_layers: 3}") == 3);
  CHECK(drafts("sglang", "deepseek-v3", ", num_speculative_tokens: 5") == 5);
}

TEST_CASE("what does not go together is refused where it stands") {
  CHECK(message_of("{method: mtp}").find("multi-token-prediction") != std::string::npos);
  CHECK(message_of("{method: draft_model}").find("'model'") != std::string::npos);
  CHECK(message_of("{method: eagle, model: llama-2-7b}").find("draft_model") != std::string::npos);
  CHECK(message_of("{method: eagle, num_speculative_tokens: -1}").find("test.yaml:4:") == 0);
  CHECK(message_of("{method: eagle, num_speculative_tokens: 0}").find("must be between 1 and 64") != std::string::npos);
  CHECK(message_of("{method: eagle, acceptance: 1.2}").find("test.yaml:4:") == 0);
  CHECK(message_of("{method: eagle, acceptance: []}") != "");
  try {
    scenario("model: {name: llama-2-7b, vocab_size: 8}\ngpu: h100-sxm\nspeculation: {method: medusa, tree_width: 9}");
    FAIL("a tree of nine words out of eight");
  } catch (const ConfigError& error) {
    CHECK(std::string(error.what()).find("wider than the 8 words") != std::string::npos);
  }
  CHECK(message_of("{method: prophecy}").find("draft_model") != std::string::npos);
}

TEST_CASE("a draft model runs on every attention-DP rank, whole and for its own sequences") {
  const std::string models =
      "model: qwen3-235b-a22b\ngpu: h200-sxm\nspeculation: {method: draft_model, model: qwen3-0.6b}\n";
  const Scenario ranks = scenario(models + "parallelism: {attention_dp: 8, ep: 8}"),
                 whole = scenario(models + "parallelism: {tp: 8}");
  REQUIRE(ranks.serving.speculation.draft);
  // A rank's copy of the small model weighs eight times a share of it.
  CHECK(draft_weight_bytes(ranks.serving.speculation) / draft_weight_bytes(whole.serving.speculation) ==
        doctest::Approx(8).epsilon(0.01));
  const Estimate e = run(ranks, 64), eight = run(scenario("model: qwen3-0.6b\ngpu: h200-sxm"), 8);
  // 64 sequences are eight on each rank: its drafts take four steps of the small model with eight.
  CHECK(e.speculation->draft_time / eight.decode.time == doctest::Approx(4).epsilon(0.05));
}

TEST_CASE("drafts that the host launches one by one are faster on a faster host, as far as the GPU allows") {
  const auto drafting = [](const char* graphs) {
    const Scenario s = scenario(fmt::format("model: llama-3.1-8b\ngpu: h100-sxm\nengine: {{name: vllm, version: 0.12, "
                                            "cuda_graphs: {{enabled: {}}}}}\n"
                                            "speculation: {{method: eagle3, acceptance: 0.7}}",
                                            graphs),
                                Fidelity::kCalibrated);
    return run(s, 1).decode.drafting;
  };
  const HostBound eager = drafting("false"), replayed = drafting("true");
  CHECK(eager.meanwhile > eager.gpu);
  CHECK(eager.at(1) == eager.time);
  CHECK(eager.at(0.01) < eager.time);
  CHECK(eager.at(0.01) >= eager.gpu);
  CHECK(replayed.meanwhile == Seconds(0));
  CHECK(replayed.at(0.01).base() == doctest::Approx(replayed.time.base()));
}
