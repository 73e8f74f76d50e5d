#include "sim/step/deployment.h"

#include <doctest/doctest.h>

#include "base/config_library.h"

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
  CHECK(a.cache.base() == doctest::Approx((85.0e9 * 0.9 - used(a, vllm).base())).epsilon(1e-9));
  CHECK(b.cache.base() == doctest::Approx(((85.0e9 - used(b, trtllm).base()) * 0.9)).epsilon(1e-9));
}

TEST_CASE("buffers of collectives are set aside where a replica has several GPUs") {
  Deployment d = llama_8b("vllm");
  d.engine.collective_memory = Bytes(1e9);
  const MemoryPlan one = plan_memory(d);
  CHECK(one.capacity.base() * 0.9 - (one.weights + one.activations + one.cache).base() ==
        doctest::Approx(d.engine.reserved_memory.base()));
  d.sharding.tp = 2;
  const MemoryPlan two = plan_memory(d);
  CHECK(two.capacity.base() * 0.9 - (two.weights + two.activations + two.cache).base() ==
        doctest::Approx(d.engine.reserved_memory.base() + 1e9));
}

TEST_CASE("SGLang leaves room for metadata, a prefill chunk, graphs and collectives") {
  Deployment d = llama_8b("sglang");
  d.engine.reserved_memory = Bytes(0);
  const auto share = [&] {
    const MemoryPlan plan = plan_memory(d);
    return (plan.cache + plan.weights + plan.activations) / plan.capacity;
  };
  // 512 + 1.5 x 8192 + 2 x 256 + 128 = 13440 MiB of 79.18 GiB = 81080 MiB
  d.engine.graphs.max_batch = 256;
  CHECK(share() == doctest::Approx(1.0 - 13440.0 / (1024 * d.gpu.memory_capacity.in(kGibibyte))));
  CHECK(share() == doctest::Approx(0.834).epsilon(0.001));
  const GpuSpec h100 = d.gpu;
  d.gpu.memory_capacity = 24.0 * kGibibyte;  // chunks of 2048 tokens: 512 + 3072 + 512 + 128 = 4224 MiB
  CHECK(share() == doctest::Approx(1.0 - 4224.0 / (1024 * 24)));
  d.gpu = h100;
  d.sharding.tp = 8;  // 7 x 128 MiB more
  CHECK(share() == doctest::Approx(1.0 - 14336.0 / (1024 * d.gpu.memory_capacity.in(kGibibyte))));
  d.engine.gpu_memory_utilization = 0.7;
  CHECK(share() == doctest::Approx(0.7));
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
