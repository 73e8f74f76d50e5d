#include "sim/step/deployment.h"
#include "hw/efficiency.h"
#include "sim/model/operators.h"

#include <array>
#include <cmath>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/config_library.h"
#include "shipped.h"

using namespace roofcast;

namespace {

Deployment llama_8b(const std::string& engine) {
  Deployment d;
  d.engine = parse_engine_spec(ConfigReader(load_named("engines", engine, {}), "an engine"));
  CalibratedGpu loaded = load_gpu(load_named("hardware", "h100-sxm", {}), d.engine.kernels);
  d.gpu = loaded.spec;
  d.model = parse_model(load_named("models", "llama-3.1-8b", {}));
  d.precision = d.model.precision;
  return d;
}

}  // namespace

TEST_CASE("vLLM takes its share of the whole memory, TensorRT-LLM of what is free") {
  Deployment vllm = llama_8b("vllm"), trtllm = llama_8b("trtllm");
  const MemoryPlan a = plan_memory(vllm), b = plan_memory(trtllm);
  const auto used = [](const MemoryPlan& plan, const Deployment& d) {
    return plan.weights + plan.activations + d.engine.reserved_memory;
  };
  CHECK(a.weights.in(kGigabyte) == doctest::Approx(16.06).epsilon(0.001));  // 8.030 B x 2 B
  CHECK(a.cache.base() == doctest::Approx((85.0e9 * 0.92 - used(a, vllm).base())).epsilon(1e-9));
  CHECK(b.cache.base() == doctest::Approx(((85.0e9 - used(b, trtllm).base()) * 0.9)).epsilon(1e-9));
}

TEST_CASE("TensorRT-LLM holds latent attention's up-projections again and the embedding on every rank") {
  Deployment d = llama_8b("trtllm");
  d.model = parse_model(load_named("models", "deepseek-r1", {}));
  d.precision = d.model.precision;
  d.sharding.tp = 4;
  const auto copied = [&](const std::string& gpu) {
    const CalibratedGpu loaded = load_gpu(load_named("hardware", gpu, {}), d.engine.kernels);
    d.gpu = loaded.spec, d.efficiency = std::make_shared<const Efficiency>(loaded.efficiency);
    return (plan_memory(d).weights - weight_bytes(d.model, d.precision, d.sharding)).base();
  };
  // Embedding: 129 280 x 7 168 x 2 B, of which a rank's share is a quarter: 1 390 018 560 B.
  // Keys: 61 layers x 32 heads x 512 x 128 = 127 926 272, a byte and a scale of 4 for each 128 x 128.
  const double embedding = 0.75 * 129280.0 * 7168 * 2, keys = 61.0 * 32 * 512 * 128;
  CHECK(copied("h200-sxm") == doctest::Approx(embedding + keys * (1 + 4.0 / 16384)).epsilon(1e-6));
  // Blackwell: keys and values in 16 bit too.
  CHECK(copied("b200-sxm") == doctest::Approx(embedding + keys * (1 + 4.0 / 16384) + 2 * keys * 2).epsilon(1e-6));
  d.engine.kernels = "vllm";
  CHECK(copied("b200-sxm") == 0);
}

TEST_CASE("an engine that sorts all logits for top-p keeps room for as many requests as it takes") {
  Deployment d = llama_8b("vllm");
  const Bytes selected = d.activations(8192, 1024, 8192);
  d.engine.sorts_for_top_p = true;
  // 1024 rows of 128 256 logits, 38 B each: 4.99 GB, more than a step of 8 192 tokens needs.
  CHECK(d.activations(8192, 1024, 8192).base() == doctest::Approx(1024.0 * 128256 * 38));
  CHECK(selected < d.activations(8192, 1024, 8192));
  CHECK(d.activations(8192, 8, 8192).base() == doctest::Approx(llama_8b("vllm").activations(8192, 8, 8192).base()));
}

TEST_CASE("buffers of collectives are set aside where a replica has several GPUs") {
  Deployment d = llama_8b("vllm");
  d.engine.collective_memory = Bytes(1e9);
  const MemoryPlan one = plan_memory(d);
  CHECK(one.capacity.base() * 0.92 - (one.weights + one.activations + one.cache).base() ==
        doctest::Approx(d.engine.reserved_memory.base()));
  d.sharding.tp = 2;
  const MemoryPlan two = plan_memory(d);
  CHECK(two.capacity.base() * 0.92 - (two.weights + two.activations + two.cache).base() ==
        doctest::Approx(d.engine.reserved_memory.base() + 1e9));
}

