#include "sim/plan/measured/measured_runs.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "hw/kernels/gemm/gemm_kernel.h"
#include "sim/plan/measured/serving_accuracy.h"
#include "sim/plan/parallel.h"
#include "sim/step/deployment.h"
#include "sim/step/step_model.h"
#include "tests/measured_data.h"
#include "tests/sim/plan/measured/rows.h"

using namespace roofcast;
using rows::apart;
using rows::Cells;
using rows::figure;

namespace {

Cells loop(const Cells& changes) { return rows::closed_loop(changes); }

EngineSpec engine(const Cells& run) {
  const MeasuredRun read = rows::read(run);
  REQUIRE(read.note == "");
  return read.deployment->engine;
}
Precision precision(const Cells& run) {
  const MeasuredRun read = rows::read(run);
  REQUIRE(read.note == "");
  return read.deployment->precision;
}

/// What `simulate` says of the run's scenario, written to a file and read again.
RunPrediction simulated(const MeasuredRun& run) {
  const Scenario s = read_scenario(parse_config_text(to_yaml(*run.scenario), run.id + ".yaml"), Fidelity::kCalibrated);
  const ServingMetrics m = simulate(s.deployment, *s.workload, s.serving);
  RunPrediction p;
  if (m.completed == 0) return p;
  p.ttft_ms = m.ttft_ms.mean();
  p.tpot_ms = m.tpot_ms.mean();
  const double seconds = m.duration.base();
  p.value = run.metric == "ttft_ms"                ? p.ttft_ms
            : run.metric == "tpot_ms"              ? p.tpot_ms
            : run.metric == "itl_ms"               ? m.itl_ms.mean()
            : run.metric == "e2e_ms"               ? seconds * 1e3
            : run.metric == "total_tokens_per_s"   ? (m.input_tokens + m.output_tokens) / seconds
            : run.metric == "output_tokens_per_s"  ? m.output_tokens / seconds
            : run.metric == "tokens_per_s_per_gpu" ? m.output_tokens / seconds / s.deployment->sharding.gpus()
                                                   : 0;
  return p;
}

/// Of every run that can be predicted: both ways, to the last bit. Returns how many there were.
int compare_with_simulate(const MeasuredRuns& runs) {
  const std::vector<RowPrediction> rows = predict_all(runs);
  std::vector<RunPrediction> again(rows.size());
  parallel_for_each_index(rows.size(), [&](std::size_t i) {
    if (runs.runs[i].note.empty()) again[i] = simulated(runs.runs[i]);
  });
  int predicted = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].prediction) continue;
    INFO(runs.runs[i].id << ": " << runs.runs[i].deployment_key << "\n" << to_yaml(*runs.runs[i].scenario));
    CHECK(rows[i].prediction->ttft_ms == again[i].ttft_ms);
    CHECK(rows[i].prediction->tpot_ms == again[i].tpot_ms);
    CHECK(rows[i].prediction->value == again[i].value);
    ++predicted;
  }
  return predicted;
}

/// Every `nth` row of a table.
CsvTable thinned(const std::string& path, std::size_t nth) {
  std::ifstream in(path);
  std::string text;
  std::size_t at = 0;
  for (std::string line; std::getline(in, line); ++at) {
    if (at == 0 || at % nth == 1) text += line + "\n";
  }
  return CsvTable::parse(text, path);
}

}  // namespace

