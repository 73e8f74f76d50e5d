#include "sim/plan/measured/measured_runs.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/config_library.h"
#include "sim/plan/measured/host_fit.h"
#include "sim/plan/measured/serving_accuracy.h"
#include "sim/serve/step_pricer.h"
#include "sim/step/step_model.h"

using namespace roofcast;

namespace {

/// One setup of five decode workers at the concurrencies of a sweep.
MeasuredRuns sweep(std::initializer_list<int> concurrencies) {
  std::string text =
      "model,gpu,engine,engine_version,protocol,speculation,weight_dtype,isl,osl,concurrency,prefill_num_workers,"
      "prefill_batch_size,prefill_tp_size,decode_num_workers,decode_batch_size,decode_tp_size,ttft_ms,tpot_ms\n";
  for (const int concurrency : concurrencies)
    text +=
        fmt::format("llama-3.1-8b,h100-sxm,trtllm,0.8.1,inferencex,none,fp8,256,64,{},1,1,1,5,1,1,1,1\n", concurrency);
  return read_measured_runs(CsvTable::parse(text, "runs.csv"));
}

/// SGLang takes a token budget by GPU, and shares it among ranks of attention-DP.
MeasuredRun sglang_apart() {
  return read_measured_runs(
             CsvTable::parse("model,gpu,engine,engine_version,protocol,speculation,weight_dtype,isl,osl,concurrency,"
                             "prefill_num_workers,prefill_batch_size,prefill_tp_size,decode_num_workers,"
                             "decode_batch_size,decode_tp_size,decode_attention_dp_size,ttft_ms,tpot_ms\n"
                             "qwen3-30b-a3b,h200-sxm,sglang,0.5.10,inferencex,none,bf16,256,64,4,1,1,1,1,4,1,4,1,1\n",
                             "runs.csv"))
      .runs.at(0);
}

MeasuredRun batch(const std::string& row) {
  const CsvTable table = CsvTable::parse(
      "source,version,model,gpu,engine,weight_dtype,kv_dtype,tp,pp,isl,osl,batch,metric,value\n" + row + "\n", "s.csv");
  return read_measured_runs(table).runs.at(0);
}

MeasuredRun offline(const std::string& version, int isl, int osl) {
  const CsvTable table =
      CsvTable::parse(fmt::format("version,model,gpu,engine,weight_dtype,kv_dtype,tp,pp,isl,osl,metric,value\n"
                                  "{},llama-3.1-8b,h100-sxm,trtllm,fp8,fp8,1,1,{},{},output_tokens_per_s,1\n",
                                  version, isl, osl),
                      "o.csv");
  return read_measured_runs(table).runs.at(0);
}

double predicted(RunKind kind, const MeasuredRun& run) {
  REQUIRE(run.note == "");
  const auto pricer = make_model_pricer(run.deployment);
  return predict_run(kind, run, *pricer).value;
}

}  // namespace

TEST_CASE("measured runs: a prefill worker takes the launch defaults of its own GPUs") {
  const MeasuredRun run = sglang_apart();
  REQUIRE(run.deployment->sharding.attention_dp == 4);
  const int decode = run.deployment->engine.max_num_batched_tokens;
  CHECK(run.disaggregation->prefill->engine.max_num_batched_tokens == 4 * decode);
}

TEST_CASE("measured runs: a sweep that overfills its decode workers shows their limit") {
  const MeasuredRuns runs = sweep({5, 30, 55});
  REQUIRE(runs.kind == RunKind::kDisaggregated);
  for (const MeasuredRun& run : runs.runs) CHECK(run.deployment->engine.max_num_seqs == 8);
  CHECK(sweep({40}).runs.at(0).deployment->engine.max_num_seqs == 8);
  CHECK(sweep({39}).runs.at(0).deployment->engine.max_num_seqs == 4);
  CHECK(runs.runs[0].deployment->engine.graphs.dependent_launch);  // Dynamo 0.8 carries TensorRT-LLM 1.2
  CHECK(runs.runs[0].disaggregation->latency == runs.runs[0].deployment->engine.handover_time);
  CHECK(runs.runs[0].disaggregation->prefill->engine.max_num_seqs == 8192 / 256);
}

TEST_CASE("measured runs: a slip in a column is a note, not a run of hours") {
  const MeasuredRuns runs = sweep({16, 100'000'000});
  CHECK(runs.runs.at(0).note == "");
  CHECK(runs.runs.at(1).note == "runs.csv:3:1: a run of 1000000000 requests; at most 1000000 are simulated");
}

