#include "sim/plan/measured/row_scenario.h"

#include <doctest/doctest.h>

#include "base/config_library.h"
#include "base/config_release.h"
#include "sim/step/deployment.h"
#include "tests/sim/plan/measured/rows.h"

using namespace roofcast;
using rows::apart;
using rows::Cells;
using rows::figure;
using rows::scenario;

namespace {

Cells loop(const Cells& changes) { return rows::closed_loop(changes); }
EngineSpec engine(const Cells& run) {
  const MeasuredRun read = rows::read(run);
  REQUIRE(read.note == "");
  return read.deployment->engine;
}
bool has(const Cells& run, const std::string& text) {
  const std::string yaml = scenario(run);
  const bool found = yaml.find(text) != std::string::npos;
  if (!found) MESSAGE(yaml);
  return found;
}

}  // namespace

TEST_CASE("row scenario: a closed loop without a recipe") {
  CHECK(scenario(loop({{"id", "run-7"}, {"tp", "2"}, {"kv_dtype", "fp8"}})) ==
        "name: run-7\n"
        "model: llama-3.1-8b\n"
        "gpu: h100-sxm\n"
        "engine:\n"
        "  name: vllm\n"
        "  version: 0.19.0\n"
        "parallelism:\n"
        "  tp: 2\n"
        "precision:\n"
        "  weights: bf16\n"
        "  kv_cache: fp8\n"
        "workload:\n"
        "  arrivals:\n"
        "    process: closed_loop\n"
        "    concurrency: 4\n"
        "  requests: 40\n"
        "  prompt_tokens: 256\n"
        "  output_tokens: 64\n");
}

TEST_CASE("row scenario: a closed loop of a recipe leaves the load to its client") {
  CHECK(scenario(loop({{"protocol", "inferencex"}, {"measured", "2026-04-18"}, {"warmed_up", "0"}})) ==
        "model: llama-3.1-8b\n"
        "gpu: h100-sxm\n"
        "engine:\n"
        "  name: vllm\n"
        "  version: 0.19.0\n"
        "recipe: inferencex\n"
        "parallelism:\n"
        "  tp: 1\n"
        "precision:\n"
        "  weights: bf16\n"
        "workload:\n"
        "  client: inferencex\n"
        "  client_date: 2026-04-18\n"
        "  concurrency: 4\n"
        "  warmup_requests: 0\n"
        "  prompt_tokens: 256\n"
        "  output_tokens: 64\n");
}

TEST_CASE("row scenario: what a launch file asked for and the engine never read counts as blank") {
  // InferenceX's scripts for H100 gave vLLM "--config=config.yaml" until November 2025, and it read nothing of that
  // file.
  const Cells run{{"protocol", "inferencex"}, {"measured", "2025-10-29"}, {"gpu", "h100-sxm"},   {"engine_version", ""},
                  {"kv_dtype", "fp8"},        {"async_scheduling", "1"},  {"max_num_seqs", "64"}};
  const std::string text = scenario(loop(run));
  CHECK(text.find("kv_cache") == std::string::npos);
  CHECK(text.find("async_scheduling") == std::string::npos);
  CHECK(text.find("max_num_seqs: 64") != std::string::npos);  // on the command line itself

  Cells other = run;
  other["gpu"] = "h200-sxm";
  CHECK(has(loop(other), "kv_cache: fp8"));
  CHECK(has(loop(other), "async_scheduling: true"));
}

