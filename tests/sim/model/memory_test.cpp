#include "sim/model/memory.h"

#include "models.h"
#include "sim/model/recipes.h"

using namespace roofcast;

namespace {
Bytes cache_of(const ModelSpec& model, double tokens, const Sharding& sharding = {}) {
  return cache_layout(model, model.precision, sharding).sequence_bytes(tokens);
}
}  // namespace

TEST_CASE("KV cache of well-known models") {
  // Llama-2-70B: 80 layers * 2 * 8 heads * 128 * 2 B = 327 680 B a token; * 4096 = 1 342 177 280 B
  CHECK(cache_of(shipped("llama-2-70b"), 4096) == Bytes(1342177280));
  // Llama-2-7B: 32 * 2 * 32 * 128 * 2 B * 4096 = 2 GiB
  CHECK(cache_of(shipped("llama-2-7b"), 4096) == 2.0 * kGibibyte);
  // Llama-3-8B: 32 * 2 * 8 * 128 * 2 B
  CHECK(cache_of(shipped("llama-3-8b"), 1) == Bytes(131072));
  // DeepSeek-V3: 61 layers * (512 + 64) * 2 B = 70 272 B, on every GPU of a tensor-parallel group
  CHECK(cache_of(shipped("deepseek-v3"), 1) == Bytes(70272));
  CHECK(cache_of(shipped("deepseek-v3"), 1, {.tp = 8}) == Bytes(70272));
  // Falcon-7B, one key-value head of 64: 32 * 2 * 64 * 2 B
  CHECK(cache_of(shipped("falcon-7b"), 1) == Bytes(8192));
  // vLLM's fp8 form of a sparse latent: 512 B, 4 fp32 scales, 64 rotary values of 2 B
  const ModelSpec sparse = shipped("deepseek-v3.2");
  Precision scaled = sparse.precision;
  scaled.kv_cache = Dtype::kFp8;
  CHECK(cache_layout(sparse, scaled, {}).sequence_bytes(1) == Bytes(61 * (576 + 132)));
  scaled.scaled_latents = true;
  CHECK(cache_layout(sparse, scaled, {}).sequence_bytes(1) == Bytes(61 * (656 + 132)));
  // DeepSeek-V3.2 adds 128 B of fp8 keys and a 4-byte scale a token and layer for its indexer
  CHECK(cache_of(shipped("deepseek-v3.2"), 1) == Bytes(70272 + 61 * 132));
}

TEST_CASE("integer caches carry a scale and a zero point for each token and head") {
  // Llama-3-8B: 32 layers x 8 heads x (K + V); int4: 128 / 2 + 2 + 2 = 68 B, int8: 132 B
  ModelSpec model = shipped("llama-3-8b");
  model.precision.kv_cache = Dtype::kInt4;
  CHECK(cache_of(model, 1) == Bytes(32 * 8 * 2 * 68));
  model.precision.kv_cache = Dtype::kInt8;
  CHECK(cache_of(model, 1) == Bytes(32 * 8 * 2 * 132));
  model.precision.kv_cache = Dtype::kFp8;  // one scale a tensor
  CHECK(cache_of(model, 1) == Bytes(32 * 8 * 2 * 128));
}

TEST_CASE("key-value heads are split as far as they go, then copied") {
  const ModelSpec model = shipped("llama-3.1-70b");
  const Bytes whole = cache_of(model, 1000);
  CHECK(cache_of(model, 1000, {.tp = 8}) == whole / 8);
  CHECK(cache_of(model, 1000, {.tp = 16}) == whole / 8);
  CHECK(cache_of(model, 1000, {.tp = 2, .pp = 4}) == whole / 8);
}

TEST_CASE("windows hold what fits them, by layer group") {
  // gpt-oss-120b: 18 layers see everything, 18 see 128 tokens; 2 * 8 * 64 * 2 B = 2048 B a token and layer
  const ModelSpec model = shipped("gpt-oss-120b");
  CHECK(cache_of(model, 100) == Bytes(36 * 2048 * 100));
  CHECK(cache_of(model, 1000) == Bytes(18 * 2048 * 1000 + 18 * 2048 * 128));
  const CacheLayout layout = cache_layout(model, model.precision, {});
  // Blocks of 16: 1000 tokens take 63; a window of 128 tokens lies over 9 when it is not aligned.
  CHECK(layout.paged_bytes(1000, 16) == Bytes(18 * 2048.0 * 63 * 16 + 18 * 2048.0 * 9 * 16));
  CHECK(layout.paged_bytes(20, 16) == Bytes(36 * 2048.0 * 32));
}