TEST_CASE("measured runs: offline benchmarks queue what their version's page says, without a front end") {
  CHECK(offline("v0.10.0", 128, 128).workload.requests == 2000);
  CHECK(offline("v0.10.0", 128, 128).deployment->engine.max_num_batched_tokens == 2048);
  CHECK(offline("v0.17", 128, 128).workload.requests == 30000);
  CHECK(offline("v0.17", 2048, 2048).workload.requests == 1500);
  CHECK(offline("v0.17", 128, 128).deployment->engine.name == "trtllm-0");
  CHECK(offline("v0.21", 128, 128).deployment->engine.name == "trtllm-1.0");
  CHECK(offline("v0.21", 128, 128).deployment->engine.host.token_time == Seconds(0));
  // Groups of four query heads: decoded head by head in 0.10, together from 0.11 on.
  CHECK(offline("v0.10.0", 128, 128).deployment->engine.shared_query_heads == 8);
  CHECK(offline("v0.11.0", 128, 128).deployment->engine.shared_query_heads == 0);
}

TEST_CASE("measured runs: vLLM's V0 engine decodes with its paged kernel where FlashAttention has none") {
  const auto engine = [](const std::string& what) {
    return batch("argonne_llm_inference_bench,repo," + what + ",1,1,128,128,16,e2e_ms,1").deployment->engine;
  };
  CHECK(engine("llama-3.1-8b,h100-sxm,vllm,fp16,fp16").shared_query_heads == 0);
  CHECK(engine("llama-3.1-8b,h100-sxm,vllm,fp16,fp8").shared_query_heads == 1);
  CHECK(batch("argonne_llm_inference_bench,repo,llama-3.1-8b,h100-sxm,vllm,fp16,fp8,1,1,128,128,16,e2e_ms,1")
            .deployment->precision.kv_cache == Dtype::kFp8);
  CHECK(engine("mistral-7b,h100-sxm,vllm,fp16,fp16").shared_query_heads == 1);
  CHECK(engine("mistral-7b,a100-sxm,vllm,fp16,fp16").shared_query_heads == 0);
  CHECK_FALSE(engine("llama-2-7b,mi300x,vllm,fp16,fp16").graphs.enabled);
  CHECK(engine("mixtral-8x7b,mi300x,vllm,fp16,fp16").graphs.enabled);
  // Built for its batch.
  CHECK(engine("llama-3.1-8b,h100-sxm,trtllm,fp16,fp16").max_num_seqs == 16);
  // Its own all-reduce was an option of the build until 0.12; a version of Dynamo says nothing about it.
  CHECK_FALSE(engine("llama-3.1-8b,h100-sxm,trtllm,fp16,fp16").own_all_reduce);
  CHECK_FALSE(offline("v0.11.0", 128, 128).deployment->engine.own_all_reduce);
  CHECK(offline("v0.12.0", 128, 128).deployment->engine.own_all_reduce);
  CHECK(sweep({5}).runs.at(0).deployment->engine.own_all_reduce);
}

TEST_CASE("measured runs: the profile of a version, or of the day where none is given") {
  const auto profile = [](const std::string& engine, const std::string& version, const std::string& day) {
    return read_measured_runs(
               CsvTable::parse("model,gpu,engine,engine_version,measured,weight_dtype,isl,osl,concurrency,tp,ttft_ms,"
                               "tpot_ms\nllama-3.1-8b,h100-sxm," +
                                   engine + "," + version + "," + day + ",bf16,128,64,8,1,1,1\n",
                               "runs.csv"))
        .runs.at(0)
        .deployment->engine.name;
  };
  CHECK(profile("vllm", "0.10.2", "") == "vllm-0.10");
  CHECK(profile("vllm", "", "2025-10-05") == "vllm-0.10");
  CHECK(profile("vllm", "", "2025-11-05") == "vllm");
  CHECK(profile("vllm", "0.7.3", "") == "vllm-0");
  CHECK(profile("trtllm", "1.2.0rc6", "2026-04-01") == "trtllm");
  CHECK(profile("trtllm", "1.3.0rc5", "") == "trtllm-1.3");
  CHECK(profile("trtllm", "", "2026-04-01") == "trtllm-1.3");
  CHECK(profile("trtllm", "", "") == "trtllm");
  CHECK(profile("sglang", "0.5.1.post1", "") == "sglang-0.5.8");
  CHECK(profile("sglang", "0.5.8.post1", "2026-04-01") == "sglang-0.5.8");
  CHECK(profile("sglang", "0.5.9", "2026-04-03") == "sglang-0.5.9");
  CHECK(profile("sglang", "0.5.10.post1", "") == "sglang");
  CHECK(profile("sglang", "nightly-dev", "2026-01-15") == "sglang-0.5.8");
  CHECK(profile("sglang", "nightly-dev-20260216-d3bae71e", "2026-02-20") == "sglang-0.5.9");
  CHECK(profile("sglang", "nightly-dev", "2026-04-08") == "sglang");
  CHECK(profile("sglang", "", "") == "sglang");
}