TEST_CASE("row scenario: workers apart, each with its own parallelism") {
  const std::string text = scenario(apart({{"engine", "trtllm"},
                                           {"engine_version", "1.2.0"},
                                           {"prefill_num_workers", "3"},
                                           {"prefill_batch_size", "2"},
                                           {"prefill_tp_size", "2"},
                                           {"decode_num_workers", "5"},
                                           {"decode_tp_size", "4"},
                                           {"decode_pp_size", "2"}}));
  // A prefill worker takes at least the engine's own budget of 8192 tokens: 8192 / 256 = 32 prompts at once.
  CHECK(text ==
        "model: llama-3.1-8b\n"
        "gpu: h100-sxm\n"
        "engine:\n"
        "  name: trtllm\n"
        "  version: 1.2.0\n"
        "parallelism:\n"
        "  tp: 4\n"
        "  pp: 2\n"
        "  replicas: 5\n"
        "precision:\n"
        "  weights: bf16\n"
        "disaggregation:\n"
        "  prefill:\n"
        "    parallelism:\n"
        "      tp: 2\n"
        "      replicas: 3\n"
        "    engine:\n"
        "      max_num_batched_tokens: 8192\n"
        "      max_num_seqs: 32\n"
        "workload:\n"
        "  arrivals:\n"
        "    process: closed_loop\n"
        "    concurrency: 4\n"
        "  requests: 40\n"
        "  prompt_tokens: 256\n"
        "  output_tokens: 64\n");
  // 8 prompts of 2048 are more than that budget.
  CHECK(has(apart({{"engine", "trtllm"}, {"engine_version", "1.2.0"}, {"prefill_batch_size", "8"}, {"isl", "2048"}}),
            "max_num_batched_tokens: 16384\n      max_num_seqs: 8\n"));
  // Without a number in flight the decode workers' batches are full: 5 x 4.
  CHECK(has(apart({{"concurrency", ""}, {"decode_num_workers", "5"}}), "concurrency: 20\n  requests: 200\n"));
}

TEST_CASE("row scenario: a static batch is all its requests at once, in a pass that holds them") {
  const Cells batch = figure({{"batch", "16"}, {"metric", "e2e_ms"}, {"source", "argonne_llm_inference_bench"}});
  CHECK(scenario(rows::with(batch, {{"version", "repo @4211f5d (2025-07-1"}})) ==
        "model: llama-3.1-8b\n"
        "gpu: h100-sxm\n"
        "engine:\n"
        "  name: trtllm\n"
        "  version: 0.12.0\n"
        "  max_num_batched_tokens: 4096\n"  // 16 x 256
        "  max_num_seqs: 16\n"              // built for its batch
        "recipe: argonne\n"
        "parallelism:\n"
        "  tp: 1\n"
        "precision:\n"
        "  weights: bf16\n"
        "  kv_cache: bf16\n"
        "workload:\n"
        "  client: static-batch\n"
        "  requests: 16\n"
        "  prompt_tokens: 256\n"
        "  output_tokens: 64\n");
  // vLLM cut long prompts into its budget of 8192 tokens; 131072 tokens in one pass are the most.
  CHECK(has(rows::with(batch, {{"engine", "vllm"}, {"version", "repo"}, {"isl", "1024"}, {"batch", "64"}}),
            "max_num_batched_tokens: 8192\n"));
  CHECK(has(rows::with(batch, {{"version", "repo"}, {"isl", "4096"}, {"batch", "64"}}),
            "max_num_batched_tokens: 131072\n"));
  CHECK(has(figure({{"batch", "16"}, {"metric", "e2e_ms"}}),
            "workload:\n  arrivals:\n    process: all_at_once\n  requests: 16\n"));
}

TEST_CASE("row scenario: an offline run queues what its recipe's client sends") {
  CHECK(scenario(figure({{"source", "trtllm_perf_overview"}, {"version", "v0.17"}})) ==
        "model: llama-3.1-8b\n"
        "gpu: h100-sxm\n"
        "engine:\n"
        "  name: trtllm\n"
        "  version: v0.17\n"
        "recipe: trtllm-perf-overview\n"
        "parallelism:\n"
        "  tp: 1\n"
        "precision:\n"
        "  weights: bf16\n"
        "  kv_cache: bf16\n"
        "workload:\n"
        "  client: trtllm-bench\n"
        "  prompt_tokens: 256\n"
        "  output_tokens: 64\n");
  CHECK(has(figure(), "workload:\n  arrivals:\n    process: all_at_once\n  requests: 3000\n"));
}