TEST_CASE("a window no shorter than the context is no window") {
  const ModelSpec full = from_text(kSmall + "}");
  const ModelSpec wide = from_text(kSmall + ", sliding_window: 4096}");
  CHECK(wide.layers[0].name == full.layers[0].name);
  const ModelSpec narrow = from_text(kSmall + ", sliding_window: 1024}");
  CHECK(cache_of(narrow, 1024) == cache_of(full, 1024));
  CHECK(cache_of(narrow, 2048) == cache_of(full, 1024));
}

TEST_CASE("cross-layer attention stores only the caches of owning layers") {
  const std::string text =
      "{model_type: hunyuan, hidden_size: 256, num_hidden_layers: 8, num_attention_heads: 8, num_key_value_heads: 2, "
      "intermediate_size: 512, vocab_size: 1000, num_experts: 4, moe_topk: 1, use_cla: ";
  const ModelSpec none = from_text(text + "false}");
  CHECK(cache_of(from_text(text + "true, cla_share_factor: 1}"), 100) == cache_of(none, 100));
  CHECK(cache_of(from_text(text + "true, cla_share_factor: 2}"), 100) == cache_of(none, 100) / 2);
  CHECK(cache_of(from_text(text + "true, cla_share_factor: 4}"), 100) == cache_of(none, 100) / 4);
  // Factor 1 is no sharing in parameters either.
  CHECK(count_parameters(from_text(text + "true, cla_share_factor: 1}")).total == count_parameters(none).total);
}

TEST_CASE("a state does not grow with the context") {
  const ModelSpec mamba = shipped("mamba-2.8b");
  CHECK(cache_of(mamba, 1) == cache_of(mamba, 100000));
  CHECK(cache_of(mamba, 1) > Bytes(0));
  const CacheLayout hybrid = cache_layout(shipped("jamba-1.5-mini"), {}, {});
  // 4 attention layers of 8 key-value heads of 128
  CHECK(hybrid.bytes_per_token() == Bytes(4 * 2 * 8 * 128 * 2));
  // 28 Mamba layers: 8192 channels * (16 values of 4 B + 3 inputs of the convolution of 2 B)
  CHECK(hybrid.state_per_sequence == Bytes(28 * 8192.0 * (16 * 4 + 3 * 2)));
}

TEST_CASE("weights of one GPU") {
  const ModelSpec model = shipped("llama-3.1-8b");
  const Precision bf16;
  const double total = count_parameters(model).total;
  CHECK(weight_bytes(model, bf16, {}) == Bytes(2 * total));
  // Everything but the norms (65 of 4096) is split.
  const double norms = 65 * 4096;
  CHECK(weight_bytes(model, bf16, {.tp = 4}) == Bytes(2 * ((total - norms) / 4 + norms)));
  // Two stages of 16 layers; the second has the head and the final norm, as large as the embedding but for it.
  const double layers = total - 2 * 128256.0 * 4096 - 4096;
  CHECK(weight_bytes(model, bf16, {.pp = 2}) == Bytes(2 * (layers / 2 + 128256.0 * 4096 + 4096)));
}

TEST_CASE("expert parallelism splits experts, attention-DP copies the rest") {
  const ModelSpec model = shipped("mixtral-8x7b");
  const double experts = 32 * 8 * 3 * 4096.0 * 14336;
  const double rest = count_parameters(model).total - experts;
  CHECK(weight_bytes(model, {}, {.attention_dp = 8, .ep = 8}) == Bytes(2 * (rest + experts / 8)));
  CHECK(weight_bytes(model, {}, {.attention_dp = 8}) == Bytes(2 * (rest + experts / 8)));
}

TEST_CASE("a tied head is stored once on one stage, twice on two") {
  const ModelSpec model = from_text(kSmall + ", tie_word_embeddings: true}");
  CHECK(weight_bytes(model, {}, {}) == Bytes(2 * count_parameters(model).total));
  CHECK(weight_bytes(model, {}, {.pp = 4}) > weight_bytes(model, {}, {}) / 4);
}