TEST_CASE("measured runs: vLLM V1's largest graph is of tokens, with prefill and without") {
  const auto graphs = [](const std::string& engine) {
    return read_measured_runs(CsvTable::parse("model,gpu,engine,engine_version,weight_dtype,isl,osl,concurrency,tp,"
                                              "cuda_graph_max_batch,ttft_ms,tpot_ms\nllama-3.1-8b,h100-sxm," +
                                                  engine + ",bf16,128,64,8,1,300,1,1\n",
                                              "runs.csv"))
        .runs.at(0)
        .deployment->engine.graphs;
  };
  for (const char* engine : {"vllm,0.19.0", "vllm,0.10.2"}) {
    CHECK(graphs(engine).max_batch == 300);
    CHECK(graphs(engine).prefill_tokens == 300);
  }
  CHECK(graphs("sglang,0.5.10").max_batch == 300);
  CHECK(graphs("sglang,0.5.10").prefill_tokens != 300);
}

TEST_CASE("measured runs: what NVIDIA's generated configurations and InferenceX's machines were") {
  const auto run = [](const std::string& row) {
    return read_measured_runs(
               CsvTable::parse("model,gpu,engine,engine_version,protocol,weight_dtype,isl,osl,concurrency,tp,"
                               "max_num_seqs,ttft_ms,tpot_ms\n" +
                                   row + ",1,1\n",
                               "runs.csv"))
        .runs.at(0);
  };
  // 512 sequences, or as many as there are; the budget holds a prompt of 1000, one token of each, and 1500 more. Under
  // 1.0 without experts it holds the prompt and the seven others, less Llama's begin-of-sequence token.
  const EngineSpec few = run("llama-3.1-8b,h100-sxm,trtllm,1.0.0rc3,nvidia,fp8,1000,64,8,1,").deployment->engine;
  CHECK(few.max_num_seqs == 512);
  CHECK(few.max_num_batched_tokens == 1006);
  CHECK(run("qwen3-32b,h100-sxm,trtllm,1.0.0rc3,nvidia,fp8,1000,64,8,1,").deployment->engine.max_num_batched_tokens ==
        1007);
  CHECK(
      run("llama-3.1-8b,h100-sxm,trtllm,1.0.0rc3,nvidia,fp8,1000,64,1,1,").deployment->engine.max_num_batched_tokens ==
      1000);
  CHECK_FALSE(few.chunked_prefill);
  CHECK_FALSE(few.async_scheduling);
  const EngineSpec many = run("llama-3.1-8b,h100-sxm,trtllm,1.2.0,nvidia,fp8,1000,64,1024,1,").deployment->engine;
  CHECK(many.max_num_seqs == 1024);
  CHECK(many.max_num_batched_tokens == 3524);
  const EngineSpec experts = run("qwen3-235b-a22b,h100-sxm,trtllm,1.0.0rc3,nvidia,fp8,1000,64,8,4,").deployment->engine;
  CHECK(experts.max_num_batched_tokens == 3012);
  CHECK(many.async_scheduling);
  CHECK(run("llama-3.1-8b,h100-sxm,trtllm,1.2.0,nvidia,fp8,1000,64,8,1,16").deployment->engine.max_num_seqs == 16);
  const auto launch_speed = [&](const std::string& gpu, const std::string& engine, const std::string& protocol) {
    const auto d = run(fmt::format("llama-3.1-8b,{},{},,{},fp8,1000,64,8,1,", gpu, engine, protocol)).deployment;
    return d->gpu.node.launch_speed * d->engine.launch_speed;
  };
  CHECK(launch_speed("b200-sxm", "vllm", "inferencex") == 0.4);
  CHECK(launch_speed("b200-sxm", "trtllm", "inferencex") == 1.0);
  CHECK(launch_speed("b200-sxm", "vllm", "nvidia") == 1.0);
  CHECK(launch_speed("b300-sxm", "sglang", "inferencex") == 1.0);
  CHECK(launch_speed("gb200", "trtllm", "nvidia") == 0.5);  // Grace's, as the GPU's file has it
}