TEST_CASE("measured runs: `simulate` gives a run's scenario the numbers that the run is predicted") {
  const Cells deepseek = {{"model", "deepseek-v3"}, {"gpu", "b200-sxm"}, {"weight_dtype", "fp8_block"}, {"isl", "512"}};
  const std::vector<Cells> loops{
      loop({}),
      loop({{"concurrency", "37"}, {"protocol", "inferencex"}, {"measured", "2026-04-18"}}),
      loop({{"concurrency", "37"}, {"protocol", "nvidia"}, {"engine", "trtllm"}, {"engine_version", "1.0.0rc3"}}),
      loop(
          {{"engine", "sglang"}, {"engine_version", "0.5.9"}, {"tp", "2"}, {"mixed_chunk", "1"}, {"recipe", "dynamo"}}),
      loop({{"engine", "sglang"}, {"engine_version", "0.5.9"}, {"async_scheduling", "0"}, {"recv_interval", "10"}}),
      loop({{"engine", "vllm"}, {"engine_version", "0.6.3"}, {"memory_fraction", "0.3"}, {"concurrency", "64"}}),
      loop(rows::with(deepseek, {{"engine", "sglang"},
                                 {"engine_version", "0.5.10"},
                                 {"tp", "8"},
                                 {"protocol", "inferencex"},
                                 {"measured", "2026-04-01"}})),
      loop(rows::with(deepseek, {{"engine", "trtllm"},
                                 {"engine_version", "1.2.0"},
                                 {"tp", "1"},
                                 {"attention_dp", "8"},
                                 {"moe_ep", "8"},
                                 {"concurrency", "32"},
                                 {"protocol", "inferencex"}})),
      loop(rows::with(deepseek, {{"engine", "trtllm"},
                                 {"engine_version", "1.2.0"},
                                 {"tp", "8"},
                                 {"speculation", "mtp"},
                                 {"num_speculative_tokens", "3"}})),
      loop({{"model", "qwen3-next-80b-a3b"}, {"tp", "4"}, {"engine", "sglang"}, {"engine_version", "0.5.5"}}),
      loop({{"model", "gpt-oss-120b"}, {"weight_dtype", ""}, {"gpu", "h200-sxm"}, {"distinct_prompts", "3"}}),
  };
  CHECK(compare_with_simulate(read_measured_runs(rows::table(loops))) == static_cast<int>(loops.size()));

  const std::vector<Cells> workers{
      apart({{"engine", "trtllm"}, {"engine_version", "1.2.0"}}),
      apart({{"engine", "trtllm"},
             {"protocol", "inferencex"},
             {"measured", "2026-02-07"},
             {"decode_num_workers", "3"},
             {"concurrency", "40"}}),
      apart({{"engine", "sglang"}, {"engine_version", "0.5.9"}, {"protocol", "nvidia"}, {"prefill_tp_size", "2"}}),
  };
  CHECK(compare_with_simulate(read_measured_runs(rows::table(workers))) == static_cast<int>(workers.size()));

  const std::vector<Cells> batches{
      figure({{"batch", "1"},
              {"metric", "tpot_ms"},
              {"source", "splitwise_profiles"},
              {"engine", "vllm"},
              {"version", "2023"}}),
      figure({{"batch", "16"}, {"metric", "e2e_ms"}, {"source", "argonne_llm_inference_bench"}}),
      figure({{"batch", "16"}, {"metric", "ttft_ms"}, {"engine", "lmdeploy"}, {"version", ""}, {"source", "lmdeploy"}}),
      figure({{"batch", "96"},
              {"metric", "e2e_ms"},
              {"source", "argonne_llm_inference_bench"},
              {"isl", "1024"},
              {"gpu", "a100-sxm"},
              {"engine", "vllm"},
              {"model", "llama-2-7b"}}),
  };
  CHECK(compare_with_simulate(read_measured_runs(rows::table(batches))) == static_cast<int>(batches.size()));

  const std::vector<Cells> offline{
      figure({{"source", "trtllm_perf_overview"}, {"isl", "5000"}, {"osl", "500"}}),
      figure({{"source", "trtllm_perf_overview"}, {"version", "v0.10.0"}, {"metric", "total_tokens_per_s"}}),
      figure({{"recipe", "mlperf"}, {"version", "1.0.0"}, {"tp", "2"}, {"metric", "tokens_per_s_per_gpu"}}),
  };
  CHECK(compare_with_simulate(read_measured_runs(rows::table(offline))) == static_cast<int>(offline.size()));

  const std::vector<Cells> online{
      figure({{"source", "trtllm_online_serving"}, {"request_rate", "4"}, {"metric", "itl_ms"}}),
      figure({{"source", "trtllm_online_serving"},
              {"request_rate", "inf"},
              {"metric", "ttft_ms"},
              {"isl", "202"},
              {"osl", "214"}}),
      figure({{"request_rate", "4"}, {"metric", "ttft_ms"}}),
  };
  CHECK(compare_with_simulate(read_measured_runs(rows::table(online))) == static_cast<int>(online.size()));
}

TEST_CASE("measured runs: `simulate` gives the same numbers of a sample of the tables") {
  for (const char* name : {"agg.csv", "agg-dynamo.csv", "disagg.csv", "static.csv", "offline.csv", "online.csv"}) {
    INFO(name);
    CHECK(compare_with_simulate(read_measured_runs(thinned(testing::kSampleData + "/e2e/" + name, 3))) > 0);
  }
}

TEST_CASE("measured runs: `simulate` gives the same numbers of the whole tables") {
  if (!testing::there_or_skip(testing::kWholeData + "/e2e")) return;
  for (const char* name : {"agg.csv", "agg-dynamo.csv", "disagg.csv", "static.csv", "offline.csv", "online.csv"}) {
    INFO(name);
    CHECK(compare_with_simulate(read_measured_runs(thinned(testing::kWholeData + "/e2e/" + name, 20))) > 5);
  }
}