TEST_CASE("quantized weights with their scales") {
  const ModelSpec model = shipped("llama-3.1-8b");
  const auto bytes = [&](const char* name) {
    bool asked = false;
    return weight_bytes(model, parse_precision(model, make_scalar(name), asked), {}).in(kGigabyte);
  };
  const double linear = 6.979e9,
               vocabulary = 2 * 128256.0 * 4096;  // weights of the 32 layers; both tables stay in 16 bit
  CHECK(bytes("fp8") == doctest::Approx((linear + 2 * vocabulary) / 1e9).epsilon(1e-3));
  // AWQ: 4 bit + (16 + 4) / 128 bit
  CHECK(bytes("awq") == doctest::Approx((linear * (4 + 20.0 / 128) / 8 + 2 * vocabulary) / 1e9).epsilon(1e-3));
  // A llama.cpp file of Llama-3.1-8B in Q4_K_M has 4.92 GB (huggingface.co/bartowski/Meta-Llama-3.1-8B-Instruct-GGUF).
  CHECK(bytes("gguf_q4_k_m") == doctest::Approx(4.92).epsilon(0.01));
  CHECK(bytes("bitnet") < bytes("hqq2"));
  CHECK(bytes("llm_int8") > bytes("int8"));
}

TEST_CASE("published sizes of quantized checkpoints") {
  // gpt-oss-120b: 60.8 GiB, 20b: 12.8 GiB (arXiv 2508.10925, table 1)
  CHECK(weight_bytes(shipped("gpt-oss-120b"), shipped("gpt-oss-120b").precision, {}).in(kGibibyte) ==
        doctest::Approx(60.8).epsilon(0.005));
  CHECK(weight_bytes(shipped("gpt-oss-20b"), shipped("gpt-oss-20b").precision, {}).in(kGibibyte) ==
        doctest::Approx(12.8).epsilon(0.005));
  // Kimi-K2.5: 595 GB (huggingface.co/moonshotai/Kimi-K2.5), its vision tower 0.9 GB of them
  CHECK(weight_bytes(shipped("kimi-k2.5"), shipped("kimi-k2.5").precision, {}).in(kGigabyte) ==
        doctest::Approx(594).epsilon(0.005));
}

TEST_CASE("activations grow with tokens and rows of logits") {
  const ModelSpec model = shipped("llama-3.1-8b");
  const auto bytes = [&](double tokens, double rows) { return activation_bytes(model, {}, {}, tokens, rows); };
  CHECK(bytes(8192, 256) > bytes(4096, 256));
  CHECK(bytes(8192, 8192) > bytes(8192, 256));
  CHECK(activation_bytes(model, {}, {.tp = 8}, 8192, 1) < bytes(8192, 1));
  // 8192 tokens: three 4096-wide vectors and gate, up and their product, 14336 each, in 16 bit
  CHECK(bytes(8192, 1) == Bytes(8192 * 2.0 * (3 * 4096 + 3 * 14336)));
}

TEST_CASE("kept expert buffers add to the logits, with copies of the operands") {
  const ModelSpec model = shipped("minimax-m2.5");
  const Sharding s{.tp = 4, .ep = 4};
  Precision fp8;
  fp8.weights = fp8.expert_weights = Dtype::kFp8Block;
  fp8.activations = Dtype::kFp8;
  const double stream = 8192 * 3072 * 6.0, logits = 1024 * 200064 * 10.0;
  const double routed = 8192 * 8 * 2.0 * (3 * 1536 + 3072), operands = 8192 * 8 * (3072 + 1536);
  CHECK(activation_bytes(model, fp8, s, 8192, 1024) == Bytes(stream + logits));  // more than the experts' 1.0 GB
  CHECK(activation_bytes(model, fp8, s, 8192, 1024, true) == Bytes(stream + logits + routed + operands));
  // 16-bit operands are gathered where they lie, and dense models have no such buffers.
  CHECK(activation_bytes(model, {}, s, 8192, 1024, true) == Bytes(stream + logits + routed));
  CHECK(activation_bytes(shipped("llama-3.1-8b"), {}, {}, 8192, 256, true) ==
        activation_bytes(shipped("llama-3.1-8b"), {}, {}, 8192, 256));
}

TEST_CASE("a compiled engine plans its buffers as one graph") {
  const ModelSpec model = shipped("llama-3.1-8b");
  // Two vectors of 4096, gate and up of 14336; q and the output of 32 heads, k and v of 8, of 128 each; fp32 logits.
  CHECK(compiled_activation_bytes(model, {}, 8192, 64) ==
        Bytes(8192 * 2.0 * (2 * 4096 + 2 * 14336 + 2 * 4096 + 2 * 1024) + 64 * 128256 * 4.0));
  // BLOOM's feed-forward block has one wide vector.
  CHECK(compiled_activation_bytes(shipped("bloom-176b"), {.tp = 8}, 100, 0) ==
        Bytes(100 * 2.0 * (2 * 14336 + 4 * 14336 / 8 + 4 * 14336 / 8)));
}