TEST_CASE("measured runs: whose all-reduces norm, too") {
  const auto fused = [](const std::string& model, const std::string& gpu, const std::string& engine,
                        const std::string& day) {
    return read_measured_runs(
               CsvTable::parse("model,gpu,engine,engine_version,measured,weight_dtype,isl,osl,"
                               "concurrency,tp,ttft_ms,tpot_ms\n" +
                                   fmt::format("{},{},{},{},fp8,1000,64,8,4,20,5\n", model, gpu, engine, day),
                               "runs.csv"))
        .runs.at(0)
        .deployment->engine.fused_all_reduce;
  };
  CHECK(fused("gpt-oss-120b", "b200-sxm", "vllm,0.15.1", ""));
  CHECK(fused("gpt-oss-120b", "b200-sxm", "vllm,", "2026-02-25"));
  CHECK_FALSE(fused("gpt-oss-120b", "b200-sxm", "vllm,", "2025-11-02"));
  CHECK_FALSE(fused("gpt-oss-120b", "b200-sxm", "vllm,0.11.2", "2026-02-25"));
  CHECK_FALSE(fused("gpt-oss-120b", "h200-sxm", "vllm,0.18.0", ""));
  CHECK(fused("gpt-oss-120b", "h200-sxm", "trtllm,1.1.0", ""));
  CHECK_FALSE(fused("gpt-oss-120b", "h200-sxm", "trtllm,1.0.0", ""));
}

TEST_CASE("measured runs: whose products in block fp8 InferenceX's recipes for SGLang take from FlashInfer") {
  const auto products = [](const std::string& model, const std::string& version, const std::string& protocol) {
    return read_measured_runs(
               CsvTable::parse("model,gpu,engine,engine_version,protocol,weight_dtype,isl,osl,concurrency,tp,"
                               "ttft_ms,tpot_ms\n" +
                                   model + ",b200-sxm,sglang," + version + "," + protocol + ",fp8,1000,64,8,8,1,1\n",
                               "runs.csv"))
        .runs.at(0)
        .deployment->engine.block_products;
  };
  CHECK(products("qwen3.5-397b-a17b", "0.5.9", "inferencex") == GemmKernel::kFlashInfer);
  CHECK(products("glm-5", "0.5.9", "inferencex") == GemmKernel::kDeepGemm);  // its indexer's scores are DeepGEMM's
  CHECK(products("qwen3.5-397b-a17b", "0.5.10", "inferencex") == GemmKernel::kDeepGemm);
  CHECK(products("deepseek-v3", "0.5.10", "inferencex") == GemmKernel::kFlashInfer);
  CHECK(products("qwen3.5-397b-a17b", "0.5.9", "nvidia") == GemmKernel::kDeepGemm);
}

TEST_CASE("measured runs: DeepSeek's prompts of InferenceX's client under transformers 5 were five times as long") {
  const auto run = [](const std::string& model, const std::string& version, const std::string& day,
                      const std::string& protocol) {
    return read_measured_runs(
               CsvTable::parse("model,gpu,engine,engine_version,measured,protocol,weight_dtype,isl,osl,concurrency,tp,"
                               "ttft_ms,tpot_ms\n" +
                                   model + ",b300-sxm,sglang," + version + "," + day + "," + protocol +
                                   ",nvfp4,7140,64,8,8,1,1\n",
                               "runs.csv"))
        .runs.at(0);
  };
  const auto longest = [&](auto... of) { return run(of...).workload.prompt_tokens.longest(); };
  CHECK(longest("deepseek-v3", "0.5.10.post1", "2026-04-17", "inferencex") == 35921);
  CHECK(longest("deepseek-v3", "0.5.10.post1", "2026-05-20", "inferencex") == 7140);  // mended
  CHECK(longest("deepseek-v3", "0.5.9", "2026-03-17", "inferencex") == 7140);         // transformers 4
  CHECK(longest("deepseek-v3", "0.5.10.post1", "2026-04-17", "nvidia") == 7140);
  CHECK(longest("glm-5", "0.5.10.post1", "2026-04-17", "inferencex") == 7140);  // its own tokenizer
  // Five times the tokens in text that takes 1.6 times as long to cut.
  CHECK(run("deepseek-v3", "0.5.10.post1", "2026-04-17", "inferencex").serving.prompt_text ==
        doctest::Approx(1.6 * 7140 / 35921));
  CHECK(run("glm-5", "0.5.10.post1", "2026-04-17", "inferencex").serving.prompt_text == 1.0);
}

TEST_CASE("measured runs: NVIDIA's of March 2026 on one deployment share their requests among the pairs of 64 GPUs") {
  const auto together = [](const std::string& version, const std::string& protocol) {
    return read_measured_runs(
               CsvTable::parse("model,gpu,engine,engine_version,protocol,weight_dtype,isl,osl,concurrency,tp,"
                               "ttft_ms,tpot_ms\n"
                               "qwen3-32b,gb200,trtllm," +
                                   version + "," + protocol + ",nvfp4,15000,500,448,2,1,1\n",
                               "runs.csv"))
        .runs.at(0)
        .workload.arrivals.concurrency;
  };
  CHECK(together("1.3.0rc5", "nvidia") == 14);
  CHECK(together("1.3.0rc5", "inferencex") == 448);
  CHECK(together("1.3.0rc1", "nvidia") == 448);
}

