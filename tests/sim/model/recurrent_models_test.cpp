// Models with recurrences of other kinds than Mamba's, from the keys of their config.json.
#include <doctest/doctest.h>

#include <algorithm>

#include "sim/model/mixer_model.h"
#include "tests/sim/model/models.h"

using namespace roofcast;

namespace {

int layers_of(const ModelSpec& model, const std::string& name) {
  int count = 0;
  for (const LayerKind& kind : model.layers) count += kind.name.starts_with(name) ? kind.count : 0;
  return count;
}

}  // namespace

TEST_CASE("RecurrentGemma 2B: two RG-LRU layers, then attention to 2048 tokens") {
  // As huggingface.co/google/recurrentgemma-2b has it.
  const ModelSpec model = from_text(
      R"({"_block_types": ["recurrent", "recurrent", "attention"], "architectures": ["RecurrentGemmaForCausalLM"],
          "attention_bias": false, "attention_dropout": 0.0, "attention_window_size": 2048, "conv1d_width": 4,
          "embeddings_scale_by_sqrt_dim": true, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
          "hidden_size": 2560, "intermediate_size": 15360, "logits_soft_cap": 30.0, "lru_width": 2560,
          "model_type": "recurrent_gemma", "num_attention_heads": 10, "num_hidden_layers": 26,
          "num_key_value_heads": 1, "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
          "vocab_size": 256000})");
  CHECK(layers_of(model, "RG-LRU") == 18);
  CHECK(layers_of(model, "attention, window 2048") == 8);
  const ParameterCount count = count_parameters(model);
  CHECK(count.embedding == 655360000);
  // arXiv:2404.07839, table 1: 2.03 B without the embedding
  CHECK((count.total - count.embedding) / 1e9 == doctest::Approx(2.03).epsilon(0.005));
  // A state: 2560 values of fp32, and three of 16 bit in the convolution's window; a token: a key and a value of 256
  const CacheLayout layout = cache_layout(model, model.precision, {});
  CHECK(layout.state_per_sequence.base() == 18 * (2560 * 4 + 3 * 2560 * 2));
  REQUIRE(layout.groups.size() == 1);
  CHECK(layout.groups[0].window == 2048);
  CHECK(layout.groups[0].bytes_per_token.base() == 8 * 2 * 256 * 2);
  CHECK((count_parameters(shipped("recurrentgemma-9b")).total / 1e9) == doctest::Approx(8.58).epsilon(0.005));
  CHECK(count_parameters(shipped("recurrentgemma-2b")).total == count.total);
}

TEST_CASE("RWKV: parameters to the last one, and states that do not grow") {
  // 1,527,404,544: arXiv:2503.14456, table 16, and the files of the release
  const ModelSpec seven = shipped("rwkv7-1.5b");
  CHECK(count_parameters(seven).total == 1527404544);
  // 32 heads of 64 x 64 in fp32, and the last token before both blocks
  CHECK(cache_layout(seven, seven.precision, {}).state_per_sequence.base() == 24 * (32 * 64 * 64 * 4 + 2 * 2048 * 2));
  CHECK(cache_layout(seven, seven.precision, {}).groups.empty());
  // Ranks that the config leaves out are the usual ones.
  const ModelSpec usual = from_text(
      "{model_type: rwkv7, hidden_size: 2048, num_hidden_layers: 24, head_dim: 64, intermediate_size: 8192, "
      "vocab_size: 65536}");
  CHECK(count_parameters(usual).total == 1527404544);
  // 1.60 B: arXiv:2404.05892, table 2
  CHECK(count_parameters(shipped("rwkv6-1.6b")).total / 1e9 == doctest::Approx(1.60).epsilon(0.005));
  CHECK(layers_of(shipped("rwkv6-1.6b"), "RWKV-5/6") == 24);
  // RWKV-4 169M of arXiv:2305.13048, table 1: 12 layers of 768, 50,277 words; 169,342,464 of the Pile's
  const ModelSpec four = from_text(
      "{model_type: rwkv, hidden_size: 768, attention_hidden_size: 768, num_hidden_layers: 12, intermediate_size: "
      "3072, vocab_size: 50277}");
  CHECK(count_parameters(four).total == 169342464);
  CHECK(cache_layout(four, four.precision, {}).state_per_sequence.base() == 12 * (3 * 768 * 4 + 2 * 768 * 2));
}

