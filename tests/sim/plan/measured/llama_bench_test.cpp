#include "sim/plan/measured/llama_bench.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "sim/plan/measured/local_runs.h"
#include "sim/plan/measured/run_scenario.h"
#include "tests/base/temporary_folder.h"

using namespace roofcast;

namespace {

std::string test(const std::string& fields) {
  return R"({"build_commit": "8cf427ff", "model_filename": "models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf",
    "model_type": "llama 8B Q4_K - Medium", )" +
         fields + "}";
}

Scenario scenario(const std::string& engine) {
  return read_scenario(
      parse_config_text("{model: llama-3.1-8b, gpu: rtx-4090, precision: gguf_q4_k_m, engine: " + engine + "}",
                        "test.yaml"),
      Fidelity::kCalibrated);
}

std::string error_of(const std::string& text) {
  const TemporaryFolder folder;
  try {
    (void)read_llama_bench(folder.write("bench", text));
  } catch (const ConfigError& e) {
    return e.message();
  }
  return "no error";
}

}  // namespace

TEST_CASE("llama-bench: tests of its JSON and its CSV") {
  const TemporaryFolder folder;
  const auto json = read_llama_bench(
      folder.write("b.json", "[" + test(R"("n_prompt": 512, "n_gen": 0, "n_depth": 0, "avg_ts": 9000.5)") + "," +
                                 test(R"("n_prompt": 0, "n_gen": 128, "n_depth": 4096, "avg_ts": 120.0)") + "," +
                                 test(R"("n_prompt": 64, "n_gen": 8, "avg_ts": 500)") + "]"));
  REQUIRE(json);
  REQUIRE(json->tests.size() == 3);
  CHECK(json->tests[0].name() == "pp512");
  CHECK(json->tests[0].tokens_per_s == 9000.5);
  CHECK(json->tests[1].name() == "tg128_at_d4096");
  CHECK(json->tests[2].name() == "pp64+tg8");
  const auto csv = read_llama_bench(folder.write("b.csv",
                                                 "build_commit,model_filename,n_prompt,n_gen,avg_ts\n"
                                                 "\"8cf\",\"m.gguf\",\"512\",\"0\",\"7285.5\"\n"));
  REQUIRE(csv);
  CHECK(csv->model == "m.gguf");
  CHECK(csv->tests[0].tokens_per_s == 7285.5);
  CHECK_FALSE(read_llama_bench(folder.write("other.json", R"({"completed": 4})")));
  CHECK(error_of("[" + test(R"("n_prompt": 512, "n_gen": 0, "avg_ts": 0)") + "]") == "'avg_ts' must be more than 0");
  CHECK(error_of("[" + test(R"("n_prompt": 0, "n_gen": 0, "avg_ts": 1)") + "]") ==
        "a test needs 'n_prompt' or 'n_gen'");
  CHECK(error_of("[" + test(R"("n_prompt": -1, "n_gen": 0, "avg_ts": 1)") + "]").find("'n_prompt' must be") == 0);
  CHECK(error_of("[" + test(R"("n_prompt": 1, "n_gen": 0, "avg_ts")")).find("the JSON ends too early") == 0);
}

TEST_CASE("llama-bench: predictions are those of validate local, and less fast behind a long context") {
  const Scenario s = scenario("llama-cpp");
  const Comparison c = compare_with_llama_bench(
      s, {.path = "b.json",
          .model = "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf",
          .tests = {{512, 0, 0, 1000.0}, {0, 128, 0, 100.0}, {0, 128, 8192, 100.0}, {512, 128, 0, 100.0}}});
  REQUIRE(c.metrics.size() == 4);
  const double pp = predicted_speed({s.deployment, true, 512, 0}), tg = predicted_speed({s.deployment, false, 128, 0});
  CHECK(c.metrics[0].predicted == doctest::Approx(pp));
  CHECK(c.metrics[1].predicted == doctest::Approx(tg));
  CHECK(c.metrics[2].predicted < c.metrics[1].predicted);
  // both: 640 tokens in the time of the prompt and of the answer behind it
  CHECK(c.metrics[3].predicted < 640 / (512 / pp + 128 / tg));
  CHECK(c.metrics[3].predicted > 0.9 * 640 / (512 / pp + 128 / tg));
  CHECK_FALSE(c.shares);
  CHECK_THROWS_WITH_AS((void)compare_with_llama_bench(scenario("vllm"), {.path = "b.json", .model = "", .tests = {}}),
                       "b.json: a run of llama.cpp, and the scenario's engine is vllm; --engine llama-cpp compares it "
                       "with that",
                       ConfigError);
}

TEST_CASE("the scenario of a run: its model, its load, and what the file does not say") {
  BenchRun run;
  run.tool = "vllm bench serve";
  run.model = "meta-llama/Llama-3.1-8B-Instruct";
  run.completed = 10, run.input_tokens = 1000, run.output_tokens = 200, run.duration_s = 5;
  run.request_rate = 2.5;
  run.prompt_lengths = {50, 150, 100, 100};
  run.output_lengths = {20, 20};
  const RunScenario made = scenario_of_run(run);
  // mean 100, variance (50^2 + 50^2) / 4 = 1250: cv 0.3536
  CHECK(to_yaml(*made.tree) ==
        "model: llama-3.1-8b\nengine: vllm\nworkload:\n  arrivals:\n    process: poisson\n    rate: 2.5 /s\n"
        "  prompt_tokens:\n    distribution: lognormal\n    mean: 100\n    cv: 0.3536\n    min: 50\n    max: 150\n"
        "  output_tokens:\n    distribution: fixed\n    value: 20\n  requests: 10\n");
  CHECK(made.assumed.empty());
  const RunScenario local = scenario_of_run(LlamaBench{"b", "models/Qwen3-8B-Q4_K_M.gguf", {}});
  CHECK(to_yaml(*local.tree) == "model: qwen3-8b\nprecision: gguf_q4_k_m\nengine: llama-cpp\n");
}