TEST_CASE("measured runs: which of TensorRT-LLM's launched their kernels ahead") {
  const auto ahead = [](const std::string& model, const std::string& version) {
    return read_measured_runs(
               CsvTable::parse("model,gpu,engine,engine_version,protocol,weight_dtype,isl,osl,concurrency,tp,"
                               "ttft_ms,tpot_ms\n" +
                                   model + ",h200-sxm,trtllm," + version + ",inferencex,fp8,1000,64,8,8,1,1\n",
                               "runs.csv"))
        .runs.at(0)
        .deployment->engine.graphs.dependent_launch;
  };
  CHECK(ahead("deepseek-v3", "1.2.0rc6.post2"));
  CHECK(ahead("gpt-oss-120b", ""));
  CHECK_FALSE(ahead("deepseek-v3", "1.1.0rc2.post2"));
  CHECK_FALSE(ahead("llama-3.1-70b", ""));

  const auto ahead_apart = [](const char* workers) {  // attention-DP, tp and ep of the decode workers
    return read_measured_runs(
               CsvTable::parse(
                   std::string("model,gpu,engine,engine_version,measured,protocol,weight_dtype,isl,osl,"
                               "concurrency,prefill_num_workers,prefill_tp_size,decode_num_workers,"
                               "decode_attention_dp_size,decode_tp_size,decode_moe_ep_size,ttft_ms,tpot_ms\n"
                               "deepseek-v3,gb200,trtllm,0.5.1,2025-12-19,inferencex,nvfp4,1000,64,8,1,4,1,") +
                       workers + ",1,1\n",
                   "runs.csv"))
        .runs.at(0)
        .deployment->engine.graphs.dependent_launch;
  };
  CHECK(ahead_apart("1,8,8"));
  CHECK_FALSE(ahead_apart("32,1,32"));
}

TEST_CASE("measured runs: the attention backend tells how prompts attend to what an indexer chose") {
  const auto kernel = [](const std::string& backend) {
    return read_measured_runs(CsvTable::parse("model,gpu,engine,engine_version,weight_dtype,isl,osl,concurrency,tp,"
                                              "attention_backend,ttft_ms,tpot_ms\n"
                                              "glm-5,b200-sxm,sglang,0.5.9,fp8,1000,64,8,8,\"" +
                                                  backend + "\",1,1\n",
                                              "runs.csv"))
        .runs.at(0)
        .deployment->engine.sparse_attention;
  };
  CHECK(kernel("nsa (decode trtllm, prefill trtllm)") == "trtllm");
  CHECK(kernel("") == "flashmla");
}

TEST_CASE("measured runs: runs share prices only where they have the same kernels") {
  const auto key = [](const std::string& model, const std::string& protocol, const std::string& backend) {
    return read_measured_runs(
               CsvTable::parse("model,gpu,engine,engine_version,protocol,weight_dtype,isl,osl,concurrency,tp,"
                               "attention_backend,ttft_ms,tpot_ms\n" +
                                   model + ",b300-sxm,sglang,0.5.9," + protocol + ",fp8,1000,64,8,8,\"" + backend +
                                   "\",1,1\n",
                               "runs.csv"))
        .runs.at(0)
        .deployment_key;
  };
  CHECK(key("glm-5", "inferencex", "") == key("glm-5", "nvidia", ""));
  CHECK(key("glm-5", "inferencex", "") != key("glm-5", "inferencex", "nsa (decode trtllm, prefill trtllm)"));
  CHECK(key("qwen3.5-397b-a17b", "inferencex", "") != key("qwen3.5-397b-a17b", "nvidia", ""));
}

TEST_CASE("measured runs: a row that lacks its lengths or load, or whose settings are none, says so") {
  const auto note = [](const std::string& numbers) {
    return read_measured_runs(CsvTable::parse("model,gpu,engine,isl,osl,concurrency,tp,max_num_seqs,memory_fraction\n"
                                              "llama-3.1-8b,h100-sxm,vllm," +
                                                  numbers + "\n",
                                              "runs.csv"))
        .runs.at(0)
        .note;
  };
  CHECK(note("1000,64,8,1,,") == "");
  CHECK(note(",64,8,1,,") == "runs.csv:2:1: 'isl' must be a whole number, 1 or more");
  CHECK(note("1000,0,8,1,,") == "runs.csv:2:1: 'osl' must be a whole number, 1 or more");
  CHECK(note("1000,64,0,1,,") == "runs.csv:2:1: 'concurrency' must be a whole number, 1 or more");
  CHECK(note("1000,64,8,1,1e12,").find("'max_num_seqs' must be from 0 to 16777216") != std::string::npos);
  CHECK(note("1000,64,8,1,,2").find("'memory_fraction' must be from 0 to 1, got 2") != std::string::npos);
}

