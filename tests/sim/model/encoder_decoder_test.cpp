// Encoder-decoders: T5, BART, Whisper.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "sim/model/encoder.h"
#include "tests/sim/model/models.h"

using namespace roofcast;

namespace {

const Operator& named(const std::vector<Operator>& list, const std::string& name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const Operator& op) { return op.name == name; });
  REQUIRE_MESSAGE(found != list.end(), name);
  return *found;
}

std::string refused(const std::string& config) {
  try {
    from_text(config);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("encoder-decoders have the parameters of their checkpoints, to the last one") {
  const auto count = [](const char* name) { return count_parameters(shipped(name)).total; };
  // encoder 24 (4 x 1024 x 16384 + 2 x 1024 x 65536), decoder 24 (8 x 1024 x 16384 + 2 x 1024 x 65536), 32128 x 1024 of
  // words, (2 x 24 + 3 x 24 + 2) x 1024 of norms, 2 x 32 x 128 of biases on the scores
  CHECK(count("t5-11b") == 11307321344);
  CHECK(count("flan-t5-xxl") == 11135332352);
  CHECK(count("whisper-large-v3") == 1543490560);
  CHECK(count("whisper-large-v3-turbo") == 808878080);
  CHECK(count("bart-large-cnn") == 406290432);
  CHECK(count("nllb-200-3.3b") == 3344863232);
}

TEST_CASE("configs of other encoder-decoders") {
  const auto count = [](const std::string& config) { return count_parameters(from_text(config)).total; };
  const auto stacks = [](const std::string& layers, const std::string& heads, const std::string& inter) {
    return R"("encoder_layers": )" + layers + R"(, "decoder_layers": )" + layers + R"(, "encoder_attention_heads": )" +
           heads + R"(, "decoder_attention_heads": )" + heads + R"(, "encoder_ffn_dim": )" + inter +
           R"(, "decoder_ffn_dim": )" + inter + ", ";
  };
  // Helsinki-NLP/opus-mt-en-de: 12 layers of 3,152,384 and 1,051,648 more in the decoder's, 58101 words and 2 x 512
  // positions of 512
  CHECK(count(R"({"model_type": "marian", "is_encoder_decoder": true, "d_model": 512, "vocab_size": 58101,
                  "max_position_embeddings": 512, )" +
              stacks("6", "8", "2048") + R"("architectures": ["MarianMTModel"]})") == 74410496);
  // google/pegasus-large
  CHECK(count(R"({"model_type": "pegasus", "is_encoder_decoder": true, "d_model": 1024, "vocab_size": 96103,
                  "max_position_embeddings": 1024, )" +
              stacks("16", "16", "4096") + R"("architectures": ["PegasusForConditionalGeneration"]})") == 570797056);
  CHECK(refused(R"({"model_type": "prophetnet", "is_encoder_decoder": true, "hidden_size": 1024})")
            .find("'prophetnet' is an encoder-decoder whose layers are not known") != std::string::npos);
  CHECK(refused(R"({"model_type": "t5", "d_model": 768, "vocab_size": 10})").find("num_heads") != std::string::npos);
}

TEST_CASE("a decoder's cache holds the input once and the answer as it grows") {
  // Whisper large: 32 layers x 2 x 1280 x 2 B; 1500 positions of 30 s take 245.76 MB
  const ModelSpec whisper = shipped("whisper-large-v3");
  const CacheLayout layout = cache_layout(whisper, whisper.precision, {});
  CHECK(layout.bytes_per_token() == Bytes(163840));
  CHECK(whisper.encoded_tokens == 1500);
  CHECK(layout.sequence_bytes(1500) == Bytes(245.76e6));
  // T5-11B: 24 layers x 2 x 128 heads x 128 x 2 B
  const ModelSpec t5 = shipped("t5-11b");
  CHECK(cache_layout(t5, t5.precision, {}).bytes_per_token() == Bytes(1572864));
  CHECK(cache_layout(*t5.encoder, t5.precision, {}).bytes_per_token() == Bytes(0));
}

TEST_CASE("weights of both stacks are on the GPU") {
  const ModelSpec t5 = shipped("t5-11b");
  CHECK(weight_bytes(t5, t5.precision, {}) == Bytes(2 * 11307321344.0));
  // tp 8: every matrix an eighth; norms, and here the biases on the scores, whole: (122 x 1024 + 8192) x 2 x 7 / 8
  const Sharding eight{.tp = 8};
  const double whole = 2 * 122 * 1024 + 2 * 8192.0;
  CHECK(weight_bytes(t5, t5.precision, eight).base() ==
        doctest::Approx((2 * 11307321344.0 - whole) / 8 + whole).epsilon(1e-12));
  CHECK_THROWS_WITH_AS(check_sharding(t5, {.pp = 2}, {}), doctest::Contains("encoder-decoder"), ConfigError);
}