TEST_CASE("SGLang leaves room for metadata, a prefill chunk, graphs and collectives") {
  Deployment d = llama_8b("sglang");
  d.engine.reserved_memory = Bytes(0);
  const auto share = [&] {
    const MemoryPlan plan = plan_memory(d);
    return (plan.cache + plan.weights) / plan.capacity;  // the activations are in the rest
  };
  d.engine.max_num_batched_tokens = 8192;
  // 512 + 1.5 x 8192 + 2 x 256 + 128 = 13440 MiB of 79.18 GiB = 81080 MiB
  d.engine.graphs.max_batch = 256;
  CHECK(share() == doctest::Approx(1.0 - 13440.0 / (1024 * d.gpu.memory_capacity.in(kGibibyte))));
  CHECK(share() == doctest::Approx(0.834).epsilon(0.001));
  const GpuSpec h100 = d.gpu;
  d.engine.max_num_batched_tokens = 2048;  // 512 + 3072 + 512 + 128 = 4224 MiB, but 10 GiB of a large GPU
  CHECK(share() == doctest::Approx(1.0 - 10240.0 / (1024 * d.gpu.memory_capacity.in(kGibibyte))));
  d.gpu.memory_capacity = 24.0 * kGibibyte;
  CHECK(share() == doctest::Approx(1.0 - 4224.0 / (1024 * 24)));
  d.gpu = h100;
  d.engine.max_num_batched_tokens = 8192;
  d.sharding.attention_dp = 2;  // chunks of 2 x 4096; 2 x 3 x 256 + 128 = 1664 MiB more
  d.engine.max_num_batched_tokens = 4096;
  CHECK(share() == doctest::Approx(1.0 - 15104.0 / (1024 * d.gpu.memory_capacity.in(kGibibyte))));
  d.sharding.attention_dp = 1;
  d.engine.max_num_batched_tokens = 8192;
  d.sharding.tp = 8;  // 7 x 128 MiB more
  CHECK(share() == doctest::Approx(1.0 - 14336.0 / (1024 * d.gpu.memory_capacity.in(kGibibyte))));
  d.engine.gpu_memory_utilization = 0.7;
  CHECK(share() == doctest::Approx(0.7));
  d.engine.reserved_memory = Bytes(1e9);  // of what is free before the weights are loaded
  CHECK(share() == doctest::Approx(0.7 * (1 - 1e9 / d.gpu.memory_capacity.base())));
}

TEST_CASE("SGLang sets the states of recurrent layers apart from the KV blocks") {
  Deployment d = llama_8b("sglang");
  d.model = parse_model(load_named("models", "qwen3-next-80b-a3b", {}));
  d.precision = d.model.precision;
  d.sharding.tp = 4;
  d.engine.state_memory_ratio = 0;
  const MemoryPlan together = plan_memory(d);
  CHECK(together.states == Bytes(0));
  CHECK(together.pooled().state_per_sequence > Bytes(0));
  d.engine.state_memory_ratio = 0.9;
  const MemoryPlan apart = plan_memory(d);
  CHECK(apart.states / together.cache == doctest::Approx(0.9 / 1.9));
  CHECK((apart.states + apart.cache) / together.cache == doctest::Approx(1.0));
  CHECK(apart.pooled().state_per_sequence == Bytes(0));
  // Two of three max_sequences are those of cached prefixes.
  CHECK(apart.max_sequences == std::floor(apart.states / apart.layout.state_per_sequence / 3));
  d.memory = apart;
  CHECK(d.max_sequences() == std::min<int>(d.engine.max_num_seqs, static_cast<int>(apart.max_sequences)));
  CHECK(apart.max_batch(1, 1) == apart.max_sequences);
  d.engine.prefix_caching = false;  // a state for each sequence that may run, and no more
  d.engine.max_num_seqs = 64;
  const MemoryPlan plain = plan_memory(d);
  CHECK(plain.max_sequences == 64);
  CHECK(plain.states / plain.layout.state_per_sequence == doctest::Approx(64.0));
}

TEST_CASE("under SGLang attention-DP ranks count into tp and part the default's tokens") {
  Deployment d = llama_8b("sglang");
  d.gpu.memory_capacity = 140 * kGibibyte;
  EngineSpec one = d.engine, eight = d.engine;
  one.settle(d.gpu, {.tp = 1});
  CHECK(one.graphs.max_batch == 256);
  CHECK(one.max_num_batched_tokens == 8192);
  eight.settle(d.gpu, {.tp = 1, .attention_dp = 8});
  CHECK(eight.graphs.max_batch == 512);
  CHECK(eight.max_num_batched_tokens == 1024);
}