TEST_CASE("measured runs: an online run with the means of a ShareGPT sample has its spread") {
  const MeasuredRuns runs =
      read_measured_runs(CsvTable::parse("model,gpu,engine,version,tp,isl,osl,request_rate,metric,value\n"
                                         "llama-3.1-8b,h100-sxm,trtllm,v0.14.0,1,202,214,inf,itl_ms,20\n"
                                         "llama-3.1-8b,h100-sxm,trtllm,v0.14.0,1,467,256,2,itl_ms,8\n",
                                         "runs.csv"));
  const WorkloadSpec& spread = runs.runs[0].workload;
  CHECK(spread.output_tokens.longest() == 1024);
  CHECK(spread.output_tokens.mean() == doctest::Approx(214).epsilon(0.01));
  CHECK(spread.prompt_tokens.mean() == doctest::Approx(202).epsilon(0.01));
  CHECK(runs.runs[1].workload.output_tokens.longest() == 256);
}

TEST_CASE("measured runs: one prompt, repeated, decodes with the experts of one token") {
  const std::string row = ",repo,mixtral-8x7b,h100-sxm,trtllm,fp16,fp16,4,1,128,128,";
  const auto e2e = [&](const std::string& source, int batch_size) {
    return predicted(RunKind::kStatic, batch(fmt::format("{}{}{},e2e_ms,1", source, row, batch_size)));
  };
  const double one = e2e("argonne_llm_inference_bench", 1), same = e2e("argonne_llm_inference_bench", 16);
  CHECK(same < 1.2 * one);
  CHECK(e2e("trtllm_static_batch", 16) > 1.5 * same);
}

TEST_CASE("measured runs: nvfp4 checkpoints of models with experts leave their mixers in 16 bit") {
  const auto precision = [](const char* model, const char* gpu, const char* weights) {
    return batch(fmt::format("x,1.1.0,{},{},trtllm,{},fp8,4,1,128,16,1,e2e_ms,1", model, gpu, weights))
        .deployment->precision;
  };
  const Precision experts = precision("minimax-m2.5", "b200-sxm", "nvfp4");
  CHECK(experts.attention_weights == Dtype::kBf16);
  CHECK(experts.expert_weights == Dtype::kNvfp4);
  CHECK(experts.weights == Dtype::kNvfp4);
  CHECK(precision("llama-3.1-70b", "b200-sxm", "nvfp4").attention_weights == Dtype::kNvfp4);
  CHECK(precision("mixtral-8x7b", "h100-sxm", "fp8").attention_weights == Dtype::kFp8);
}

TEST_CASE("measured runs: static batches queue where they do not fit, and pass a pipeline whole") {
  const std::string argonne = "argonne_llm_inference_bench,repo,llama-2-7b,a100-sxm,vllm,fp16,fp16,1,";
  const MeasuredRun fits = batch(argonne + "1,1024,64,16,e2e_ms,1"), queues = batch(argonne + "1,1024,64,96,e2e_ms,1");
  CHECK_FALSE(fits.queues);
  CHECK(queues.queues);
  CHECK(predicted(RunKind::kStatic, queues) > 3 * predicted(RunKind::kStatic, fits));
  const MeasuredRun staged = batch(argonne + "4,1024,64,16,e2e_ms,1");
  CHECK(predicted(RunKind::kStatic, staged) == doctest::Approx(predicted(RunKind::kStatic, fits)));
  const MeasuredRun rocm =
      batch("argonne_llm_inference_bench,repo,llama-3.1-8b,mi300x,vllm,fp16,fp16,1,1,1024,64,16,e2e_ms,1");
  CHECK(rocm.deployment->gpu.name == "mi300x-2024");
  CHECK_FALSE(rocm.deployment->engine.graphs.enabled);
  CHECK(rocm.deployment->engine.shared_query_heads == 1);
}

TEST_CASE("measured runs: a slower host takes longer over its part of a step") {
  const auto of = [](double speed) {
    auto d = std::make_shared<Deployment>(
        *batch("splitwise_profiles,2023,llama-2-70b,h100-sxm,vllm,fp16,fp16,8,1,128,8,1,tpot_ms,1").deployment);
    d->gpu.node.host_speed = speed;
    return StepModel(d).decode_run(1, 128, 1, 1).time.base();
  };
  CHECK(of(0.5) == doctest::Approx(2 * of(1.0)));  // eager: the host sets the pace
}