TEST_CASE("measured runs: what the recipe's rules set is in force, under the row's own settings") {
  const Cells nvidia = loop(
      {{"protocol", "nvidia"}, {"engine", "trtllm"}, {"weight_dtype", "fp8"}, {"isl", "1000"}, {"concurrency", "8"}});
  // 512 sequences, or as many as there are; the budget holds a prompt of 1000, one token of each, and 1500 more.
  const EngineSpec few = engine(rows::with(nvidia, {{"engine_version", "1.2.0"}}));
  CHECK(few.max_num_seqs == 512);
  CHECK(few.max_num_batched_tokens == 512 + 1000 + 1500);
  CHECK_FALSE(few.chunked_prefill);
  CHECK(few.async_scheduling);
  CHECK(few.front_end == "dynamo");
  const EngineSpec many = engine(rows::with(nvidia, {{"engine_version", "1.2.0"}, {"concurrency", "1024"}}));
  CHECK(many.max_num_seqs == 1024);
  CHECK(many.max_num_batched_tokens == 1024 + 1000 + 1500);
  CHECK(engine(rows::with(nvidia, {{"engine_version", "1.2.0"}, {"max_num_seqs", "16"}})).max_num_seqs == 16);
  // Before 1.1 without experts: the prompt and the seven others, less Llama's begin-of-sequence token.
  const EngineSpec early = engine(rows::with(nvidia, {{"engine_version", "1.0.0rc3"}}));
  CHECK(early.max_num_batched_tokens == 1000 + 8 - 2);
  CHECK_FALSE(early.async_scheduling);
  CHECK(engine(rows::with(nvidia, {{"engine_version", "1.0.0rc3"}, {"model", "qwen3-32b"}})).max_num_batched_tokens ==
        1000 + 8 - 1);
  CHECK(engine(rows::with(nvidia, {{"engine_version", "1.0.0rc3"}, {"model", "qwen3-235b-a22b"}, {"tp", "4"}}))
            .max_num_batched_tokens == 512 + 1000 + 1500);
  CHECK(precision(rows::with(nvidia, {{"engine_version", "1.2.0"}})).kv_cache == Dtype::kFp8);
  CHECK(precision(rows::with(nvidia, {{"engine_version", "1.2.0"}, {"kv_dtype", "bf16"}})).kv_cache == Dtype::kBf16);
  // Without a recipe the engine's own defaults hold.
  CHECK(engine(rows::with(nvidia, {{"engine_version", "1.2.0"}, {"protocol", ""}})).max_num_seqs == 2048);
}

TEST_CASE("measured runs: a single request of a generated configuration fits its budget") {
  // A prompt of 1000 tokens was served alone, so 1000 + 1 - 2 tokens are not what a step took.
  const MeasuredRun one = rows::read(loop({{"protocol", "nvidia"},
                                           {"engine", "trtllm"},
                                           {"engine_version", "1.0.0rc3"},
                                           {"weight_dtype", "fp8"},
                                           {"isl", "1000"},
                                           {"concurrency", "1"}}));
  CHECK(one.deployment->engine.max_num_batched_tokens >= 1000);
  CHECK(rows::predict(one).ttft_ms > 0);
}