TEST_CASE("row scenario: an online run comes at its rate, or all at once") {
  const auto of = [](const std::string& rate, const std::string& source) {
    return figure({{"request_rate", rate}, {"source", source}, {"version", "v0.14.0"}, {"metric", "ttft_ms"}});
  };
  CHECK(has(of("2.5", "trtllm_online_serving"), "  client: vllm-performance-suite\n  rate: 2.5 /s\n"));
  CHECK(has(of("inf", "trtllm_online_serving"), "  client: vllm-performance-suite\n  rate: inf\n"));
  CHECK(has(rows::with(of("inf", "trtllm_online_serving"), {{"isl", "202"}, {"osl", "214"}}),
            "  client: vllm-sharegpt\n  rate: inf\n"));
  CHECK(has(of("2.5", ""), "  arrivals:\n    process: poisson\n    rate: 2.5 /s\n  requests: 500\n"));
  for (const char* rate : {"inf", "0", ""})
    CHECK(has(of(rate, ""), "  arrivals:\n    process: all_at_once\n  requests: 500\n"));
}

TEST_CASE("row scenario: launch settings are those of the row's columns") {
  CHECK(has(loop({{"memory_fraction", "0.85"},
                  {"max_num_seqs", "64"},
                  {"max_num_tokens", "4096"},
                  {"stream_interval", "10"},
                  {"chunked_prefill", "0"},
                  {"async_scheduling", "1"},
                  {"prefix_caching", "0"},
                  {"front_end", "dynamo"},
                  {"cuda_graph_max_batch", "128"},
                  {"distinct_prompts", "100"}}),
            "engine:\n"
            "  name: vllm\n"
            "  version: 0.19.0\n"
            "  gpu_memory_utilization: 0.85\n"
            "  max_num_seqs: 64\n"
            "  max_num_batched_tokens: 4096\n"
            "  stream_interval: 10\n"
            "  chunked_prefill: false\n"
            "  async_scheduling: true\n"
            "  prefix_caching: false\n"
            "  front_end: dynamo\n"
            "  cuda_graphs:\n"
            "    max_batch: 128\n"));
  CHECK(has(loop({{"engine", "trtllm"},
                  {"engine_version", "1.2.0"},
                  {"prefill_wait_ratio", "0.9"},
                  {"prefill_wait_steps", "20"},
                  {"postprocess_workers", "4"}}),
            "  prefill_wait_ratio: 0.9\n"
            "  prefill_wait_steps: 20\n"
            "  postprocess_workers: 4\n"));
  CHECK(has(loop({{"engine", "sglang"}, {"engine_version", "0.5.9"}, {"recv_interval", "30"}}),
            "  receive_interval: 30\n"));
  CHECK(has(loop({{"distinct_prompts", "100"}}), "  distinct_prompts: 100\n"));
  CHECK(has(
      loop({{"engine", "sglang"}, {"engine_version", "0.5.9"}, {"cuda_graph_max_batch", "128"}, {"mixed_chunk", "1"}}),
      "  scheduler: mixed_chunk\n  cuda_graphs:\n    max_batch: 128\nparallelism"));
  CHECK(scenario(loop({{"mixed_chunk", "0"}})).find("scheduler") == std::string::npos);
  // Prompts that are not cut fit the budget: they were served.
  CHECK(has(loop({{"max_num_tokens", "2048"}, {"chunked_prefill", "0"}, {"isl", "3000"}}),
            "max_num_batched_tokens: 3000\n"));
  CHECK(has(loop({{"max_num_tokens", "2048"}, {"chunked_prefill", "1"}, {"isl", "3000"}}),
            "max_num_batched_tokens: 2048\n"));
  CHECK(has(loop({{"engine", "trtllm"}, {"engine_version", "1.2.0"}, {"isl", "9000"}}),
            "max_num_batched_tokens: 9000\n"));
}