namespace {

/// Two groups of closed-loop runs whose measured values are the predictions, the second's times `off`.
std::string closed_loop_runs(double off) {
  const std::string head =
      "model,gpu,engine,engine_version,protocol,speculation,weight_dtype,isl,osl,concurrency,tp,moe_backend,ttft_ms,"
      "tpot_ms\n";
  const auto rows = [](const std::string& model, double ttft, double tpot) {
    std::string text;
    for (const int users : {1, 2, 3, 4, 5})
      text += fmt::format("{},h100-sxm,vllm,0.19.0,nvidia,none,bf16,256,64,{},1,,{},{}\n", model, users, ttft, tpot);
    return text;
  };
  const CsvTable table = CsvTable::parse(head + rows("llama-3.1-8b", 1, 1) + rows("qwen3-8b", 1, 1), "runs.csv");
  const MeasuredRuns runs = read_measured_runs(table);
  std::string text = head;
  for (const MeasuredRun& run : runs.runs) {
    const auto pricer = make_model_pricer(run.deployment);
    const RunPrediction p = predict_run(runs.kind, run, *pricer);
    const bool first = run.group.starts_with("llama");
    text += fmt::format("{},h100-sxm,vllm,0.19.0,nvidia,none,bf16,256,64,{},1,,{},{}\n",
                        first ? "llama-3.1-8b" : "qwen3-8b", run.workload.arrivals.concurrency,
                        p.ttft_ms * (first ? 1 : off), p.tpot_ms * (first ? 1 : off));
  }
  return text;
}

}  // namespace

TEST_CASE("host fit: a group that is far off for another reason does not count") {
  for (const double off : {1.1, 4.0}) {
    const CsvTable table = CsvTable::parse(closed_loop_runs(off), "runs.csv");
    MeasuredRuns runs = read_measured_runs(table);
    const HostFit fit = fit_host(runs, table, "vllm", {.max_evaluations = 5, .starts = 1});
    REQUIRE(fit.groups.size() == 2);
    CHECK(fit.groups[0].counted);
    CHECK(fit.groups[1].counted == (off < 2));
  }
}

TEST_CASE("host fit: a sibling's costs are expected") {
  const auto costs = [](const char* profile) {
    return parse_engine_spec(ConfigReader(load_named("engines", profile, Mark{"test", 0, 0}), "an engine")).host;
  };
  const Seconds own = costs("vllm").step_time, sibling = costs("vllm-0").step_time;
  REQUIRE(sibling > 2 * own);
  const CsvTable table = CsvTable::parse(closed_loop_runs(1), "runs.csv");
  MeasuredRuns runs = read_measured_runs(table);
  // So strong a pull leaves the runs, which are the profile's own predictions, nothing to say.
  const HostFit pulled =
      fit_host(runs, table, "vllm",
               {.max_evaluations = 150, .starts = 1, .cross_validate = true, .pull = 1000, .sibling = "vllm-0"});
  CHECK(pulled.host.step_time / sibling == doctest::Approx(1).epsilon(0.1));
  CHECK(pulled.groups[0].held_out.tpot == doctest::Approx(pulled.groups[0].fitted.tpot).epsilon(0.1));
  const HostFit free = fit_host(runs, table, "vllm", {.max_evaluations = 50, .starts = 1});
  CHECK(free.host.step_time < 0.5 * sibling);
  CHECK(pulled.groups[0].fitted.tpot > free.groups[0].fitted.tpot);
}

TEST_CASE("host fit: a front end's costs are expected, with a sibling's of the engine and without") {
  const auto costs = [](const char* profile) {
    return parse_engine_spec(ConfigReader(load_named("engines", profile, Mark{"test", 0, 0}), "an engine")).host;
  };
  const HostCosts own = costs("vllm"), sibling = costs("vllm-0"), front_end = costs("sglang");
  REQUIRE(sibling.step_time > 2 * own.step_time);
  REQUIRE(front_end.request_latency > 2 * std::max(own.request_latency, sibling.request_latency));
  const CsvTable table = CsvTable::parse(closed_loop_runs(1), "runs.csv");
  MeasuredRuns runs = read_measured_runs(table);
  HostFitOptions options{.max_evaluations = 150, .starts = 1, .pull = 1000, .front_end = "sglang"};
  const HostFit alone = fit_host(runs, table, "vllm", options);
  CHECK(alone.host.step_time / own.step_time == doctest::Approx(1).epsilon(0.1));
  CHECK(alone.host.request_latency / front_end.request_latency == doctest::Approx(1).epsilon(0.1));
  options.sibling = "vllm-0";
  options.cross_validate = true;
  const HostFit both = fit_host(runs, table, "vllm", options);
  CHECK(both.host.step_time / sibling.step_time == doctest::Approx(1).epsilon(0.1));
  CHECK(both.host.request_latency / front_end.request_latency == doctest::Approx(1).epsilon(0.1));
  CHECK(both.groups[0].held_out.ttft == doctest::Approx(both.groups[0].fitted.ttft).epsilon(0.1));
}