TEST_CASE("measured runs: InferenceX's launch scripts by engine, model and GPU") {
  const auto products = [](const std::string& model, const std::string& version, const std::string& protocol) {
    return engine(loop({{"model", model},
                        {"gpu", "b200-sxm"},
                        {"engine", "sglang"},
                        {"engine_version", version},
                        {"protocol", protocol},
                        {"weight_dtype", "fp8"},
                        {"tp", "8"}}))
        .block_products;
  };
  CHECK(products("qwen3.5-397b-a17b", "0.5.9", "inferencex") == &trtllm_gen_gemm());
  CHECK(products("glm-5", "0.5.9", "inferencex") == nullptr);  // its indexer's scores are DeepGEMM's
  CHECK(products("qwen3.5-397b-a17b", "0.5.10", "inferencex") == nullptr);
  CHECK(products("deepseek-v3", "0.5.10", "inferencex") == &trtllm_gen_gemm());
  CHECK(products("qwen3.5-397b-a17b", "0.5.9", "nvidia") == nullptr);

  const auto trtllm = [](const Cells& changes) {
    return loop(
        rows::with({{"engine", "trtllm"}, {"gpu", "h200-sxm"}, {"protocol", "inferencex"}, {"tp", "8"}}, changes));
  };
  // Kernels launched ahead: by default from 1.2 on; of gpt-oss before, too.
  const auto ahead = [&](const std::string& model, const std::string& version) {
    return engine(trtllm({{"model", model}, {"engine_version", version}, {"weight_dtype", ""}}))
        .graphs.dependent_launch;
  };
  CHECK(ahead("llama-3.1-70b", "1.2.0rc6.post2"));
  CHECK(ahead("gpt-oss-120b", "1.1.0rc2.post2"));
  CHECK_FALSE(ahead("llama-3.1-70b", "1.1.0rc2.post2"));
  const auto apart_ahead = [](const std::string& copies, const std::string& tp) {
    return engine(apart({{"model", "deepseek-v3"},
                         {"gpu", "gb200"},
                         {"engine", "trtllm"},
                         {"protocol", "inferencex"},
                         {"measured", "2025-10-19"},
                         {"weight_dtype", "nvfp4"},
                         {"decode_attention_dp_size", copies},
                         {"decode_tp_size", tp},
                         {"decode_moe_ep_size", "8"},
                         {"prefill_tp_size", "4"}}));
  };
  CHECK(apart_ahead("1", "8").version == "1.1.0");
  CHECK(apart_ahead("1", "8").graphs.dependent_launch);
  CHECK(apart_ahead("1", "8").moe_kernel == RequestedExperts::kLowLatency);
  CHECK_FALSE(apart_ahead("8", "1").graphs.dependent_launch);
  const EngineSpec balanced = engine(trtllm({{"model", "deepseek-v3"},
                                             {"gpu", "b200-sxm"},
                                             {"engine_version", "1.2.0"},
                                             {"weight_dtype", ""},
                                             {"tp", "1"},
                                             {"attention_dp", "8"},
                                             {"moe_ep", "8"}}));
  CHECK(balanced.attention_dp_balance);
  CHECK(balanced.prefill_wait_steps == 60);
  CHECK_FALSE(balanced.chunked_prefill);
}

TEST_CASE("measured runs: DeepSeek's prompts of InferenceX's client under transformers 5 were five times as long") {
  const auto run = [](const std::string& model, const std::string& day, const std::string& protocol) {
    return rows::read(loop({{"model", model},
                            {"gpu", "b300-sxm"},
                            {"engine", "sglang"},
                            {"engine_version", "0.5.10.post1"},
                            {"measured", day},
                            {"protocol", protocol},
                            {"weight_dtype", "nvfp4"},
                            {"isl", "7140"},
                            {"tp", "8"}}))
        .workload;
  };
  const WorkloadSpec grown = run("deepseek-v3", "2026-04-17", "inferencex");
  CHECK(grown.prompt_tokens.longest() == 35921);
  // Five times the tokens in text that takes 1.6 times as long to cut.
  CHECK(grown.prompt_text == doctest::Approx(1.6 * 7140 / 35921));
  CHECK(run("deepseek-v3", "2026-05-20", "inferencex").prompt_tokens.longest() == 7140);  // mended
  CHECK(run("deepseek-v3", "2026-04-17", "nvidia").prompt_tokens.longest() == 7140);
  CHECK(run("glm-5", "2026-04-17", "inferencex").prompt_tokens.longest() == 7140);  // its own tokenizer
  CHECK(run("glm-5", "2026-04-17", "inferencex").prompt_text == 1.0);
}

TEST_CASE("measured runs: formats that a checkpoint leaves as they were") {
  const auto of = [](const char* model, const char* gpu, const char* weights) {
    return precision(loop({{"model", model},
                           {"gpu", gpu},
                           {"engine", "trtllm"},
                           {"engine_version", "1.1.0"},
                           {"protocol", "inferencex"},
                           {"weight_dtype", weights},
                           {"tp", "4"}}));
  };
  const Precision experts = of("minimax-m2.5", "b200-sxm", "nvfp4");
  CHECK(experts.attention_weights == Dtype::kBf16);
  CHECK(experts.expert_weights == Dtype::kNvfp4);
  CHECK(experts.weights == Dtype::kNvfp4);
  CHECK(experts.kv_cache == Dtype::kFp8);
  CHECK(of("llama-3.1-70b", "b200-sxm", "nvfp4").attention_weights == Dtype::kNvfp4);
  CHECK(of("mixtral-8x7b", "h100-sxm", "fp8").attention_weights == Dtype::kFp8);
  CHECK(of("mixtral-8x7b", "h100-sxm", "fp8").static_activations);
}