TEST_CASE("an output token passes the decoder and attends to the encoder's output") {
  const ModelSpec t5 = shipped("t5-11b");
  const OperatorContext context = context_of(t5);
  const std::vector<Operator> tokens = token_operators(context, 1);
  for (const char* name : {"qkv_proj", "o_proj", "cross_q_proj", "cross_o_proj"})
    CHECK(named(tokens, name).count == 24);
  CHECK(std::none_of(tokens.begin(), tokens.end(), [](const Operator& op) { return op.name == "cross_kv_proj"; }));
  // 512 tokens of input: keys and values of 24 layers, 1024 -> 2 x 16384
  const std::vector<Operator> encoded = encoded_operators(context, 512);
  REQUIRE(encoded.size() == 1);
  CHECK(encoded[0].count == 24);
  const auto& product = std::get<GemmShape>(encoded[0].work);
  CHECK(product.m == 512);
  CHECK(product.k == 1024);
  CHECK(product.n == 2 * 16384);
}

TEST_CASE("both attentions of a layer together see the input, the token that begins and the answer") {
  const ModelSpec t5 = shipped("t5-11b");
  const std::vector<Operator> decode =
      decode_mixing(context_of(t5), {.batch = 4, .mean_context = 599, .max_context = 599, .query_len = 1});
  REQUIRE(decode.size() == 1);
  CHECK(decode[0].count == 48);
  CHECK(std::get<DecodeWork>(decode[0].work).shape.mean_context * 2 == 600);
  // Four tokens that Whisper's answer begins with, after 1500: 4 x 5 / 2 pairs of their own and 4 x 1500
  const ModelSpec whisper = shipped("whisper-large-v3");
  const std::vector<Operator> begins =
      prefill_mixing(context_of(whisper), {.batch = 1, .query_len = 4, .context_before = 1500});
  const auto pairs = [&](const char* name) {
    const PrefillShape& s = std::get<PrefillWork>(named(begins, name).work).shape;
    return s.query_len * (s.context_before + (s.query_len + 1) / 2);
  };
  CHECK(pairs("attention") == 10);
  CHECK(pairs("cross_attention") == 6000);
}

TEST_CASE("Whisper's encoder by hand") {
  const ModelSpec whisper = shipped("whisper-large-v3");
  REQUIRE(whisper.encoders.sounds.has_value());
  const EncoderWork window = sound_work(*whisper.encoders.sounds, 1, Seconds(7));  // padded to 30 s
  CHECK(window.patches == 1500);
  CHECK(window.tokens == 1500);
  double flops = 0;
  for (const Operator& op : encoder_operators(context_of(whisper), *whisper.encoders.sounds, window)) {
    if (const auto* product = std::get_if<GemmShape>(&op.work))
      flops += op.count * 2 * product->m * product->k * product->n;
  }
  // Convolutions: 3000 x 384 x 1280 and 1500 x 3840 x 1280; 32 layers of 1500 x (4 x 1280^2 + 2 x 1280 x 5120)
  CHECK(flops ==
        2.0 * (3000.0 * 384 * 1280 + 1500.0 * 3840 * 1280 + 32.0 * 1500 * (4.0 * 1280 * 1280 + 2.0 * 1280 * 5120)));
}

TEST_CASE("each stack of an encoder-decoder has positions of its own") {
  const ModelSpec bart = shipped("bart-large-cnn");  // 1024 of each
  CHECK(beyond_positions(bart, 1024, 1024).empty());
  CHECK(beyond_positions(bart, 1025, 1) ==
        "prompts of 1025 tokens, but the encoder of bart-large-cnn has 1024 positions");
  CHECK(beyond_positions(bart, 100, 1025) ==
        "outputs of 1025 tokens, but the decoder of bart-large-cnn has 1024 positions");
  const ModelSpec whisper = shipped("whisper-large-v3");  // 448, of the prompt's text and the output together
  CHECK(beyond_positions(whisper, 1504, 444).empty());
  CHECK(beyond_positions(whisper, 1504, 445) ==
        "prompts and outputs of 449 tokens, but the decoder of whisper-large-v3 has 448 positions");
  CHECK(beyond_positions(shipped("t5-11b"), 1e6, 1e6).empty());
}