TEST_CASE("Zamba2: two blocks of attention that nine layers share are stored twice and computed nine times") {
  const ModelSpec model = shipped("zamba2-2.7b");
  CHECK(layers_of(model, "mamba2") == 54);
  CHECK(layers_of(model, "attention") == 9);
  CHECK(count_parameters(model).total / 1e9 == doctest::Approx(2.7).epsilon(0.02));
  const auto shared = std::find_if(model.layers.begin(), model.layers.end(),
                                   [](const LayerKind& kind) { return kind.weight_sets > 0; });
  REQUIRE(shared != model.layers.end());
  // 5120 x 15,360 and 5120 x 2560 of attention, 2560 x 20,480 and 10,240 x 2560 behind it
  const double block = 5120.0 * 15360 + 5120 * 2560 + 2560.0 * 20480 + 10240 * 2560 + 3 * 2560;
  ModelSpec own = model;
  own.layers[static_cast<std::size_t>(shared - model.layers.begin())].weight_sets = 0;
  CHECK(count_parameters(own).total - count_parameters(model).total == 7 * block);
  CHECK(count_parameters(own).active == count_parameters(model).active);
  CHECK((weight_bytes(own, own.precision, {}) - weight_bytes(model, model.precision, {})).base() == 2 * 7 * block);
  // Each stage of a pipeline has both.
  CHECK(weight_bytes(model, model.precision, {.pp = 2}) > 0.5 * weight_bytes(model, model.precision, {}));
  // 32 heads of 160, keys and values, in nine layers; 80 heads of 64 x 64, and 5248 channels of a window of three
  const CacheLayout layout = cache_layout(model, model.precision, {});
  CHECK(layout.bytes_per_token().base() == 9 * 2 * 5120 * 2);
  CHECK(layout.state_per_sequence.base() == 54 * (80 * 64 * 64 * 4 + 3 * 5248 * 2));
  CHECK(message("{model_type: zamba2, hidden_size: 256, num_hidden_layers: 4, num_attention_heads: 8, vocab_size: "
                "100, n_mamba_heads: 8, mamba_headdim: 64}")
            .find("the layers that have a shared block") != std::string::npos);
}

TEST_CASE("every recurrent model computes on one GPU and on several") {
  for (const char* name : {"recurrentgemma-2b", "rwkv6-1.6b", "rwkv7-1.5b", "zamba2-2.7b"}) {
    CAPTURE(name);
    const ModelSpec model = shipped(name);
    double before = 0;
    for (const int tp : {1, 2}) {
      const OperatorContext context = context_of(model, {.tp = tp});
      CHECK_FALSE(token_operators(context, 16).empty());
      CHECK_FALSE(decode_mixing(context, {.batch = 2, .mean_context = 100, .max_context = 100}).empty());
      CHECK_FALSE(prefill_mixing(context, {.batch = 1, .query_len = 100}).empty());
      const double bytes = weight_bytes(model, model.precision, {.tp = tp}).base();
      if (before > 0) CHECK(bytes < 0.7 * before);
      before = bytes;
    }
  }
}

TEST_CASE("S4: a recurrence of N values per channel, the same for every token") {
  // 16 layers of 1024 channels x 64 values. A layer: 1024 x 2048 and 2048 of bias; 4 x 64 + 2 a channel; a block of
  // 2 x 1024 x 4096 + 5120; two norms of 2 x 1024. The embedding, tied, and a norm.
  const std::string s4 =
      "{model_type: s4, hidden_size: 1024, num_hidden_layers: 16, state_size: 64, intermediate_size: 4096, "
      "vocab_size: 50257}";
  const ModelSpec model = from_text(s4);
  CHECK(layers_of(model, "S4") == 16);
  const double layer = 1024 * 2048 + 2048 + 1024 * 258 + 2 * 1024 * 4096 + 5120 + 4 * 1024;
  CHECK(count_parameters(model).total == 16 * layer + 50257 * 1024 + 2 * 1024);
  // The state: 16 x 1024 x 64 values of fp32, whatever the context
  const CacheLayout layout = cache_layout(model, model.precision, {});
  CHECK(layout.state_per_sequence == Bytes(16 * 1024 * 64 * 4));
  CHECK(layout.bytes_per_token() == Bytes(0));
  // S4D has the diagonal and C alone: 2 x 64 less a channel
  std::string diagonal = s4;
  diagonal.replace(diagonal.find("s4"), 2, "s4d");
  CHECK(count_parameters(model).total - count_parameters(from_text(diagonal)).total == 16 * 1024 * 128);
  CHECK_THROWS_WITH_AS(check_sharding(model, {.tp = 2}, {}), doctest::Contains("not split"), ConfigError);
}