TEST_CASE("measured runs: a prefill worker takes the launch defaults of its own GPUs") {
  // SGLang takes a token budget by GPU, and shares it among ranks of attention-DP: four, against one of a prefill
  // worker.
  const MeasuredRun run = rows::read(apart({{"model", "qwen3-30b-a3b"},
                                            {"gpu", "h200-sxm"},
                                            {"engine", "sglang"},
                                            {"engine_version", "0.5.10"},
                                            {"decode_attention_dp_size", "4"}}));
  REQUIRE(run.note == "");
  REQUIRE(run.deployment->sharding.attention_dp == 4);
  const int decode = run.deployment->engine.max_num_batched_tokens;
  CHECK(run.serving.disaggregation->prefill->engine.max_num_batched_tokens == 4 * decode);
}

TEST_CASE("measured runs: workers apart hand over at the engine's latency") {
  const MeasuredRun run = rows::read(apart({{"engine", "trtllm"}, {"engine_version", "1.2.0"}}));
  CHECK(run.serving.disaggregation->latency == run.deployment->engine.handover_time);
  CHECK(run.serving.disaggregation->prefill->engine.max_num_seqs == 8192 / 256);
}

TEST_CASE("measured runs: Argonne's engines of 2024, and their kernels") {
  const auto of = [](const Cells& changes) {
    return engine(figure(rows::with({{"source", "argonne_llm_inference_bench"},
                                     {"version", "repo"},
                                     {"batch", "16"},
                                     {"metric", "e2e_ms"},
                                     {"engine", "vllm"},
                                     {"weight_dtype", "fp16"},
                                     {"kv_dtype", "fp16"}},
                                    changes)));
  };
  CHECK(of({}).shared_query_heads == 0);
  CHECK(of({{"kv_dtype", "fp8"}}).shared_query_heads == 1);
  CHECK(of({{"model", "mistral-7b"}}).shared_query_heads == 1);
  CHECK(of({{"model", "mistral-7b"}, {"gpu", "a100-sxm"}}).shared_query_heads == 0);
  CHECK_FALSE(of({{"model", "llama-2-7b"}, {"gpu", "mi300x"}}).graphs.enabled);
  CHECK(of({{"model", "mixtral-8x7b"}, {"gpu", "mi300x"}}).graphs.enabled);
  CHECK(of({}).front_end == "none");
  CHECK(of({}).host.request_latency == Seconds(0));
  const EngineSpec trtllm = of({{"engine", "trtllm"}});
  CHECK(trtllm.max_num_seqs == 16);  // built for its batch
  CHECK_FALSE(trtllm.own_all_reduce);
  CHECK(rows::read(figure({{"source", "argonne_llm_inference_bench"},
                           {"version", "repo"},
                           {"batch", "16"},
                           {"engine", "vllm"},
                           {"gpu", "mi300x"}}))
            .deployment->gpu.name == "mi300x-2024");
}

TEST_CASE("measured runs: offline benchmarks queue what their version's page says, without a front end") {
  const auto of = [](const std::string& version, const std::string& isl) {
    return rows::read(figure({{"source", "trtllm_perf_overview"},
                              {"version", version},
                              {"isl", isl},
                              {"osl", isl},
                              {"weight_dtype", "fp8"},
                              {"kv_dtype", "fp8"}}));
  };
  CHECK(of("v0.10.0", "128").workload.requests == 2000);
  CHECK(of("v0.10.0", "128").deployment->engine.max_num_batched_tokens == 2048);
  CHECK(of("v0.17", "128").workload.requests == 30000);
  CHECK(of("v0.17", "2048").workload.requests == 1500);
  const EngineSpec compiled = of("v0.17", "128").deployment->engine, later = of("v0.21", "128").deployment->engine;
  CHECK(compiled.compiled);
  CHECK_FALSE(later.compiled);
  CHECK(later.host.token_time == Seconds(0));
  CHECK(later.gpu_memory_utilization == 0.95);
  // Groups of four query heads: decoded head by head in 0.10, together from 0.11 on.
  CHECK(of("v0.10.0", "128").deployment->engine.shared_query_heads == 8);
  CHECK(of("v0.11.0", "128").deployment->engine.shared_query_heads == 0);
  CHECK_FALSE(of("v0.11.0", "128").deployment->engine.own_all_reduce);
  CHECK(of("v0.12.0", "128").deployment->engine.own_all_reduce);
}