TEST_CASE("states that have no room for one sequence do not fit, and activations keep theirs") {
  Deployment d = llama_8b("sglang");
  d.engine.gpu_memory_utilization = 1.0;
  const MemoryPlan whole = plan_memory(d);
  CHECK((whole.weights + whole.activations + whole.cache + d.reserved_memory()).base() <=
        whole.capacity.base() * (1 + 1e-12));
  d.model = parse_model(load_named("models", "nemotron-h-8b", {}));
  d.precision = d.model.precision;
  d.engine.gpu_memory_utilization = 0;
  CHECK_FALSE(plan_memory(d).infeasible);
  d.engine.gpu_memory_utilization = (plan_memory(d).weights / d.gpu.memory_capacity) * 1.01;
  d.engine.state_memory_ratio = 0.001;
  CHECK(plan_memory(d).infeasible);
}

TEST_CASE("an engine takes its launch defaults by the GPU, but not in place of what is given") {
  const auto settled = [](const char* settings, double gib, Architecture architecture, int tp) {
    ConfigTree tree = parse_config_text(
        fmt::format("name: e\nkernels: vllm\n{}\nby_gpu:\n"
                    "  - {{below: 35 GiB, tp_below: 4, max_num_batched_tokens: 2048, graph_batch: 24}}\n"
                    "  - {{below: 70 GiB, architecture: ampere, max_num_seqs: 256, max_num_batched_tokens: 4096}}\n"
                    "  - {{gpu: slow, launch_speed: 0.4}}\n"
                    "  - {{architecture: blackwell, fused_all_reduce: true}}\n"
                    "  - {{max_num_seqs: 1024, max_num_batched_tokens: 8192, graph_batch: 512}}\n",
                    settings),
        "e.yaml");
    EngineSpec e = parse_engine_spec(ConfigReader(tree, "an engine"));
    CHECK(e.max_num_batched_tokens >= 8192);  // as on the largest GPU until it is settled
    GpuSpec gpu;
    gpu.name = gib > 100 ? "slow" : "fast";
    gpu.memory_capacity = gib * kGibibyte;
    gpu.architecture = architecture;
    e.settle(gpu, {.tp = tp});
    CHECK(e.launch_speed == (gib > 100 ? 0.4 : 1.0));
    CHECK(e.fused_all_reduce == (gpu.architecture == Architecture::kBlackwell && settings == std::string()));
    return std::array{e.max_num_seqs, e.max_num_batched_tokens, e.graphs.max_batch};
  };
  CHECK(settled("", 80, Architecture::kHopper, 1) == std::array{1024, 8192, 512});
  CHECK(settled("", 180, Architecture::kBlackwell, 1) == std::array{1024, 8192, 512});
  CHECK(settled("fused_all_reduce: false", 180, Architecture::kBlackwell, 1) == std::array{1024, 8192, 512});
  CHECK(settled("", 80, Architecture::kAmpere, 1) == std::array{256, 4096, 512});
  CHECK(settled("", 48, Architecture::kAda, 1) == std::array{256, 4096, 512});
  CHECK(settled("", 24, Architecture::kAda, 1) == std::array{256, 2048, 24});
  CHECK(settled("", 24, Architecture::kAda, 4) == std::array{256, 4096, 512});
  CHECK(settled("max_num_batched_tokens: 16384\ncuda_graphs: {max_batch: 8}", 24, Architecture::kAda, 1) ==
        std::array{256, 16384, 8});
}

