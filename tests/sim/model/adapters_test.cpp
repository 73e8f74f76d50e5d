#include "sim/model/adapters.h"

#include <doctest/doctest.h>

#include "tests/sim/model/models.h"

using namespace roofcast;

namespace {

AdapterSpec spec(const std::string& text, const ModelSpec& model) {
  return parse_adapters(ConfigReader(parse_config_text(text, "adapters.yaml"), "adapters"), model);
}

}  // namespace

TEST_CASE("adapters of every linear layer of Llama 3.1 8B have 41,943,040 weights at rank 16") {
  // A layer: q, k, v 3 x 4096 + 6144, o 4096 + 4096, gate, up 2 x 4096 + 28 672, down 14 336 + 4096: 81 920;
  // x 16 x 32 layers. PEFT's print_trainable_parameters says 41,943,040, too.
  const ModelSpec model = shipped("llama-3.1-8b");
  const AdapterSpec a = spec("{count: 4, rank: 16, slots: 4}", model);
  CHECK(adapter_bytes(model, a, {}, 16).base() == 2.0 * 41943040);
  CHECK(adapter_bytes(model, a, {}, 64).base() == 8.0 * 41943040);
  // On two GPUs A of q, k, v and of gate, up is whole, as is B of o and down:
  // 12 288 + 3072, 2048 + 4096, 8192 + 14 336, 7168 + 4096: 55 296
  CHECK(adapter_bytes(model, a, {.tp = 2}, 16).base() == 2.0 * 16 * 32 * 55296);
  CHECK(adapter_bytes(model, a, {.pp = 2}, 16).base() == 41943040);
  const AdapterSpec part = spec("{count: 4, rank: 16, slots: 4, targets: [qkv_proj]}", model);
  CHECK(adapter_bytes(model, part, {}, 16).base() == 2.0 * 16 * 32 * (12288 + 6144));
}

TEST_CASE("adapters of a model with routed experts apply to its dense products") {
  const ModelSpec model = shipped("qwen3-30b-a3b");
  const AdapterSpec a = spec("{count: 1, rank: 8, slots: 1}", model);
  CHECK(a.targets == std::vector<std::string>{"qkv_proj", "o_proj"});
}

TEST_CASE("adapters of routed experts have an A and a B for each of them") {
  const ModelSpec model = shipped("qwen3-30b-a3b");  // 48 layers, 128 experts of 2048 x 768, 8 a token
  const AdapterSpec a = spec("{count: 2, rank: 8, slots: 2, targets: [experts_gate_up, experts_down]}", model);
  CHECK(a.experts);
  // gate and up 2 x 2048 + 1536, down 768 + 2048: 8448 of each expert
  CHECK(adapter_bytes(model, a, {}, 8).base() == 2.0 * 8 * 48 * 128 * 8448);
  CHECK(adapter_bytes(model, a, {.tp = 4, .ep = 4}, 8).base() == 2.0 * 8 * 48 * 32 * 8448);
  // 64 tokens of one adapter: 512 rows, of 128 (1 - (15/16)^64) = 125.94 experts
  const std::vector<Operator> one = adapter_operators(context_of(model), a, 64, 1);
  REQUIRE(one.size() == 2);
  const auto& shape = std::get<AdapterShape>(one[0].work);
  CHECK(shape.tokens == 512);
  CHECK(shape.adapters == doctest::Approx(125.94).epsilon(1e-4));
  CHECK(shape.slices == 2);
  // A token each of two adapters: eight experts each; on one of four GPUs a quarter of them
  const std::vector<Operator> two = adapter_operators(context_of(model, {.tp = 4, .ep = 4}), a, 2, 2);
  CHECK(std::get<AdapterShape>(two[0].work).adapters == doctest::Approx(4));
  CHECK(std::get<AdapterShape>(two[0].work).tokens == doctest::Approx(4));
}

TEST_CASE("sequences hit fewer adapters than there are sequences") {
  const ModelSpec model = shipped("llama-3.1-8b");
  AdapterSpec a = spec("{count: 4, rank: 16, slots: 4, popularity: {distribution: uniform}}", model);
  // 4 (1 - (3/4)^2) = 1.75
  CHECK(AdapterHits(a).of(2) == doctest::Approx(1.75));
  CHECK(AdapterHits(a).of(1) == doctest::Approx(1.0));
  a.slots = 1;
  CHECK(AdapterHits(a).of(64) == doctest::Approx(1.0));
  CHECK(AdapterHits(a).named(64) == doctest::Approx(4.0).epsilon(1e-6));
  // Zipf of two: 2/3 and 1/3; of two sequences 1 - 1/9 + 1 - 4/9
  a = spec("{count: 2, rank: 16, slots: 2}", model);
  CHECK(AdapterHits(a).of(2) == doctest::Approx(13.0 / 9.0));
  a = spec("{count: 1, rank: 16, slots: 2}", model);
  CHECK(AdapterHits(a).of(100) == doctest::Approx(1.0));
}

TEST_CASE("adapters: invalid settings are refused") {
  const ModelSpec model = shipped("qwen3-30b-a3b");
  const auto refused = [&](const char* text, const char* why) {
    CHECK_THROWS_WITH(spec(text, model), doctest::Contains(why));
  };
  refused("{count: 4, rank: 64, slots: 4, slot_rank: 16}", "a slot of rank 16 has no room for an adapter of rank 64");
  refused("{count: 9, rank: 8, slots: 4, host: 2}", "all 4 slots in host memory");
  refused("{count: 4, rank: 8, slots: 4, targets: [qkv]}", "nearest is 'qkv_proj'");
  refused("{count: 4, rank: 8, slots: 4, targets: [experts]}", "unknown targets 'experts'");
  refused("{count: 0, rank: 8, slots: 4}", "count");
  refused("{count: 4, rank: 8}", "slots");
  refused("{count: 4, rank: 8, slots: 4, disk_bandwidth: 0 GB/s}", "must not be zero");
}
