#include "sim/step/step_model.h"
#include "hw/collectives.h"
#include "hw/efficiency.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <doctest/doctest.h>

#include "base/config_library.h"
#include "hw/kernels/elementwise.h"
#include "sim/model/recipes.h"
#include "sim/step/decode_curve.h"
#include "sim/step/rank_batch.h"
#include "tests/sim/step/shipped.h"

using namespace roofcast;

namespace {

std::shared_ptr<Deployment> deploy(const std::string& model, const std::string& gpu, int tp = 1,
                                   Fidelity fidelity = Fidelity::kCalibrated) {
  return shipped::deploy(model, gpu, "vllm", tp, fidelity);
}

StepBatch decodes(int sequences, double context_each, int query_len = 1) {
  return {.decodes = sequences, .decode_context = sequences * context_each, .query_len = query_len, .prefills = {}};
}

}  // namespace

TEST_CASE("ideal decode of Llama-2-13B reads its weights and its cache once") {
  // Read: 13.016 B parameters less the 32,000 x 5,120 embedding table = 12.852 B x 2 B = 25.70 GB
  // Cache: 64 sequences x 1024 tokens x 819,200 B = 53.69 GB;  79.4 GB / 3.35 TB/s = 23.7 ms (a lecture prints 23.8)
  StepModel model(deploy("llama-2-13b", "h100-sxm", 1, Fidelity::kIdeal));
  const StepCost cost = model.cost(decodes(64, 1024));
  CHECK(cost.bytes.in(kGigabyte) == doctest::Approx(79.4).epsilon(0.015));
  CHECK(cost.time.in(kMillisecond) == doctest::Approx(23.8).epsilon(0.02));
}

TEST_CASE("kernel by kernel, GPU and host work at once but in LLM.int8(), whose products wait for a number") {
  const auto step = [](const char* precision) {
    auto d = shipped::deploy("llama-2-7b", "a100-sxm", "hf-transformers");
    bool asked = false;
    d->precision = parse_precision(d->model, make_scalar(precision), asked);
    StepModel model(d);
    return std::pair{model.breakdown(decodes(1, 160)), model.cost(decodes(1, 160)).launched};
  };
  const auto [plain, launched] = step("bf16");
  CHECK(plain.gpu_time < launched);
  CHECK(plain.time == launched);
  // Attention and the copies of the cache, 3 of some 90 kernels a layer, are launched beside the rest.
  const auto [waiting, launches] = step("llm_int8");
  CHECK(waiting.time < waiting.gpu_time + launches);
  CHECK(waiting.time > waiting.gpu_time + 0.9 * launches);
}

TEST_CASE("sending a step to workers costs where there are several GPUs") {
  const auto step = [](int tp, double worker_us) {
    auto d = deploy("llama-3.1-8b", "h100-sxm", tp);
    d->engine.host.scheduler_time = d->engine.host.scheduler_sequence_time = Seconds(0);  // a floor that may hide it
    d->engine.host.worker_time = worker_us * kMicrosecond;
    return StepModel(d).cost(decodes(8, 500)).time.in(kMicrosecond);
  };
  CHECK(step(1, 1000) == step(1, 0));
  CHECK(step(2, 1000) - step(2, 0) == doctest::Approx(1000.0));
}

TEST_CASE("kernels of a graph wait for one another unless they are launched ahead of that") {
  const auto step = [](double gap_us, bool ahead, bool graphs = true) {
    auto d = deploy("llama-3.1-8b", "h100-sxm");
    d->engine.host.graph_gap = gap_us * kMicrosecond;
    d->engine.graphs.dependent_launch = ahead;
    d->engine.graphs.enabled = graphs;
    StepModel model(d);
    const double one = model.cost(decodes(8, 500)).time.in(kMicrosecond);
    CHECK(model.decode_run(decodes(8, 500), 4).time.in(kMicrosecond) == doctest::Approx(4 * one).epsilon(1e-3));
    return one;
  };
  const double kernels = step(1, false) - step(0, false);
  CHECK(kernels > 32 * 8);  // four products, two norms, attention and activation a layer
  CHECK(kernels < 32 * 14);
  CHECK(step(0.5, false) - step(0, false) == doctest::Approx(kernels / 2));
  CHECK(step(1, true) == step(0, true));
  CHECK(step(1, false, false) == step(0, false, false));
}

TEST_CASE("a slower host takes longer for all that it does, but ranks wait for each other as before") {
  const auto step = [](double factor, bool graphs) {
    auto d = deploy("llama-3.1-8b", "h100-sxm", 2);
    d->engine.graphs.enabled = graphs;
    d->engine.async_scheduling = false;
    d->engine.host = {.step_time = kMillisecond,
                      .scheduler_time = kMillisecond,
                      .scheduler_sequence_time = kMicrosecond,
                      .worker_time = kMillisecond,
                      .launch_time = kMillisecond,
                      .rank_skew = kMillisecond};
    d->engine.host.scale(factor);
    return StepModel(d).cost(decodes(8, 500)).time.in(kMicrosecond);
  };
  // 1 ms + 1 ms + 8 x 1 us + 1 ms of the host more
  CHECK(step(2, true) - step(1, true) == doctest::Approx(3008.0));
  CHECK(step(2, false) == doctest::Approx(2 * step(1, false)));  // bound by its launches
}