TEST_CASE("which all-reduces norm, too, is the engine's choice by GPU, ranks and size") {
  const auto largest = [](const char* gpu, const char* engine, Sharding sharding, const char* model = "llama-3.1-70b") {
    auto d = shipped::deploy(model, gpu, engine);
    d->sharding = sharding;
    d->engine.settle(d->gpu, sharding);
    return d->operator_context().fused_all_reduce;
  };
  CHECK(largest("b200-sxm", "vllm", {.tp = 2}) == 64.0 * kMebibyte);
  CHECK(largest("b200-sxm", "vllm", {.tp = 4}) == 32.0 * kMebibyte);
  CHECK(largest("b300-sxm", "vllm", {.tp = 8}) == 1.0 * kMebibyte);
  CHECK(largest("h200-sxm", "vllm", {.tp = 2}) == 64.0 * kMebibyte);
  CHECK(largest("h200-sxm", "vllm@0.15", {.tp = 2}) == Bytes(0));    // on by default from 0.16 on
  CHECK(largest("h200-sxm", "vllm", {.tp = 4}) == 2.0 * kMebibyte);  // vllm/config/compilation.py: 64, 2, 1 on Hopper
  CHECK(largest("a100-sxm", "vllm", {.tp = 2}) == Bytes(0));         // on Hopper and Blackwell alone
  CHECK(largest("rtx-5090", "vllm", {.tp = 2}) == Bytes(0));         // no NVLink
  CHECK(largest("b200-sxm", "sglang", {.tp = 2}) == Bytes(0));       // unless it is asked to
  CHECK(largest("h200-sxm", "trtllm", {.tp = 8}) == Bytes(16e6));
  CHECK(largest("h200-sxm", "trtllm", {.tp = 8}, "gpt-oss-120b") == Bytes(16e6));
  CHECK(largest("h200-sxm", "trtllm", {.tp = 8}, "llama-3.1-8b") == Bytes(0));  // hidden 4096
  CHECK(largest("h200-sxm", "trtllm", {.tp = 8}, "qwen3-32b") == Bytes(0));     // norms queries and keys
  CHECK(largest("h200-sxm", "trtllm", {.tp = 8}, "qwen3-235b-a22b") == Bytes(16e6));
  CHECK(largest("h200-sxm", "trtllm-1.0", {.tp = 8}) == Bytes(0));
  CHECK(largest("h200-sxm", "trtllm", {.tp = 16}) == Bytes(0));  // beyond a node
  CHECK(largest("h200-sxm", "trtllm", {.tp = 1}) == Bytes(0));
  CHECK(largest("b200-sxm", "trtllm", {.tp = 2, .attention_dp = 4}) == Bytes(0));
  // a limit of 0 is none
  auto d = shipped::deploy("llama-3.1-70b", "h200-sxm", "trtllm");
  d->sharding.tp = 8;
  auto efficiency = std::make_shared<Efficiency>(*d->efficiency);
  efficiency->put(custom_all_reduce_kernel(), Dtype::kBf16, {.value = {.size_limit_mb = 0.0}, .record = {}});
  d->efficiency = std::move(efficiency);
  CHECK(d->operator_context().fused_all_reduce > Bytes(1e12));
}

TEST_CASE("sequences are rounded up to blocks") {
  const Deployment d = llama_8b("vllm");
  MemoryPlan plan = plan_memory(d);
  plan.cache = Bytes(131072.0 * 160);  // room for 160 tokens
  CHECK(plan.max_batch(16, 16) == 10);
  CHECK(plan.max_batch(17, 16) == 5);
  CHECK(plan.max_batch(17, 1) == 9);
  CHECK(plan.max_context(16) == 160);
  CHECK(plan.max_context(1) == 160);
}

TEST_CASE("what does not fit says how many bytes are missing") {
  Deployment d = llama_8b("vllm");
  d.model = parse_model(load_named("models", "llama-3.1-70b", {}));
  d.precision = d.model.precision;
  const MemoryPlan plan = plan_memory(d);
  REQUIRE(plan.infeasible.has_value());
  CHECK(plan.infeasible->reason.find("weights 141.1 GB") != std::string::npos);
  CHECK(plan.infeasible->reason.find("of 85.0 GB") != std::string::npos);
}

TEST_CASE("what does not fit adds up to more than there is") {
  const auto check = [](const Deployment& d, const std::string& term) {
    const MemoryPlan plan = plan_memory(d);
    REQUIRE(plan.infeasible.has_value());
    const std::string& reason = plan.infeasible->reason;
    CAPTURE(reason);
    CHECK(reason.find(term) != std::string::npos);
    double sum = 0, terms = 0;
    for (std::size_t at = reason.find(": ") + 2; at < reason.find(" = "); at = reason.find(" + ", at) + 3) {
      const std::size_t unit = reason.find(" GB", at);
      terms += std::stod(reason.substr(reason.rfind(' ', unit - 1) + 1));
      if (reason.find(" + ", at) == std::string::npos) break;
    }
    sum = std::stod(reason.substr(reason.find(" = ") + 3));
    CHECK(terms == doctest::Approx(sum).epsilon(0.005));
    CHECK(sum > std::stod(reason.substr(reason.find(", of ") + 5)));
  };
  Deployment d = llama_8b("vllm");
  d.model = parse_model(load_named("models", "llama-3.1-70b", {}));
  d.precision = d.model.precision;
  check(d, "left free by gpu_memory_utilization");
  // A rank of SGLang leaves 4.5 MiB a captured sequence for each of 64 ranks: 64 x 512 x 4.5 MiB = 155 GB of 85.
  Deployment wide = llama_8b("sglang");
  wide.sharding.attention_dp = 64;
  check(wide, "outside its static share of");
}