TEST_CASE("row scenario: kernels by the row's words") {
  const Cells glm = loop({{"model", "glm-5"},
                          {"gpu", "b200-sxm"},
                          {"engine", "sglang"},
                          {"engine_version", "0.5.9"},
                          {"weight_dtype", "fp8"},
                          {"tp", "8"}});
  CHECK(has(rows::with(glm, {{"attention_backend", "nsa (decode trtllm, prefill trtllm)"}}),
            "  sparse_attention: trtllm\n"));
  CHECK(engine(rows::with(glm, {{"attention_backend", "trtllm_mha"}})).sparse_attention == "flashmla");
  CHECK(has(loop({{"moe_backend", "CUTLASS"}}), "  moe_kernel: cutlass\n"));
  CHECK(has(loop({{"moe_backend", "TRTLLM"}}), "  moe_kernel: low_latency\n"));
  CHECK(has(loop({{"moe_backend", "MARLIN (VLLM_MXFP4_USE_MARLIN=1)"}}), "  moe_kernel: marlin\n"));
  CHECK(has(loop({{"moe_backend", "TRITON"}}), "  moe_kernel: triton\n"));
  CHECK(scenario(loop({{"moe_backend", "flashinfer_trtllm"}})).find("moe_kernel") == std::string::npos);
}

TEST_CASE("row scenario: a context beyond the checkpoint's was asked for, where positions allow it") {
  CHECK(has(loop({{"model", "gpt-j-6b"}, {"isl", "2048"}, {"osl", "256"}}), "max_model_len: 2304\n"));
  CHECK(scenario(loop({{"model", "gpt-j-6b"}, {"isl", "1024"}})).find("max_model_len") == std::string::npos);
  CHECK(scenario(loop({{"model", "gpt-2"}, {"isl", "1000"}, {"osl", "256"}})).find("max_model_len") ==
        std::string::npos);  // a table of 1024 positions
}

TEST_CASE("row scenario: attention-DP ranks, experts over GPUs") {
  const Cells deepseek = loop({{"model", "deepseek-v3"}, {"gpu", "b200-sxm"}, {"weight_dtype", "fp8_block"}});
  CHECK(has(rows::with(deepseek, {{"tp", "1"}, {"attention_dp", "8"}, {"moe_ep", "8"}}),
            "parallelism:\n  tp: 1\n  attention_dp: 8\n  ep: 8\n"));
  CHECK(has(rows::with(deepseek, {{"tp", "8"}, {"moe_ep", "1"}}), "parallelism:\n  tp: 8\nworkload"));
  // TensorRT-LLM's tables write tp for the GPUs of the experts: 8 / 8 for each of the 8 copies.
  CHECK(has(rows::with(deepseek, {{"tp", "8"}, {"dp", "8"}, {"ep", "8"}}),
            "parallelism:\n  tp: 1\n  attention_dp: 8\n  ep: 8\n"));
  const Cells workers = apart({{"model", "deepseek-v3"},
                               {"gpu", "gb200"},
                               {"engine", "trtllm"},
                               {"engine_version", "1.2.0"},
                               {"weight_dtype", "fp8_block"},
                               {"decode_attention_dp_size", "8"},
                               {"decode_tp_size", "8"},
                               {"decode_moe_tp_size", "1"},
                               {"decode_moe_ep_size", "8"},
                               {"prefill_tp_size", "4"},
                               {"prefill_moe_tp_size", "0"},
                               {"prefill_moe_ep_size", "0"}});
  CHECK(has(workers, "parallelism:\n  tp: 1\n  attention_dp: 8\n  ep: 8\n"));    // 8 GPUs of experts in all
  CHECK(has(workers, "  prefill:\n    parallelism:\n      tp: 4\n    engine"));  // dense models write 0
}