TEST_CASE("the scheduler's own work comes before a step, or beside it and shows where it is longer") {
  const auto step = [](double scheduler_us, double sequence_us, bool async, int sequences = 8, double host_speed = 1) {
    auto d = deploy("llama-3.1-8b", "h100-sxm");
    d->gpu.node.host_speed = host_speed;
    d->engine.async_scheduling = async;
    d->engine.host = {.step_time = 100.0 * kMicrosecond,
                      .scheduler_time = scheduler_us * kMicrosecond,
                      .scheduler_sequence_time = sequence_us * kMicrosecond};
    StepModel model(d);
    const double one = model.cost(decodes(sequences, 500)).time.in(kMicrosecond);
    CHECK(model.decode_run(decodes(sequences, 500), 4).time.in(kMicrosecond) == doctest::Approx(4 * one).epsilon(1e-3));
    const StepBreakdown parts = model.breakdown(decodes(sequences, 500));
    CHECK((parts.gpu_time + parts.host_time).in(kMicrosecond) == doctest::Approx(one).epsilon(1e-3));
    return one;
  };
  const double gpu = step(0, 0, true) - 100;  // 16 GB of weights at 3.35 TB/s, and more: 5 ms at least
  REQUIRE(gpu > 4500);
  REQUIRE(gpu < 9000);
  CHECK(step(0, 0, false) == step(0, 0, true));
  // Before the GPU's: 1000 us + 8 x 20 us more
  CHECK(step(1000, 20, false) - step(0, 0, false) == doctest::Approx(1000 + 8 * 20.0));
  // Beside it: nothing to be seen of 1160 us, but 20 ms are longer than the GPU's, and 0.1 ms come before in either
  // case.
  CHECK(step(1000, 20, true) == step(0, 0, true));
  CHECK(step(20000, 0, true) == doctest::Approx(20000 + 100));
  CHECK(step(20000, 20, true) == doctest::Approx(20000 + 8 * 20.0 + 100));
  CHECK(step(20000, 20, false) == doctest::Approx(gpu + 20000 + 8 * 20.0 + 100));
  // More sequences take longer: 24 more of them, 24 x 20 us.
  CHECK(step(20000, 20, true, 32) - step(20000, 20, true, 8) == doctest::Approx(24 * 20.0));
  // A host of half the speed takes twice as long over both.
  CHECK(step(20000, 20, true, 8, 0.5) == doctest::Approx(2 * (20000 + 8 * 20.0 + 100)));
}

TEST_CASE("the scheduler's work is of a rank's sequences, and prompts are among them") {
  const auto step = [](const StepBatch& batch, int attention_dp, double sequence_us) {
    auto d = deploy("qwen3-30b-a3b", "h200-sxm");
    d->sharding.attention_dp = attention_dp;
    d->engine.async_scheduling = false;
    d->engine.host = {.scheduler_sequence_time = sequence_us * kMicrosecond};
    return StepModel(d).cost(batch).time.in(kMicrosecond);
  };
  const auto more = [&](const StepBatch& batch, int attention_dp) {
    return step(batch, attention_dp, 1000) - step(batch, attention_dp, 0);
  };
  CHECK(more(decodes(8, 500), 1) == doctest::Approx(8 * 1000.0));
  CHECK(more(decodes(8, 500), 4) == doctest::Approx(8 / 4 * 1000.0));  // four ranks, each with its own scheduler
  const std::vector<PrefillChunk> prompts(6, {.tokens = 100});
  CHECK(more({.decodes = 8, .decode_context = 8 * 500.0, .prefills = prompts}, 1) == doctest::Approx((8 + 6) * 1000.0));
  CHECK(more({.decodes = 8, .decode_context = 8 * 500.0, .prefills = prompts}, 4) ==
        doctest::Approx((2 + 2) * 1000.0));  // two prompts on the fullest rank
}

TEST_CASE("the datasheet's machine has no scheduler") {
  auto d = deploy("llama-3.1-8b", "h100-sxm", 1, Fidelity::kIdeal);
  d->engine.async_scheduling = false;
  const Seconds without = StepModel(d).cost(decodes(8, 500)).time;
  auto slow = std::make_shared<Deployment>(*d);
  slow->engine.host.scheduler_time = Seconds(1);
  CHECK(StepModel(slow).cost(decodes(8, 500)).time == without);
}

TEST_CASE("prices of many chunks are told apart from those of few") {
  StepModel warmed(deploy("llama-3.1-8b", "h100-sxm"));
  const std::vector<PrefillChunk> few(1, {.tokens = 7}), many(4097, {.tokens = 7});
  (void)warmed.time({.decodes = 0, .decode_context = 0, .prefills = few});
  const Seconds fresh =
      StepModel(deploy("llama-3.1-8b", "h100-sxm")).time({.decodes = 0, .decode_context = 0, .prefills = many});
  CHECK(warmed.time({.decodes = 0, .decode_context = 0, .prefills = many}).base() == fresh.base());
}

