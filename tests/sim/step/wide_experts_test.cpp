// What more ranks of experts, a newer GPU and a wider domain of NVLink can only make faster.
#include <array>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/step/step_model.h"
#include "tests/sim/step/shipped.h"

using namespace roofcast;

namespace {

constexpr double kContext = 2050;

std::shared_ptr<Deployment> wide(const std::string& gpu, const std::string& engine, int ranks) {
  auto d = shipped::deploy("deepseek-v3", gpu, engine);
  d->sharding = {.attention_dp = ranks, .ep = ranks};
  d->engine.expert_exchange = ExpertExchange::kAllToAll;
  d->engine.graphs.max_batch = 1 << 16;
  d->engine.gpu_memory_utilization = 0.9;
  d->routing.kind = Routing::Kind::kBalanced;  // as EPLB makes it
  d->memory = plan_memory(*d);
  return d;
}

Seconds step(const std::shared_ptr<Deployment>& d, int each) {
  const int all = each * d->sharding.attention_dp;
  return StepModel(d).time({.decodes = all, .decode_context = all * kContext});
}

}  // namespace

TEST_CASE("wide experts: at the same sequences a GPU more ranks of a rack are never slower") {
  for (const char* gpu : {"gb200", "gb300"})
    for (const char* engine : {"vllm", "sglang", "trtllm"})
      for (const int each : {32, 128, 512}) {
        Seconds before(1e9);
        for (const int ranks : {8, 16, 32, 64}) {
          const Seconds now = step(wide(gpu, engine, ranks), each);
          CAPTURE(fmt::format("{} under {}, {} ranks, {} each", gpu, engine, ranks, each));
          CHECK(now <= before * 1.01);  // fewer of a token's experts share a rank, so that it is sent more often
          before = now;
        }
      }
}

TEST_CASE("wide experts: with all memory in use a GPU of a rack gives more from 8 to 64 ranks") {
  for (const char* gpu : {"gb200", "gb300"}) {
    double before = 0;
    for (const int ranks : {8, 16, 32, 64}) {
      const auto d = wide(gpu, "sglang", ranks);
      const int each = static_cast<int>(d->memory.max_batch(kContext, 64));
      REQUIRE(each > 0);
      const double rate = each / step(d, each).base();
      CAPTURE(fmt::format("{}: {} ranks, {} sequences each, {:.0f} tokens/s per GPU", gpu, ranks, each, rate));
      CHECK(rate >= before);
      before = rate;
    }
  }
}

TEST_CASE("wide experts: a rack is never slower than nodes over a network, nor a newer GPU than the one before") {
  for (const char* engine : {"vllm", "sglang", "trtllm"})
    for (const int ranks : {16, 32, 64})
      for (const int each : {32, 128, 512}) {
        CAPTURE(fmt::format("{}, {} ranks, {} each", engine, ranks, each));
        CHECK(step(wide("gb200", engine, ranks), each) <= step(wide("b200-sxm", engine, ranks), each));
        CHECK(step(wide("gb300", engine, ranks), each) <= step(wide("b300-sxm", engine, ranks), each));
      }
}

TEST_CASE("wide experts: with redundant experts more ranks of a rack are never slower") {
  Seconds before(1e9);
  for (const int ranks : {8, 16, 32, 72}) {
    const auto d = wide("gb200", "sglang", ranks);
    d->routing = {};
    d->sharding.redundant_experts = 32;
    const Seconds now = step(d, 128);
    CAPTURE(ranks);
    CHECK(now <= before);
    before = now;
  }
}

TEST_CASE("wide experts: a wider way to the spine and a larger leaf are never slower") {
  const auto on = [](int leaf, double narrower) {
    const auto d = wide("h200-sxm", "sglang", 64);
    d->gpu.node.leaf_gpus = leaf;
    d->gpu.node.oversubscription = narrower;
    return step(d, 128);
  };
  const Seconds flat = on(0, 1.0);
  CHECK(on(16, 1.0) == flat);
  CHECK(on(64, 4.0) == flat);  // all below one leaf
  Seconds before = flat;
  for (const double narrower : {1.5, 2.0, 4.0, 8.0}) {
    CHECK(on(32, narrower) >= before);
    CHECK(on(16, narrower) >= on(32, narrower));
    before = on(32, narrower);
  }
  CHECK(before > flat);
}