TEST_CASE("host fit: costs that are not fitted stay in the predictions and in the result") {
  std::string rows = "model,gpu,engine,engine_version,weight_dtype,isl,osl,concurrency,tp,ttft_ms,tpot_ms\n";
  for (const int concurrency : {1, 2, 4, 8, 16})
    rows += fmt::format("llama-3.1-8b,h100-sxm,vllm,0.10.2,bf16,256,64,{},2,20,5\n", concurrency);
  const CsvTable table = CsvTable::parse(rows, "runs.csv");
  MeasuredRuns runs = read_measured_runs(table);
  const HostCosts own = runs.runs[0].deployment->engine.host;
  REQUIRE(own.piece_time > Seconds(0));
  const HostFit fit = fit_host(runs, table, "vllm-0.10", {.max_evaluations = 3, .starts = 1});
  CHECK(fit.host.piece_time == own.piece_time);
  CHECK(runs.runs[0].deployment->engine.host.piece_time == own.piece_time);
}

TEST_CASE("host fit: workers apart all have the costs that are tried") {
  std::string rows =
      "model,gpu,engine,engine_version,weight_dtype,isl,osl,concurrency,prefill_num_workers,prefill_tp_size,"
      "decode_num_workers,decode_tp_size,ttft_ms,tpot_ms\n";
  for (const int concurrency : {1, 2, 4, 8, 16})
    rows += fmt::format("llama-3.1-8b,h100-sxm,vllm,0.12.0,bf16,256,64,{},1,1,1,1,20,5\n", concurrency);
  const CsvTable table = CsvTable::parse(rows, "runs.csv");
  MeasuredRuns runs = read_measured_runs(table);
  REQUIRE(runs.kind == RunKind::kDisaggregated);
  const HostFit fit = fit_host(runs, table, "vllm", {.max_evaluations = 5, .starts = 1});
  CHECK(runs.runs[0].disaggregation->prefill->engine.host.step_time == fit.host.step_time);
  CHECK(fit.host.step_time != read_measured_runs(table).runs[0].deployment->engine.host.step_time);
}

TEST_CASE("host fit: costs that no run shows stay as the profile has them") {
  std::string rows = "version,model,gpu,engine,weight_dtype,kv_dtype,tp,pp,isl,osl,metric,value\n";
  for (const int osl : {8, 16, 24, 32, 40})
    rows += fmt::format("v0.17,llama-3.1-8b,h100-sxm,trtllm,fp8,fp8,1,1,2048,{},output_tokens_per_s,500\n", osl);
  const CsvTable table = CsvTable::parse(rows, "o.csv");
  MeasuredRuns runs = read_measured_runs(table);
  const HostFit fit = fit_host(runs, table, "trtllm-0", {.max_evaluations = 3, .starts = 1});
  // Offline runs have no front end, one GPU no collectives.
  const auto left = [&](std::string_view cost) {
    return std::find(fit.unexercised.begin(), fit.unexercised.end(), cost) != fit.unexercised.end();
  };
  for (const char* cost : {"request_time", "request_latency", "token_time", "prompt_token_time", "rank_skew"})
    CHECK(left(cost));
  CHECK_FALSE(left("step_time"));
  CHECK(fit.host.request_latency > Seconds(0));
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
  const CsvTable table = CsvTable::parse(
      "model,gpu,engine,isl,osl,concurrency,tp,ttft_ms,tpot_ms\n"
      "gpt-2,h100-sxm,vllm,1000,256,4,1,1,1\n"  // its table of positions ends at 1024
      "gpt-2,h100-sxm,vllm,500,256,4,1,1,1\n"
      "gpt-j-6b,h100-sxm,vllm,2048,256,4,1,1,1\n",  // 2048 by the checkpoint, but rotary: who ran it, could
      "runs.csv");
  const std::vector<RowPrediction> rows = predict_all(read_measured_runs(table));
  CHECK_FALSE(rows.at(0).prediction);
  CHECK(rows.at(0).note.starts_with("no request completed"));
  CHECK(rows.at(1).prediction);
  CHECK(rows.at(1).note.empty());
  CHECK(rows.at(2).prediction);
}