TEST_CASE("measured runs: a misspelt protocol, or its column, is answered with the nearest") {
  CHECK(rows::read(loop({{"protocol", "inferncex"}}))
            .note.find("unknown protocol 'inferncex'; nearest is 'inferencex'") != std::string::npos);
  CHECK(rows::read(loop({{"protocol", "somebody"}})).note == "");
  CHECK_THROWS_WITH((void)rows::read(loop({{"protcol", "inferencex"}})),
                    "runs.csv:1:1: unknown column 'protcol'; nearest is 'protocol'");
}

TEST_CASE("measured runs: an online run with the means of a ShareGPT sample has its spread") {
  const auto of = [](const char* isl, const char* osl) {
    return rows::read(figure({{"source", "trtllm_online_serving"},
                              {"version", "v0.14.0"},
                              {"request_rate", "inf"},
                              {"isl", isl},
                              {"osl", osl},
                              {"metric", "itl_ms"}}))
        .workload;
  };
  const WorkloadSpec spread = of("202", "214");
  CHECK(spread.output_tokens.longest() == 1024);
  CHECK(spread.output_tokens.mean() == doctest::Approx(214).epsilon(0.01));
  CHECK(spread.prompt_tokens.mean() == doctest::Approx(202).epsilon(0.01));
  CHECK(of("467", "256").output_tokens.longest() == 256);
}

TEST_CASE("measured runs: static batches queue where they do not fit") {
  const auto e2e = [](const std::string& batch) {
    return rows::predict(rows::read(figure({{"source", "argonne_llm_inference_bench"},
                                            {"version", "repo"},
                                            {"model", "llama-2-7b"},
                                            {"gpu", "a100-sxm"},
                                            {"engine", "vllm"},
                                            {"isl", "1024"},
                                            {"batch", batch},
                                            {"metric", "e2e_ms"}})))
        .value;
  };
  CHECK(e2e("96") > 3 * e2e("16"));
}

TEST_CASE("measured runs: runs share prices only where they have the same kernels") {
  const auto key = [](const std::string& model, const Cells& changes) {
    return rows::read(loop(rows::with({{"model", model},
                                       {"gpu", "b300-sxm"},
                                       {"engine", "sglang"},
                                       {"engine_version", "0.5.9"},
                                       {"weight_dtype", "fp8"},
                                       {"tp", "8"}},
                                      changes)))
        .deployment_key;
  };
  CHECK(key("glm-5", {{"concurrency", "1"}}) == key("glm-5", {{"concurrency", "64"}, {"osl", "7"}}));
  CHECK(key("glm-5", {}) != key("glm-5", {{"attention_backend", "nsa (decode trtllm, prefill trtllm)"}}));
  CHECK(key("glm-5", {}) != key("glm-5", {{"engine_version", "0.5.5"}}));
  CHECK(key("glm-5", {}) != key("glm-5", {{"kv_dtype", "fp8"}}));
  CHECK(key("glm-5", {}) != key("glm-5", {{"moe_ep", "8"}}));
  CHECK(key("qwen3.5-397b-a17b", {{"protocol", "inferencex"}}) != key("qwen3.5-397b-a17b", {{"protocol", "nvidia"}}));
}

TEST_CASE("measured runs: classes say what a run has in common with others") {
  const MeasuredRun run = rows::read(loop({{"protocol", "nvidia"}, {"engine_version", "0.12"}}));
  CHECK(run.id == "row-1");
  CHECK(run.group == "llama-3.1-8b h100-sxm vllm");
  CHECK(run.classes.version == "vllm@0.12.0");
  CHECK(run.classes.harness == "aiconfigurator");
  CHECK(run.classes.host == "aiconfigurator h100-sxm");
  CHECK(run.classes.gpu == "h100-sxm");
  CHECK(run.classes.model == "llama-3.1-8b");
  CHECK(run.dense);
  CHECK_FALSE(rows::read(loop({{"model", "mixtral-8x7b"}, {"tp", "2"}})).dense);
  CHECK(rows::read(loop({{"source", "a paper"}})).classes.harness == "a paper");
  CHECK(rows::read(loop({})).classes.harness == "unknown");
}

TEST_CASE("measured runs: what is not scored") {
  CHECK(rows::read(loop({})).scored);
  CHECK(rows::read(loop({{"speculation", "none"}})).scored);
  const MeasuredRun drafted = rows::read(loop({{"model", "deepseek-v3"},
                                               {"gpu", "b200-sxm"},
                                               {"weight_dtype", ""},
                                               {"tp", "8"},
                                               {"speculation", "mtp"},
                                               {"num_speculative_tokens", "2"}}));
  CHECK_FALSE(drafted.scored);  // whose acceptance nobody knows
  CHECK(drafted.doubt == "");
  CHECK(drafted.serving.speculation.num_speculative_tokens == 2);
  const MeasuredRun suspect = rows::read(loop({{"suspect", "1"}}));
  CHECK_FALSE(suspect.scored);
  CHECK(suspect.doubt == "marked suspect in the table");
  CHECK(suspect.note == "");
}

