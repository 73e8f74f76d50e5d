#include "sim/model/sharding.h"

#include "models.h"
#include "sim/model/weights.h"

using namespace roofcast;

namespace {
std::string refusal(const std::string& name, const Sharding& sharding) {
  try {
    check_sharding(shipped(name), sharding, SourceLocation{.path = "scenario.yaml", .line = 3, .column = 14});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}
}  // namespace

TEST_CASE("splits that divide are accepted") {
  CHECK(refusal("llama-3.1-70b", {.tp = 8, .pp = 2}) == "");
  CHECK(refusal("llama-3.1-70b", {.tp = 16}) == "");  // key-value heads are copied
  CHECK(refusal("deepseek-v3", {.attention_dp = 8, .ep = 8}) == "");
  CHECK(refusal("deepseek-v3", {.tp = 8, .ep = 8}) == "");
  CHECK(refusal("mamba-2.8b", {.tp = 4}) == "");
}

TEST_CASE("splits that do not divide are refused with their location") {
  CHECK(refusal("llama-3.1-8b", {.tp = 3}) ==
        "scenario.yaml:3:14: tp 3 neither divides nor is a multiple of the 8 key-value heads of llama-3.1-8b");
  CHECK(refusal("llama-3.1-8b", {.tp = 64}) ==
        "scenario.yaml:3:14: tp 64 does not divide the 32 heads of llama-3.1-8b");
  CHECK(refusal("llama-3.1-8b", {.pp = 33}) == "scenario.yaml:3:14: pp 33 is more than the 32 layers of llama-3.1-8b");
  CHECK(refusal("llama-3.1-8b", {.tp = 2, .ep = 2}) == "scenario.yaml:3:14: ep 2: llama-3.1-8b has no experts");
  CHECK(refusal("llama-3.1-8b", {.attention_dp = 2}) ==
        "scenario.yaml:3:14: attention_dp 2: llama-3.1-8b has no experts to share; use replicas");
  CHECK(refusal("mixtral-8x7b", {.tp = 4, .ep = 3}) ==
        "scenario.yaml:3:14: ep 3 does not divide tp x attention_dp = 4");
  CHECK(
      refusal("mixtral-8x7b", {.attention_dp = 16, .ep = 16}) ==
      "scenario.yaml:3:14: ep 16 does not divide the 8 experts of mixtral-8x7b; with routing.redundant_experts 8 each "
      "GPU holds 1");
  CHECK(refusal("mixtral-8x7b", {.tp = 0}) != "");
}

TEST_CASE("a sequence's cache is shared by GPUs that would keep the same tokens") {
  CHECK(refusal("deepseek-v3", {.tp = 8, .dcp = 8}) == "");     // the latent is on every one of them
  CHECK(refusal("llama-3.1-70b", {.tp = 16, .dcp = 2}) == "");  // 8 key-value heads, twice each
  CHECK(refusal("deepseek-v3", {.tp = 8, .dcp = 3}) == "scenario.yaml:3:14: dcp 3 does not divide tp 8");
  CHECK(refusal("llama-3.1-70b", {.tp = 8, .dcp = 2}) ==
        "scenario.yaml:3:14: dcp 2: tp 8 keeps each token of llama-3.1-70b once, so there is nothing to share");
  CHECK(refusal("llama-3.1-70b", {.tp = 16, .dcp = 4}) ==
        "scenario.yaml:3:14: dcp 4 does not divide the 2 copies of each token that tp 16 keeps of llama-3.1-70b");
  CHECK(refusal("falcon-mamba-7b", {.tp = 2, .dcp = 2}) ==
        "scenario.yaml:3:14: dcp 2: falcon-mamba-7b caches no tokens");
  const ModelSpec model = shipped("deepseek-v3");
  const auto bytes = [&](const Sharding& s) {
    return cache_layout(model, model.precision, s).bytes_per_token().base();
  };
  CHECK(bytes({.tp = 8, .dcp = 8}) == doctest::Approx(bytes({.tp = 8}) / 8));
}

TEST_CASE("redundant experts let any number of ranks hold equally many") {
  const auto deepseek = [](int ranks, int copies) {
    return refusal("deepseek-v3", {.attention_dp = ranks, .ep = ranks, .redundant_experts = copies});
  };
  CHECK(deepseek(72, 32) == "");   // 256 + 32 = 4 x 72
  CHECK(deepseek(144, 32) == "");  // 2 x 144
  CHECK(deepseek(8, 32) == "");
  CHECK(
      deepseek(72, 0).ends_with("ep 72 does not divide the 256 experts of deepseek-v3; with routing.redundant_experts "
                                "32 each GPU holds 4"));
  CHECK(
      deepseek(72, 8).ends_with("the 256 experts and 8 redundant experts of deepseek-v3; with "
                                "routing.redundant_experts 32 each GPU holds 4"));
  // Each GPU holds four experts of 58 layers in place of 256 / 64 = 4 of an EP64.
  const ModelSpec model = shipped("deepseek-v3");
  const Sharding even{.attention_dp = 64, .ep = 64}, copied{.attention_dp = 72, .ep = 72, .redundant_experts = 32};
  CHECK(weight_bytes(model, model.precision, copied) == weight_bytes(model, model.precision, even));
}

TEST_CASE("layers that do not divide go before the last stage") {
  CHECK(stage_bounds(32, 4) == std::vector<int>{0, 8, 16, 24, 32});
  CHECK(stage_bounds(61, 4) == std::vector<int>{0, 15, 30, 46, 61});
  CHECK(stage_bounds(5, 1) == std::vector<int>{0, 5});
  CHECK(stage_bounds(7, 4) == std::vector<int>{0, 2, 4, 6, 7});
}

TEST_CASE("state mixers: groups that share keys are copied when there are fewer than GPUs") {
  StateMixer mixer;
  mixer.heads = 64;
  mixer.key_heads = 2;
  mixer.key_dim = 128;
  mixer.conv_channels = 64 * 64 + 2 * 2 * 128;
  const StateMixer mine = mixer_of(mixer, {.tp = 4});
  CHECK(mine.heads == 16);
  CHECK(mine.key_heads == 1);
  CHECK(mine.conv_channels == 16 * 64 + 2 * 1 * 128);
}