TEST_CASE("row scenario: formats of a checkpoint") {
  const auto formats = [](const Cells& run) {
    const std::string text = scenario(run);
    const std::size_t begin = text.find("precision:\n");
    return begin == std::string::npos ? "" : text.substr(begin + 11, text.find("workload") - begin - 11);
  };
  CHECK(formats(loop({{"weight_dtype", "int4_wo"}})) == "  weights: int4\n");
  CHECK(formats(loop({{"weight_dtype", "fp8"}, {"kv_dtype", "fp8"}})) == "  weights: fp8\n  kv_cache: fp8\n");
  CHECK(formats(loop({{"weight_dtype", ""}})) == "");
  // Qwen3's and DeepSeek's published fp8 checkpoints scale by blocks; the latter is stored so already.
  CHECK(formats(loop({{"model", "qwen3-8b"}, {"weight_dtype", "fp8"}})) == "  weights: fp8_block\n");
  const Cells deepseek = loop({{"model", "deepseek-v3"}, {"gpu", "b200-sxm"}, {"tp", "8"}});
  CHECK(formats(rows::with(deepseek, {{"weight_dtype", "fp8"}, {"moe_weight_dtype", "fp8"}})) == "");
  CHECK(formats(rows::with(deepseek, {{"weight_dtype", "nvfp4"}, {"moe_weight_dtype", "nvfp4"}})) ==
        "  weights: nvfp4\n");
  CHECK(formats(loop({{"model", "mixtral-8x7b"}, {"weight_dtype", "fp8"}, {"moe_weight_dtype", "fp8_block"}})) ==
        "  weights: fp8_block\n");
  CHECK(formats(loop({{"model", "mixtral-8x7b"}, {"weight_dtype", "bf16"}, {"moe_weight_dtype", "fp8"}})) ==
        "  expert_weights: fp8\n");
}

TEST_CASE("row scenario: the release is the row's version, or that of its day") {
  const auto version = [](const std::string& name, const std::string& written, const std::string& day) {
    return engine(loop({{"engine", name}, {"engine_version", written}, {"measured", day}})).version;
  };
  CHECK(version("vllm", "0.10.2", "") == "0.10.2");
  CHECK(version("vllm", "v0.7.3", "") == "v0.7.3");  // a patch that is not listed
  CHECK(version("vllm", "0.19.0+cu129", "") == "0.19.0");
  CHECK(version("vllm", "0.11.0-rc2", "") == "0.11.0");
  CHECK(version("trtllm", "1.2.0rc6", "2026-04-01") == "1.2.0");
  CHECK(version("sglang", "0.5.8.post1", "2026-04-01") == "0.5.8");
  // Without one, the release of the day.
  CHECK(version("vllm", "", "2025-10-05") == "0.11.0");
  CHECK(version("vllm", "nightly", "2025-12-03") == "0.12.0");
  CHECK(version("trtllm", "", "2026-04-01") == "1.2.0");
  CHECK(version("sglang", "nightly-dev-20260216-d3bae71e", "2026-02-24") == "0.5.9");
  // Without either, the newest.
  for (const char* name : {"vllm", "sglang", "trtllm"}) {
    const ConfigTree document = load_document("engines", name, SourceLocation{"test", 0, 0});
    CHECK(version(name, "", "") == find_release(document, "", SourceLocation{"test", 0, 0}).version);
  }
}

TEST_CASE("row scenario: a recipe knows what ran on a day") {
  const auto version = [](const std::string& name, const std::string& written, const std::string& day) {
    return engine(loop({{"engine", name}, {"engine_version", written}, {"measured", day}, {"protocol", "inferencex"}}))
        .version;
  };
  // configs/recipes/inferencex.yaml: 0.10.2 from August 2025, 0.11.0 from November, 0.19.0 from April 2026.
  CHECK(version("vllm", "", "2025-10-31") == "0.10.2");
  CHECK(version("vllm", "", "2025-11-01") == "0.11.0");
  CHECK(version("vllm", "", "2026-05-01") == "0.19.0");
  CHECK(version("vllm", "", "") == "0.19.0");  // no day: the last
  CHECK(version("vllm", "0.15.1", "2025-10-31") == "0.15.1");
  CHECK(version("sglang", "nightly-dev", "2026-01-15") == "0.5.5");
  CHECK(version("sglang", "nightly-dev", "2026-04-08") == "0.5.10");
  CHECK(version("trtllm", "gpt-oss-dev", "2026-01-15") == "1.1.0");
  // Before the first of them the day itself counts.
  CHECK(version("vllm", "", "2025-07-30") == "0.10.0");
  // Workers apart carry the version of Dynamo, which ships another.
  const auto apart_version = [](const std::string& recipe, const std::string& day) {
    return engine(
               apart(
                   {{"engine", "trtllm"}, {"engine_version", "0.8.1.post2"}, {"measured", day}, {"protocol", recipe}}))
        .version;
  };
  CHECK(apart_version("inferencex", "2025-12-14") == "1.1.0");
  CHECK(apart_version("inferencex", "2026-02-07") == "1.2.0");
  CHECK(apart_version("inferencex", "2026-04-18") == "1.3.0");
  CHECK(apart_version("nvidia", "2026-04-18") == "0.8.1.post2");
  // Argonne's and Splitwise's repositories name no version.
  CHECK(
      engine(
          figure({{"batch", "1"}, {"version", "repo"}, {"engine", "vllm"}, {"source", "argonne_llm_inference_bench"}}))
          .version == "0.6.0");
  CHECK(engine(figure({{"batch", "1"}, {"version", "2023"}, {"engine", "vllm"}, {"source", "splitwise_profiles"}}))
            .version == "0.2.0");
}