TEST_CASE("measured runs: a row that lacks its lengths or load, or whose settings are none, says so") {
  const auto note = [](const Cells& changes) { return rows::read(loop(changes)).note; };
  CHECK(note({}) == "");
  CHECK(note({{"isl", ""}}) == "runs.csv:2:1: 'isl' must be a whole number, 1 or more");
  CHECK(note({{"osl", "0"}}) == "runs.csv:2:1: 'osl' must be a whole number, 1 or more");
  CHECK(note({{"concurrency", "0"}}) == "runs.csv:2:1: 'concurrency' must be a whole number, 1 or more");
  CHECK(note({{"max_num_seqs", "1e12"}}).find("'max_num_seqs' must be") != std::string::npos);
  CHECK(note({{"memory_fraction", "2"}}) ==
        "runs.csv:2:1: 'gpu_memory_utilization' must be between 0.01 and 1, got '2'");
  CHECK(note({{"concurrency", "100000000"}}).find("runs.csv:2:1: ") == 0);  // a slip, not a run of hours
}

TEST_CASE("measured runs: an unknown model, GPU, engine or release is a note with the nearest") {
  const auto note = [](const Cells& changes) {
    const MeasuredRun run = rows::read(loop(changes));
    CHECK(run.deployment == nullptr);
    return run.note;
  };
  CHECK(note({{"model", "llama-3.1-8"}})
            .starts_with("runs.csv:2:1: unknown model 'llama-3.1-8'; nearest is 'llama-3.1-8b'"));
  CHECK(note({{"gpu", "h100-smx"}}).starts_with("runs.csv:2:1: unknown gpu 'h100-smx'; nearest is 'h100-"));
  CHECK(note({{"engine", "vlm"}}).starts_with("runs.csv:2:1: unknown engine 'vlm'; nearest is 'vllm'"));
  CHECK(
      note({{"engine_version", "0.0.1"}}).starts_with("runs.csv:2:1: vllm has no release '0.0.1'; nearest is '0.1.0'"));
  CHECK(note({{"weight_dtype", "fp7"}}).find("fp7") != std::string::npos);
  CHECK(note({{"engine", "lmdeploy"}, {"engine_version", ""}, {"protocol", "inferencex"}}) ==
        "runs.csv:2:1: recipe 'inferencex' does not launch lmdeploy (it launches vllm, sglang, trtllm); lmdeploy is "
        "launched by argonne, static-batch");
  const MeasuredRun large = rows::read(loop({{"model", "llama-3.1-70b"}}));  // 141 GB on a GPU of 80
  CHECK(large.note.find("141.1 GB") != std::string::npos);
}

TEST_CASE("measured runs: a scenario stays with a run that does not fit; one that cannot be written has none") {
  const MeasuredRun large = rows::read(loop({{"model", "llama-3.1-70b"}}));
  CHECK(large.note != "");
  REQUIRE(large.scenario != nullptr);
  CHECK(to_yaml(*large.scenario).starts_with("model: llama-3.1-70b\n"));
  CHECK(rows::read(loop({{"model", "llama-3.1-8"}})).scenario == nullptr);
  CHECK(rows::read(loop({{"isl", ""}})).scenario == nullptr);
}

TEST_CASE("measured runs: a slower host takes longer over its part of a step") {
  const auto of = [](double speed) {
    auto d = std::make_shared<Deployment>(*rows::read(figure({{"source", "splitwise_profiles"},
                                                              {"version", "2023"},
                                                              {"model", "llama-2-70b"},
                                                              {"engine", "vllm"},
                                                              {"tp", "8"},
                                                              {"batch", "1"},
                                                              {"metric", "tpot_ms"}}))
                                               .deployment);
    d->gpu.node.host_speed = speed;
    return StepModel(d).decode_run({.decodes = 1, .decode_context = 128}, 1).time.base();
  };
  CHECK(of(0.5) == doctest::Approx(2 * of(1.0)));  // eager: the host sets the pace
}