TEST_CASE("a step of billions of tokens is priced without room for all smaller ones") {
  StepModel model(deploy("llama-3.1-8b", "h100-sxm"));
  const std::vector<PrefillChunk> chunks(1000, {.tokens = 2'000'000'000});
  const StepBatch batch{.decodes = 0, .decode_context = 0, .prefills = chunks};
  CHECK(model.time(batch) > Seconds(1e6));
  // Between knots a sum runs linearly, above the sum of the parts at times: what the host takes is never negative.
  for (const int tokens : {2049, 2111, 8191, 100'001}) {
    const std::vector<PrefillChunk> one(1, {.tokens = tokens});
    CHECK(model.breakdown({.decodes = 0, .decode_context = 0, .prefills = one}).host_time >= Seconds(0));
  }
  StepModel ideal(deploy("llama-3.1-8b", "h100-sxm", 1, Fidelity::kIdeal));
  for (int batch_size = 1; batch_size < 300; ++batch_size)
    CHECK(ideal.breakdown(decodes(batch_size, 777)).host_time >= Seconds(0));
}

TEST_CASE(
    "an indexer works in 16 bit where a GPU has no fp8 units, and an int8 product has one outlier column at least") {
  const auto line = [](const StepBreakdown& step, const std::string& name) {
    const auto found = std::find_if(step.operators.begin(), step.operators.end(),
                                    [&](const OperatorTime& op) { return op.name == name; });
    REQUIRE(found != step.operators.end());
    return found->cost;
  };
  auto ampere = deploy("deepseek-v3.2", "a100-sxm", 8);
  choose_activations(ampere->precision, ampere->gpu);
  const StepBreakdown sparse = StepModel(ampere).breakdown(decodes(8, 5000));
  CHECK(line(sparse, "indexer_scores").time > Seconds(0));
  auto d = deploy("deepseek-v2-lite", "h100-sxm");
  d->precision.weights = d->precision.attention_weights = d->precision.expert_weights = Dtype::kInt8;
  d->precision.outlier_fraction = 0.001;  // of the 512 inputs of kv_b_proj, with 16 x (128 + 128) outputs, 27 layers
  const std::vector<PrefillChunk> prompt(1, {.tokens = 1000});
  const StepBreakdown narrow = StepModel(d).breakdown({.decodes = 0, .decode_context = 0, .prefills = prompt});
  CHECK(line(narrow, "kv_b_proj_outliers").flops.base() == doctest::Approx(27 * 2.0 * 1000 * 1 * 4096));
  CHECK(line(narrow, "kv_b_proj").flops.base() == doctest::Approx(27 * 2.0 * 1000 * 511 * 4096));
}

TEST_CASE("an engine without its own all-reduce calls NCCL") {
  const auto all_reduce = [](bool own) {
    auto d = deploy("llama-3.1-8b", "h100-sxm", 4);
    d->engine.own_all_reduce = own;
    const StepBreakdown step = StepModel(d).breakdown(decodes(8, 500));
    const auto line = std::find_if(step.operators.begin(), step.operators.end(),
                                   [](const OperatorTime& op) { return op.name == "all_reduce"; });
    REQUIRE(line != step.operators.end());
    return line->cost.time / line->count;
  };
  const CalibratedGpu h100 = load_gpu(load_named("hardware", "h100-sxm", {}), "vllm");
  const Machine machine{.gpu = &h100.spec, .efficiency = &h100.efficiency};
  const Seconds library = nccl(Collective::kAllReduce, Bytes(8 * 4096 * 2.0), {4, 4}, machine).time;
  const Seconds skew = deploy("llama-3.1-8b", "h100-sxm", 4)->engine.host.rank_skew;
  CHECK((all_reduce(false) - skew).in(kMicrosecond) == doctest::Approx(library.in(kMicrosecond)));
  CHECK(all_reduce(true) < all_reduce(false));
}

TEST_CASE("a run of decode steps in closed form equals its steps one by one") {
  for (const Fidelity fidelity : {Fidelity::kIdeal, Fidelity::kCalibrated}) {
    for (const char* name : {"llama-3.1-8b", "mixtral-8x7b"}) {
      StepModel model(deploy(name, "h100-sxm", 2, fidelity));
      for (const int query_len : {1, 4}) {
        for (const int sequences : {1, 7, 64}) {
          double seconds = 0, flops = 0, bytes = 0, context = sequences * 1000.0 + 3.0;
          const int steps = 300;
          for (int i = 0; i < steps; ++i, context += sequences * query_len) {
            const StepCost cost =
                model.cost({.decodes = sequences, .decode_context = context, .query_len = query_len, .prefills = {}});
            seconds += cost.time.base(), flops += cost.flops.base(), bytes += cost.bytes.base();
          }
          const StepCost run = model.decode_run(
              {.decodes = sequences, .decode_context = sequences * 1000.0 + 3.0, .query_len = query_len}, steps);
          CHECK(run.time.base() == doctest::Approx(seconds).epsilon(1e-9));
          CHECK(run.flops.base() == doctest::Approx(flops).epsilon(1e-9));
          CHECK(run.bytes.base() == doctest::Approx(bytes).epsilon(1e-9));
        }
      }
    }
  }
}

TEST_CASE("an eager run pays its launches in closed form too") {
  auto d = deploy("llama-3.1-8b", "h100-sxm");
  d->engine.graphs.enabled = false;
  d->engine.host.launch_time = Seconds(12e-6);  // near the crossing of launches and kernels
  StepModel model(d);
  double seconds = 0, context = 8 * 500.0;
  for (int i = 0; i < 2000; ++i, context += 8)
    seconds += model.time({.decodes = 8, .decode_context = context, .prefills = {}}).base();
  CHECK(model.decode_run(decodes(8, 500), 2000).time.base() == doctest::Approx(seconds).epsilon(1e-9));
}

TEST_CASE("an eager step is never faster than its launches") {
  auto d = deploy("llama-3.1-8b", "h100-sxm");
  d->engine.host = {};
  const PrefillChunk short_prompt{.tokens = 64, .context_before = 0, .last = true};
  const PrefillChunk long_prompt{.tokens = 8192, .context_before = 0, .last = true};
  const auto prefill = [&](const PrefillChunk& chunk, double launch_us, int graph_tokens, double speed) {
    d->engine.host.launch_time = launch_us * kMicrosecond;
    d->engine.graphs.prefill_tokens = graph_tokens;
    d->gpu.node.launch_speed = speed;
    return StepModel(d).time({.decodes = 0, .decode_context = 0, .prefills = {&chunk, 1}}).base();
  };
  const double launches = prefill(short_prompt, 100, 0, 1.0);  // far above the kernels' times
  CHECK(prefill(short_prompt, 200, 0, 1.0) == doctest::Approx(2 * launches));
  CHECK(prefill(short_prompt, 100, 0, 0.5) == doctest::Approx(2 * launches));
  d->engine.launch_speed = 0.5;  // of the engine on this GPU, beside the node's
  CHECK(prefill(short_prompt, 100, 0, 1.0) == doctest::Approx(2 * launches));
  CHECK(prefill(short_prompt, 100, 0, 0.5) == doctest::Approx(4 * launches));
  d->engine.launch_speed = 1.0;
  CHECK(prefill(short_prompt, 100, 4096, 1.0) == prefill(short_prompt, 0, 4096, 1.0));  // replayed
  CHECK(prefill(long_prompt, 100, 0, 1.0) == prefill(long_prompt, 0, 0, 1.0));          // the GPU takes longer
}

TEST_CASE("a prefill step costs what its products do at that very number of tokens") {
  auto d = deploy("qwen3-32b", "h100-sxm");
  d->engine = parse_engine_spec(ConfigReader(load_named("engines", "trtllm", {}), "an engine"));
  d->precision.weights = d->precision.activations = Dtype::kFp8Block;
  StepModel model(d);
  for (const int tokens : {1031, 2055, 4103, 9001}) {
    const PrefillChunk chunk{.tokens = tokens, .context_before = 0, .last = true};
    const StepBatch step{.decodes = 0, .decode_context = 0, .prefills = {&chunk, 1}};
    const StepBreakdown parts = model.breakdown(step);
    CHECK(parts.gpu_time.base() + model.deployment().engine.host.prefill_step_time.base() ==
          doctest::Approx(model.cost(step).time.base()).epsilon(1e-3));
  }
}

TEST_CASE("prefill is replayed from graphs up to its own limit, whatever decode's") {
  auto d = deploy("llama-3.1-8b", "h100-sxm");
  d->engine.host.launch_time = Seconds(100e-6);  // far above the kernels' times
  const PrefillChunk chunk{.tokens = 256, .context_before = 0, .last = true};
  const auto prefill = [&](int graph_tokens) {
    d->engine.graphs.prefill_tokens = graph_tokens;
    return StepModel(d).time({.decodes = 0, .decode_context = 0, .prefills = {&chunk, 1}}).base();
  };
  CHECK(prefill(256) == prefill(4096));
  CHECK(prefill(255) > 2 * prefill(256));
  CHECK(prefill(255) == prefill(0));
  d->engine.graphs.prefill_tokens = 0;
  const double decode = StepModel(d).time(decodes(8, 500)).base();
  d->engine.graphs.prefill_tokens = 4096;
  CHECK(StepModel(d).time(decodes(8, 500)).base() == decode);
}

TEST_CASE("prompts of one eager step are launched together") {
  auto d = deploy("deepseek-v3", "b200-sxm", 8);
  d->engine.graphs.enabled = false;
  d->engine.host.launch_time = Seconds(1e-3);  // far above the kernels' times
  d->engine.host.sequence_time = Seconds(0);
  StepModel model(d);
  const std::vector<PrefillChunk> one{{.tokens = 256, .context_before = 0, .last = true}};
  const std::vector<PrefillChunk> four(4, {.tokens = 64, .context_before = 0, .last = true});
  const auto time = [&](const std::vector<PrefillChunk>& chunks) {
    return model.time({.decodes = 0, .decode_context = 0, .prefills = chunks}).base();
  };
  CHECK(time(four) == doctest::Approx(time(one)).epsilon(1e-9));
  CHECK(model.breakdown({.decodes = 0, .decode_context = 0, .prefills = four}).time.base() == time(four));
  // A machine that launches at half the speed takes twice as long.
  d->gpu.node.launch_speed = 0.5;
  CHECK(time(one) == doctest::Approx(StepModel(d).time({.decodes = 0, .decode_context = 0, .prefills = four}).base()));
  const double fast = time(one) / 2;
  d->gpu.node.launch_speed = 1.0;
  CHECK(time(one) == doctest::Approx(fast).epsilon(0.01));
}

TEST_CASE("what an indexer chose is attended to by the kernels that the engine names") {
  auto d = deploy("glm-5", "b200-sxm", 8);
  d->engine.scaled_latents = d->precision.scaled_latents = true;
  d->precision.kv_cache = Dtype::kFp8;
  const auto attention = [&](const std::string& kernels, const StepBatch& batch) {
    d->engine.sparse_attention = kernels;
    for (const OperatorTime& op : StepModel(d).breakdown(batch).operators)
      if (op.name == "attention") return op.cost.time.base();
    return 0.0;
  };
  const PrefillChunk longer{.tokens = 8000, .context_before = 0, .last = true};
  const PrefillChunk dense{.tokens = 2000, .context_before = 0, .last = true};
  const StepBatch prompt{.decodes = 0, .decode_context = 0, .prefills = {&longer, 1}};
  const StepBatch within{.decodes = 0, .decode_context = 0, .prefills = {&dense, 1}};
  const StepBatch decode{.decodes = 64, .decode_context = 64 * 4000, .prefills = {}};
  CHECK(attention("flashmla", prompt) > 1.5 * attention("trtllm", prompt));
  CHECK(attention("flashmla", within) == attention("trtllm", within));  // all visible tokens are chosen
  CHECK(attention("flashmla", decode) > 1.5 * attention("trtllm", decode));
}

TEST_CASE("experts of block fp8 that work on a copy of every choice") {
  auto d = deploy("deepseek-v3", "b200-sxm", 8);
  const auto experts = [&](bool expanded) {
    d->engine.expanded_experts = expanded;
    const StepBatch batch{.decodes = 64, .decode_context = 64 * 1000, .prefills = {}};
    for (const OperatorTime& op : StepModel(d).breakdown(batch).operators)
      if (op.name == "experts") return op.cost.time.base();
    return 0.0;
  };
  // 58 layers; 8 choices of 7168 values, twice read and written in 16 bit
  const double copies = elementwise(Bytes(2 * 4.0 * 64 * 8 * 7168), Flops(0), 2, d->machine()).time.base();
  CHECK(experts(true) - experts(false) == doctest::Approx(58 * copies));
  d->precision.expert_weights = Dtype::kBf16;
  CHECK(experts(true) == experts(false));
}

TEST_CASE("inputs of block fp8 that few rows at a time are quantized") {
  const auto quantize = [](const char* gpu, int at_once, int tokens) {
    auto d = deploy("deepseek-v3", gpu, 8);
    d->engine.rows_quantized_at_once = at_once;
    const PrefillChunk chunk{.tokens = tokens, .context_before = 0, .last = true};
    double seconds = 0.0;
    for (const OperatorTime& op :
         StepModel(d).breakdown({.decodes = 0, .decode_context = 0, .prefills = {&chunk, 1}}).operators)
      if (op.name == "quantize") seconds += op.cost.time.base();
    return seconds;
  };
  // 8192 / 64 rows after one another, of 512 columns 128 after 128; 61 layers of qkv_a, q_b, kv_b and o, and 2 products
  // of each dense or shared block, whose second has 18432 / 8 or 2048 / 8 columns
  const double read = ElementwiseParameters{}.chained_read_us * 1e-6, launch = ElementwiseParameters{}.launch_us * 1e-6;
  const double chains = 128 * read * (61 * 4 * 4 + 61 * 4 + 3 * 4 + 58 * 2);
  CHECK(quantize("b200-sxm", 64, 8192) == doctest::Approx(chains + 61 * 6 * launch));
  CHECK(quantize("b200-sxm", 64, 8192) > 5 * quantize("b200-sxm", 0, 8192));
  CHECK(quantize("b200-sxm", 64, 8192) == doctest::Approx(quantize("b200-sxm", 64, 8129)));
  CHECK(quantize("h200-sxm", 64, 8192) == quantize("h200-sxm", 0, 8192));
}

TEST_CASE("a short prompt that runs as latent decode expands nothing") {
  auto d = deploy("deepseek-v3", "h200-sxm", 8);
  const auto has = [&](int tokens, std::string_view name) {
    const PrefillChunk chunk{.tokens = tokens, .context_before = 0, .last = true};
    for (const OperatorTime& op :
         StepModel(d).breakdown({.decodes = 0, .decode_context = 0, .prefills = {&chunk, 1}}).operators)
      if (op.name == name) return true;
    return false;
  };
  CHECK(has(512, "absorb_q"));
  CHECK_FALSE(has(512, "kv_b_proj"));
  CHECK(has(513, "kv_b_proj"));
  CHECK_FALSE(has(513, "absorb_q"));
  d->fidelity = Fidelity::kIdeal;
  CHECK(has(512, "kv_b_proj"));
}

TEST_CASE("graphs of plain prefill leave out latents, states and models that also see") {
  const PrefillChunk chunk{.tokens = 256, .context_before = 0, .last = true};
  const auto gain = [&](const char* model) {
    auto d = deploy(model, "b200-sxm", 8);
    d->engine.host.launch_time = Seconds(100e-6);  // far above the kernels' times
    d->engine.graphs.prefill_tokens = 4096;
    const auto time = [&](bool plain) {
      d->engine.graphs.plain_prefill = plain;
      return StepModel(d).time({.decodes = 0, .decode_context = 0, .prefills = {&chunk, 1}}).base();
    };
    return time(true) / time(false);
  };
  CHECK(gain("qwen3-32b") == 1.0);
  CHECK(gain("deepseek-v3") > 2.0);         // latents
  CHECK(gain("glm-5") > 2.0);               // chooses what it attends to
  CHECK(gain("qwen3-next-80b-a3b") > 2.0);  // gated delta nets
  CHECK(gain("kimi-k2.5") > 2.0);           // images
}

TEST_CASE("a machine that launches slowly prepares eager prefill slowly, replayed prefill as others do") {
  auto d = deploy("llama-3.1-8b", "h100-sxm");
  d->engine.scheduler_launches = true;
  const PrefillChunk chunk{.tokens = 256, .context_before = 0, .last = true};
  const auto host = [&](double launch_time, int graph_tokens, double launch_speed) {
    d->engine.graphs.prefill_tokens = graph_tokens;
    d->engine.host.launch_time = Seconds(launch_time);
    d->gpu.node.launch_speed = launch_speed;
    const auto time = [&](double prefill_step_time) {
      d->engine.host.prefill_step_time = Seconds(prefill_step_time);
      return StepModel(d).time({.decodes = 0, .decode_context = 0, .prefills = {&chunk, 1}}).base();
    };
    return time(0.01) - time(0);
  };
  CHECK(host(1e-6, 0, 1.0) == doctest::Approx(0.01));
  CHECK(host(1e-6, 0, 0.5) == doctest::Approx(0.02));
  CHECK(host(1e-6, 4096, 0.5) == doctest::Approx(0.01));
  d->engine.scheduler_launches = false;  // another thread prepares
  CHECK(host(1e-6, 0, 0.5) == doctest::Approx(0.01));
}

TEST_CASE("the most loaded attention-DP rank sets a step's prefill") {
  auto d = deploy("deepseek-v3", "b200-sxm");
  d->sharding.attention_dp = d->sharding.ep = 4;
  StepModel model(d);
  const std::vector<PrefillChunk> chunks(4, {.tokens = 1000, .context_before = 0, .last = true});
  const auto time = [&](std::vector<RankLoad> ranks) {
    return model.time({.decodes = 0, .decode_context = 0, .prefills = chunks, .ranks = ranks}).base();
  };
  // An even spread is priced as a quarter of a launch of four prompts.
  const double one_each = time({{.prefills = 1}, {.prefills = 1}, {.prefills = 1}, {.prefills = 1}});
  CHECK(one_each == doctest::Approx(time({})).epsilon(0.01));
  CHECK(time({{.prefills = 4}, {}, {}, {}}) > 1.4 * time({}));
}

TEST_CASE("the slowest attention-DP rank sets a decode step, and equal ranks are as an even spread") {
  auto d = deploy("deepseek-v3", "b200-sxm");
  d->sharding.attention_dp = d->sharding.ep = 4;
  StepModel model(d);
  const auto step = [&](std::vector<RankLoad> ranks) {
    StepBatch batch{.decodes = 0, .decode_context = 0, .ranks = ranks};
    for (const RankLoad& rank : ranks) batch.decodes += rank.decodes, batch.decode_context += rank.decode_context;
    CHECK(model.decode_run(batch, 1).time.base() == doctest::Approx(model.time(batch).base()).epsilon(1e-12));
    return model.time(batch);
  };
  const RankLoad each{.decodes = 64, .decode_context = 64 * 2000.0},
      longer{.decodes = 64, .decode_context = 64 * 8000.0};
  CHECK(step({each, each, each, each}) == model.time(decodes(4 * 64, 2000)));
  // One rank with longer contexts is as slow as four of them; one with no sequences does not help the others.
  CHECK(step({each, longer, each, each}) == model.time(decodes(4 * 64, 8000)));
  CHECK(step({each, each, each, each}) >= step({each, each, each, {}}));
  CHECK(step({each, each, each, {}}) > model.time(decodes(3 * 16, 2000)));
}

TEST_CASE("the rank with the largest caches stays the slowest until one with more sequences has caught up") {
  // 900 tokens behind, and 9 more a step: after 100 steps.
  const std::vector<RankLoad> ranks{{.decodes = 1, .decode_context = 1000}, {.decodes = 10, .decode_context = 100}};
  CHECK(fullest_cache(ranks) == 0);
  CHECK(steps_to_other_rank(ranks, 1, 100000) == 100);
  CHECK(steps_to_other_rank(ranks, 3, 100000) == 34);  // 27 a step
  CHECK(steps_to_other_rank(ranks, 1, 7) == 7);
  CHECK(steps_to_other_rank({}, 1, 7) == 7);
}

TEST_CASE("prompts on one rank: the others launch their decodes, too, as they do in the engines") {
  auto d = deploy("deepseek-v3", "b200-sxm");
  d->sharding.attention_dp = d->sharding.ep = 2;
  d->engine.graphs.prefill_tokens = 0;
  d->engine.host.launch_time = Seconds(1e-3);
  const std::vector<PrefillChunk> prompt(1, {.tokens = 100});
  const std::vector<RankLoad> ranks{{.prefills = 1}, {.decodes = 8, .decode_context = 8 * 500.0}};
  StepModel model(d);
  const StepCost cost = model.cost({.decodes = 8, .decode_context = 8 * 500.0, .prefills = prompt, .ranks = ranks});
  CHECK(cost.launched > Seconds(0));
  CHECK(cost.time >= cost.launched);
  CHECK(model.cost(decodes(16, 500)).launched == Seconds(0));
}

TEST_CASE("steps_within counts the steps that begin before the budget is spent") {
  StepModel model(deploy("llama-3.1-8b", "h100-sxm"));
  const StepBatch batch = decodes(16, 1024);
  for (const double budget_ms : {0.0, 0.001, 5.0, 50.0, 500.0}) {
    const std::int64_t n = model.steps_within(batch, Seconds(budget_ms * 1e-3), 10000);
    CHECK(n >= 1);
    if (n > 1) CHECK(model.decode_run(batch, n - 1).time < Seconds(budget_ms * 1e-3));
    if (budget_ms > 0) CHECK(model.decode_run(batch, n).time >= Seconds(budget_ms * 1e-3));
  }
  CHECK(model.steps_within(batch, Seconds(1e6), 17) == 17);
}

TEST_CASE("steps_within is exact where the budget ends with a step, across the segments of a long run") {
  StepModel model(deploy("llama-3.1-8b", "h100-sxm"));
  constexpr double kForever = 1e9;
  for (const double context : {1.0, 60.0, 1000.0, 30000.0}) {
    const StepBatch batch = decodes(64, context);
    for (const std::int64_t steps : {1, 2, 3, 7, 64, 65, 1000, 20000}) {
      CAPTURE(context);
      CAPTURE(steps);
      // The next step begins when this one ends: not within a budget that is over then, but within a longer one.
      const double end = model.decode_run(batch, steps).time.base();
      CHECK(model.steps_within(batch, Seconds(end), 100000) == steps);
      CHECK(model.steps_within(batch, Seconds(std::nextafter(end, kForever)), 100000) == steps + 1);
      CHECK(model.steps_within(batch, Seconds(std::nextafter(end, kForever)), steps) == steps);
    }
  }
}

TEST_CASE("a mixed step shares its GEMMs") {
  // A step of a chunk and decodes costs less than the two apart, and no less than the larger of them.
  StepModel model(deploy("llama-3.1-70b", "h100-sxm", 4));
  const std::vector<PrefillChunk> chunk{{512, 0, true}};
  const Seconds mixed = model.time({.decodes = 64, .decode_context = 64 * 1024.0, .prefills = chunk});
  const Seconds prefill = model.time({.decodes = 0, .decode_context = 0, .prefills = chunk});
  const Seconds decode = model.time(decodes(64, 1024));
  CHECK(mixed < prefill + decode);
  CHECK(mixed >= prefill);
  CHECK(mixed >= decode);
}

TEST_CASE("more bandwidth or compute never slows a step") {
  auto d = deploy("qwen3-30b-a3b", "h100-sxm");
  auto faster = std::make_shared<Deployment>(*d);
  faster->gpu.memory_bandwidth = faster->gpu.memory_bandwidth * 1.5;
  auto stronger = std::make_shared<Deployment>(*d);
  for (FlopsPerSecond& peak : stronger->gpu.dense) peak = peak * 1.5;
  StepModel base(d), more_bandwidth(faster), more_compute(stronger);
  for (const int sequences : {1, 3, 16, 100, 500}) {
    for (const double context : {10.0, 700.0, 5000.0, 60000.0}) {
      const Seconds time = base.time(decodes(sequences, context));
      CHECK(more_bandwidth.time(decodes(sequences, context)) <= time);
      CHECK(more_compute.time(decodes(sequences, context)) <= time);
    }
  }
}

TEST_CASE("a breakdown adds up to the step") {
  StepModel model(deploy("llama-3.1-8b", "h100-sxm", 2));
  const std::vector<PrefillChunk> chunks{{300, 0, true}, {200, 1000, false}};
  for (const StepBatch& batch :
       {decodes(32, 1024), StepBatch{.decodes = 8, .decode_context = 8000, .prefills = chunks}}) {
    const StepBreakdown breakdown = model.breakdown(batch);
    CHECK(breakdown.time == model.time(batch));
    CHECK((breakdown.gpu_time + breakdown.host_time).base() == doctest::Approx(breakdown.time.base()).epsilon(1e-12));
    CHECK(breakdown.flops.base() == doctest::Approx(model.cost(batch).flops.base()).epsilon(0.02));
  }
}

TEST_CASE("one GPU has no communication, several have") {
  const auto network_lines = [](int tp) {
    StepModel model(deploy("llama-3.1-8b", "h100-sxm", tp));
    double count = 0;
    for (const OperatorTime& op : model.breakdown(decodes(4, 100)).operators)
      count += op.family == OperatorFamily::kCollective ? op.count : 0;
    return count;
  };
  CHECK(network_lines(1) == 0);
  CHECK(network_lines(2) >= 65);  // two a layer, one for the embedding
}

TEST_CASE("decode segments tile the contexts") {
  for (double context = 0; context < 300000; context += 37) {
    const DecodeSegment s = decode_segment(context);
    CHECK(s.low <= context);
    CHECK(context < s.high);
    CHECK(decode_segment(s.low).index == s.index);
    CHECK(decode_segment(s.high).index == s.index + 1);
  }
}

TEST_CASE("decode beside prefill takes a tile of 64 rows a head under FlashAttention-2") {
  const auto beside = [](const std::shared_ptr<Deployment>& d, double context_each) {
    StepBatch batch = decodes(128, context_each);
    const std::vector<PrefillChunk> chunk{{512, 0, true}};
    batch.prefills = chunk;
    StepModel model(d);
    return model.cost(batch).time.base();
  };
  // 2 x 64 rows x 32 heads x (128 + 128) x 32 layers x 128 sequences x 1024 tokens more = 4.4 TFLOP at 0.45 x 312
  // TFLOP/s
  const auto a100 = deploy("llama-3.1-8b", "a100-sxm");
  CHECK(beside(a100, 3072) - beside(a100, 2048) == doctest::Approx(31.3e-3).epsilon(0.01));
  // Half the heads, half the tiles; none where another kernel runs.
  const auto two = deploy("llama-3.1-8b", "a100-sxm", 2);
  CHECK(beside(two, 3072) - beside(two, 2048) == doctest::Approx(15.7e-3).epsilon(0.01));
  for (const char* gpu : {"h100-sxm", "b200-sxm"}) {
    const auto d = deploy("llama-3.1-8b", gpu);
    StepModel model(d);
    const double more = model.cost(decodes(128, 3072)).time.base() - model.cost(decodes(128, 2048)).time.base();
    CHECK(beside(d, 3072) - beside(d, 2048) == doctest::Approx(more));
  }
  // A breakdown has it, too; caches of 8 bits are FlashInfer's.
  StepBatch batch = decodes(128, 3072);
  const std::vector<PrefillChunk> chunk{{512, 0, true}};
  batch.prefills = chunk;
  StepModel model(a100);
  const StepBreakdown breakdown = model.breakdown(batch);
  CHECK((breakdown.gpu_time + breakdown.host_time).base() == doctest::Approx(breakdown.time.base()).epsilon(1e-9));
  CHECK(breakdown.gpu_time.base() == doctest::Approx(breakdown.time.base()).epsilon(0.1));
  a100->precision.kv_cache = Dtype::kFp8;
  CHECK(beside(a100, 3072) - beside(a100, 2048) < 20e-3);
}

TEST_CASE("chunks of a prompt follow each other through pipeline stages, the last one goes all the way") {
  auto d = deploy("llama-3.1-8b", "h100-sxm");
  d->sharding.pp = 4;
  const std::array<PrefillChunk, 1> first{{{.tokens = 8192, .last = false}}}, last{{{.tokens = 8192}}};
  const auto tokens = [&](std::span<const PrefillChunk> chunks) {
    return rank_batch({.prefills = chunks}, d->sharding).tokens;
  };
  CHECK(tokens(first) == 2048);
  CHECK(tokens(last) == 8192);
  StepModel model(d);
  CHECK(model.time({.prefills = first}).base() < 0.4 * model.time({.prefills = last}).base());
}

TEST_CASE("whole prompts follow each other through pipeline stages as chunks of one prompt do") {
  auto d = deploy("llama-3.1-8b", "h100-sxm");
  d->sharding.pp = 4;
  const std::array<PrefillChunk, 1> prompt{{{.tokens = 8192}}}, chunk{{{.tokens = 8192, .last = false}}};
  CHECK(rank_batch({.prefills = prompt, .followed = true}, d->sharding).tokens == 2048);
  StepModel model(d);
  const Seconds followed = model.time({.prefills = prompt, .followed = true});
  CHECK(followed.base() == doctest::Approx(model.time({.prefills = chunk}).base()).epsilon(0.01));
  // The last step waits for the longer one of another prompt in front: 100 / 4, and three stages behind 8192 / 4 each.
  const std::array<PrefillChunk, 1> after{{{.tokens = 100, .ahead = 8192}}};
  CHECK(rank_batch({.prefills = after}, d->sharding).tokens == 25 + 6144);
}

TEST_CASE("prompts of different ranks are no micro-batches of each other") {
  const Sharding sharding{.pp = 4, .attention_dp = 8, .ep = 8};
  const std::array<PrefillChunk, 2> prompts{{{.tokens = 1000}, {.tokens = 1000}}};
  const StepBatch apart{.prefills = prompts};
  CHECK(micro_batches(apart, sharding) == 1);
  CHECK(rank_batch(apart, sharding).tokens == 1000);  // as one prompt alone
  std::array<RankLoad, 8> loads{};
  loads[3].prefills = 2;
  const StepBatch together{.prefills = prompts, .ranks = loads};
  CHECK(micro_batches(together, sharding) == 2);
  CHECK(rank_batch(together, sharding).tokens == 1000);  // 2000 in two micro-batches
}

TEST_CASE("a short last chunk leaves a pipeline no sooner than the chunk in front of it") {
  auto d = deploy("llama-3.1-8b", "h100-sxm");
  d->sharding.pp = 4;
  const auto tokens = [&](const PrefillChunk& chunk, int decodes) {
    return rank_batch({.decodes = decodes, .prefills = {&chunk, 1}}, d->sharding).tokens;
  };
  CHECK(tokens({.tokens = 8, .ahead = 8192}, 0) == 2 + 6144);  // 8 / 4, and three stages behind 8192 / 4 each
  CHECK(tokens({.tokens = 8192, .ahead = 8192}, 0) == 8192);
  CHECK(tokens({.tokens = 8, .ahead = 8192}, 100) == 25 + 2);  // other micro-batches fill the stages
  StepModel model(d);
  const auto prompt = [&](int rest) {  // 8192 tokens, then the rest
    const std::array<PrefillChunk, 1> front{{{.tokens = 8192, .last = rest == 0}}};
    const std::array<PrefillChunk, 1> behind{{{.tokens = rest, .context_before = 8192, .ahead = 8192}}};
    const Seconds began = model.time({.prefills = front});
    return rest == 0 ? began : began + model.time({.prefills = behind});
  };
  CHECK(prompt(8) > 0.99 * prompt(0));
  CHECK(prompt(1000) > prompt(8));
  CHECK(prompt(8192) > prompt(1000));
}