TEST_CASE("row scenario: whose recipe a row is, by its recipe, protocol or source") {
  const auto recipe = [](const Cells& changes) {
    const CsvTable table = rows::table({loop(changes)});
    const auto found = recipe_of_row(RunColumns(table), 0);
    return found ? found->name : "";
  };
  CHECK(recipe({}) == "");
  CHECK(recipe({{"protocol", "nvidia"}}) == "aiconfigurator");
  CHECK(recipe({{"source", "trtllm_static_batch"}}) == "static-batch");
  CHECK(recipe({{"protocol", "a paper"}, {"source", "inferencex"}}) == "inferencex");
  CHECK(recipe({{"protocol", "nvidia"}, {"recipe", "dynamo"}}) == "dynamo");
  CHECK(rows::read(loop({{"recipe", "dynmo"}})).note ==
        "runs.csv:2:1: unknown recipe 'dynmo'; nearest is 'dynamo' "
        "(valid: aiconfigurator, argonne, dynamo, inferencex, ml-energy, mlperf, "
        "splitwise, static-batch, trtllm-online, trtllm-perf-overview)");
}

TEST_CASE("row scenario: parts that a recipe knows") {
  CHECK(
      has(figure({{"batch", "1"}, {"version", "repo"}, {"gpu", "a100-sxm"}, {"source", "argonne_llm_inference_bench"}}),
          "gpu: a100-sxm-40gb\n"));
  CHECK(has(figure({{"batch", "1"}, {"gpu", "a100-sxm"}}), "gpu: a100-sxm\n"));
}

TEST_CASE("row scenario: a steady batch is a closed loop of as many users, by the checkpoint's name") {
  const CsvTable table = CsvTable::parse(
      "hf_id,task,gpu,gpus,tp,dp,ep,max_num_seqs,mean_batch,mean_output_tokens,median_itl_ms,output_tokens_per_s\n"
      "Qwen/Qwen3-235B-A22B-Instruct-2507-FP8,chat,h100-sxm,4,1,1,4,128,31.7,800.4,40,700\n"
      "meta-llama/Llama-3.1-8B-Instruct,image-chat,h100-sxm,1,1,1,1,128,8,100,10,700\n",
      "steady.csv");
  const MeasuredRuns runs = read_measured_runs(table);
  REQUIRE(runs.kind == RunKind::kSteady);
  const MeasuredRun& run = runs.runs.at(0);
  REQUIRE(run.note == "");
  CHECK(run.deployment->recipe == "ml-energy");       // by its columns
  CHECK(run.deployment->engine.version == "0.11.1");  // what that recipe ran
  CHECK(run.deployment->sharding.tp == 4);            // four GPUs hold the experts
  CHECK(run.deployment->precision.weights == Dtype::kFp8Block);
  CHECK(run.workload.arrivals.concurrency == 32);  // 31.7
  CHECK(run.workload.requests == 3 * 32);
  CHECK(runs.runs.at(1).note.find("images or videos") != std::string::npos);
}