TEST_CASE("measured runs: a table without what was measured is predicted all the same") {
  const CsvTable table =
      CsvTable::parse("model,gpu,engine,isl,osl,concurrency,tp\nqwen3-8b,h100-sxm,vllm,500,50,4,1\n", "r");
  const MeasuredRuns runs = read_measured_runs(table);
  CHECK(runs.kind == RunKind::kAggregated);
  const std::vector<RowPrediction> rows = predict_all(runs);
  CHECK(rows.at(0).prediction);
  CHECK(accuracy_by_group(runs, table, rows).empty());
}

TEST_CASE("measured runs: a table that lacks a column that no run goes without is refused as a whole") {
  const CsvTable table =
      CsvTable::parse("modle,gpu,engine,isl,osl,concurrency,tp\nqwen3-8b,h100-sxm,vllm,5,5,4,1\n", "r");
  CHECK_THROWS_WITH_AS(read_measured_runs(table), doctest::Contains("missing column 'model'; nearest is 'modle'"),
                       ConfigError);
}

TEST_CASE("measured runs: a row whose requests never run has a note and no prediction") {
  const std::vector<RowPrediction> predicted = predict_all(read_measured_runs(rows::table({
      loop({{"model", "gpt-2"}, {"isl", "1000"}, {"osl", "256"}, {"weight_dtype", ""}}),  // its positions end at 1024
      loop({{"model", "gpt-2"}, {"isl", "500"}, {"osl", "256"}, {"weight_dtype", ""}}),
      loop(
          {{"model", "gpt-j-6b"}, {"isl", "2048"}, {"osl", "256"}, {"weight_dtype", ""}}),  // rotary: who ran it, could
  })));
  CHECK_FALSE(predicted.at(0).prediction);
  CHECK(predicted.at(0).note.starts_with("no request completed"));
  CHECK(predicted.at(1).prediction);
  CHECK(predicted.at(1).note.empty());
  CHECK(predicted.at(2).prediction);
}

namespace {

/// The runs of a table with measurements that are their own predictions, TPOT times `off`.
CsvTable as_predicted(const std::vector<Cells>& runs, double off) {
  std::vector<Cells> measured;
  for (const Cells& run : runs) {
    const RunPrediction p = rows::predict(rows::read(run));
    measured.push_back(rows::with(
        run, {{"ttft_ms", fmt::format("{:.9g}", p.ttft_ms)}, {"tpot_ms", fmt::format("{:.9g}", p.tpot_ms * off)}}));
  }
  return rows::table(measured);
}

const AccuracyLine& line(const std::vector<AccuracyLine>& lines, const std::string& group, const std::string& metric) {
  const auto at = std::find_if(lines.begin(), lines.end(),
                               [&](const AccuracyLine& l) { return l.group == group && l.metric == metric; });
  REQUIRE(at != lines.end());
  return *at;
}

}  // namespace

TEST_CASE("accuracy: errors by group, and the mean of groups of five rows or more") {
  std::vector<Cells> runs;
  for (const char* users : {"1", "2", "4", "8", "16"}) runs.push_back(loop({{"concurrency", users}}));
  runs.push_back(loop({{"model", "qwen3-8b"}}));
  const CsvTable table = as_predicted(runs, 1.25);  // so predictions are 20 % below
  const MeasuredRuns read = read_measured_runs(table);
  const std::vector<RowPrediction> predicted = predict_all(read);
  const std::vector<AccuracyLine> lines = accuracy_by_group(read, table, predicted);
  const AccuracyLine& tpot = line(lines, "llama-3.1-8b h100-sxm vllm", "tpot_ms");
  CHECK(tpot.errors.rows == 5);
  CHECK(tpot.errors.mape == doctest::Approx(0.2).epsilon(1e-6));
  CHECK(tpot.errors.bias == doctest::Approx(-0.2).epsilon(1e-6));
  CHECK(line(lines, "llama-3.1-8b h100-sxm vllm", "ttft_ms").errors.mape == doctest::Approx(0.0).epsilon(1e-6));
  CHECK(line(lines, "qwen3-8b h100-sxm vllm", "tpot_ms").errors.rows == 1);
  CHECK(line(lines, "all groups", "tpot_ms").errors.mape == doctest::Approx(0.2).epsilon(1e-6));
  // By anything else: here all of one release.
  const std::vector<AccuracyLine> releases = accuracy_by(
      read, table, predicted, [](const MeasuredRun& run) { return run.classes.version; }, "all releases");
  CHECK(line(releases, "vllm@0.19.0", "tpot_ms").errors.rows == 6);
  CHECK(line(releases, "all releases", "tpot_ms").errors.mape == doctest::Approx(0.2).epsilon(1e-6));
}
