#include <map>

#include "models.h"

using namespace roofcast;

namespace {

/// Published counts in billions. `active` 0 = not a mixture. `loose` is the rounding of the figure: half of its last
/// digit over it, at least 0.5 %.
struct Published {
  const char* name;
  double total;
  double active;
  enum {
    kNone,
    kHead,
    kBoth
  } counts;  ///< what of the vocabulary the active figure holds: nothing, head, head and embedding
  double loose;
  const char* source;
};

constexpr double kExact = 0.005;
const Published kPublished[] = {
    {"llada-8b", 8.02, 0, Published::kBoth, kExact, "arXiv:2502.09992, 6.98 B without embeddings"},
    {"llama-2-7b", 6.74, 0, Published::kBoth, kExact, "huggingface.co/meta-llama/Llama-2-7b-hf, safetensors"},
    {"llama-2-13b", 13.0, 0, Published::kBoth, kExact, "huggingface.co/meta-llama/Llama-2-13b-hf, safetensors"},
    {"llama-2-70b", 69.0, 0, Published::kBoth, kExact, "huggingface.co/meta-llama/Llama-2-70b-hf, safetensors"},
    {"llama-3.1-8b", 8.03, 0, Published::kBoth, kExact, "huggingface.co/meta-llama/Llama-3.1-8B, safetensors"},
    {"llama-3.1-70b", 70.55, 0, Published::kBoth, kExact, "huggingface.co/meta-llama/Llama-3.1-70B, safetensors"},
    {"llama-3.1-405b", 405.9, 0, Published::kBoth, kExact, "huggingface.co/meta-llama/Llama-3.1-405B, safetensors"},
    {"llama-3.2-1b", 1.24, 0, Published::kBoth, kExact, "huggingface.co/meta-llama/Llama-3.2-1B, model card (1.23 B)"},
    {"llama-3.2-3b", 3.21, 0, Published::kBoth, kExact, "huggingface.co/meta-llama/Llama-3.2-3B, model card"},
    {"tinyllama-1.1b", 1.1, 0, Published::kBoth, kExact, "arXiv 2401.02385"},
    {"mistral-7b", 7.24, 0, Published::kBoth, kExact, "huggingface.co/mistralai/Mistral-7B-v0.1, safetensors"},
    {"mistral-nemo-12b", 12.2, 0, Published::kBoth, kExact, "huggingface.co/mistralai/Mistral-Nemo-Instruct-2407"},
    {"mistral-large-123b", 123, 0, Published::kBoth, kExact, "mistral.ai/news/mistral-large-2407"},
    {"mixtral-8x7b", 46.7, 12.9, Published::kBoth, kExact, "mistral.ai/news/mixtral-of-experts"},
    {"mixtral-8x22b", 141, 39, Published::kBoth, kExact, "mistral.ai/news/mixtral-8x22b"},
    {"mistral-large-3", 673, 39, Published::kHead, 0.013,
     "huggingface.co/mistralai/Mistral-Large-3-675B-Instruct-2512: 673 B and 39 B without the tower"},
    {"ministral-3-14b", 13.9, 0, Published::kBoth, 0.014,
     "huggingface.co/mistralai/Ministral-3-14B-Instruct-2512: 13.5 B + 0.4 B"},
    {"mistral-small-3.2-24b", 24.01, 0, Published::kBoth, 0.005,
     "huggingface.co/mistralai/Mistral-Small-3.2-24B-Instruct-2506, safetensors"},
    {"pixtral-12b", 12.7, 0, Published::kBoth, 0.012, "arXiv 2410.07073: 12 B + 400 M"},
    {"qwen2.5-vl-3b", 3.75, 0, Published::kBoth, 0.013, "huggingface.co/Qwen/Qwen2.5-VL-3B-Instruct, safetensors"},
    {"qwen2.5-vl-7b", 8.29, 0, Published::kBoth, 0.007, "huggingface.co/Qwen/Qwen2.5-VL-7B-Instruct, safetensors"},
    {"qwen2.5-vl-72b", 73.4, 0, Published::kBoth, kExact, "huggingface.co/Qwen/Qwen2.5-VL-72B-Instruct, safetensors"},
    {"qwen2-audio-7b", 8.4, 0, Published::kBoth, 0.006, "huggingface.co/Qwen/Qwen2-Audio-7B-Instruct, safetensors"},
    {"qwen2-7b", 7.62, 0, Published::kBoth, kExact, "huggingface.co/Qwen/Qwen2-7B, safetensors"},
    {"qwen2-72b", 72.71, 0, Published::kBoth, kExact, "arXiv 2407.10671, table 1"},
    {"qwen2.5-0.5b", 0.494, 0, Published::kBoth, kExact, "huggingface.co/Qwen/Qwen2.5-0.5B (0.49 B)"},
    {"qwen2-57b-a14b", 57.4, 14.2, Published::kBoth, kExact, "arXiv 2407.10671, table 1 (57.41 B, 14.2 B)"},
    {"qwen3-8b", 8.2, 0, Published::kBoth, kExact, "huggingface.co/Qwen/Qwen3-8B, model card"},
    {"qwen3-14b", 14.8, 0, Published::kBoth, kExact, "huggingface.co/Qwen/Qwen3-14B, model card"},
    {"qwen3-32b", 32.8, 0, Published::kBoth, kExact, "huggingface.co/Qwen/Qwen3-32B, model card"},
    {"qwen3-30b-a3b", 30.5, 3.3, Published::kBoth, 0.02, "huggingface.co/Qwen/Qwen3-30B-A3B, model card"},
    {"qwen3-235b-a22b", 235, 22, Published::kBoth, 0.023, "huggingface.co/Qwen/Qwen3-235B-A22B, model card"},
    {"qwen3-next-80b-a3b", 80, 0, Published::kBoth, 0.0063, "huggingface.co/Qwen/Qwen3-Next-80B-A3B-Instruct"},
    {"qwen3.5-397b-a17b", 397, 17, Published::kBoth, 0.03, "huggingface.co/Qwen/Qwen3.5-397B-A17B"},
    {"deepseek-v2", 236, 21, Published::kHead, 0.024, "arXiv 2405.04434"},
    {"deepseek-v2-lite", 15.7, 2.4, Published::kHead, 0.022, "arXiv 2405.04434, appendix B"},
    {"deepseek-v3", 671, 37, Published::kHead, 0.0135, "arXiv 2412.19437"},
    {"kimi-k2", 1026, 32.6, Published::kBoth, 0.01,
     "huggingface.co/moonshotai/Kimi-K2-Instruct, safetensors; arXiv 2507.20534"},
    {"kimi-linear-48b", 49.1, 3, Published::kHead, 0.05,
     "huggingface.co/moonshotai/Kimi-Linear-48B-A3B-Instruct, safetensors"},
    {"glm-5", 744, 40, Published::kNone, 0.0125, "huggingface.co/zai-org/GLM-5"},
    {"minimax-m2.5", 229, 10, Published::kNone, 0.05, "huggingface.co/MiniMaxAI/MiniMax-M2.5, safetensors"},
    {"minimax-01", 456, 45.9, Published::kNone, kExact, "arXiv 2501.08313"},
    {"gpt-oss-20b", 20.91, 3.61, Published::kHead, kExact, "arXiv 2508.10925, table 1"},
    {"gpt-oss-120b", 116.83, 5.13, Published::kHead, kExact, "arXiv 2508.10925, table 1"},
    {"gemma-2-9b", 9.24, 0, Published::kBoth, kExact, "arXiv 2408.00118, table 2 (918 M + 8324 M)"},
    {"gemma-2-27b", 27.23, 0, Published::kBoth, kExact, "arXiv 2408.00118, table 2 (1180 M + 26047 M)"},
    {"gemma-3-27b", 27.02, 0, Published::kBoth, kExact, "arXiv 2503.19786, table 1 (1416 M + 25600 M)"},
    {"gpt-j-6b", 6.05, 0, Published::kBoth, kExact, "huggingface.co/EleutherAI/gpt-j-6b, model card"},
    {"gpt-2", 0.1244, 0, Published::kBoth, kExact, "huggingface.co/openai-community/gpt2 (124 M)"},
    {"pythia-6.9b", 6.857, 0, Published::kBoth, kExact, "arXiv 2304.01373, table 1"},
    {"opt-125m", 0.1252, 0, Published::kBoth, kExact, "huggingface.co/facebook/opt-125m"},
    {"opt-13b", 12.85, 0, Published::kBoth, kExact, "arXiv 2205.01068 (13 B); huggingface.co/facebook/opt-13b"},
    {"opt-66b", 66, 0, Published::kBoth, 0.0076, "arXiv 2205.01068, table 1"},
    {"bloom-176b", 176.25, 0, Published::kBoth, kExact, "arXiv 2211.05100, table 3 (176,247 M)"},
    {"falcon-40b", 41.3, 0, Published::kBoth, kExact, "huggingface.co/tiiuae/falcon-40b: head tied to the embedding"},
    {"mpt-30b", 30, 0, Published::kBoth, kExact, "huggingface.co/mosaicml/mpt-30b (29.95 B)"},
    {"starcoder", 15.5, 0, Published::kBoth, kExact, "arXiv 2305.06161"},
    {"phi-2", 2.78, 0, Published::kBoth, kExact, "huggingface.co/microsoft/phi-2, safetensors"},
    {"phi-3", 3.82, 0, Published::kBoth, kExact, "huggingface.co/microsoft/Phi-3-mini-4k-instruct, safetensors"},
    {"phi-3.5-moe", 41.9, 6.6, Published::kBoth, kExact * 2, "huggingface.co/microsoft/Phi-3.5-MoE-instruct"},
    {"dbrx", 132, 36, Published::kHead, kExact, "huggingface.co/databricks/dbrx-base"},
    {"command-r", 35, 0, Published::kBoth, kExact, "huggingface.co/CohereForAI/c4ai-command-r-v01"},
    {"command-r-plus", 104, 0, Published::kBoth, kExact, "huggingface.co/CohereForAI/c4ai-command-r-plus"},
    {"hunyuan-large", 389, 52, Published::kBoth, kExact, "arXiv 2411.02265"},
    {"llama-4-scout", 108, 17, Published::kBoth, 0.02, "ai.meta.com/blog/llama-4 (109 B with the vision tower)"},
    {"llama-4-maverick", 400, 17, Published::kBoth, 0.02, "ai.meta.com/blog/llama-4"},
    {"mamba-2.8b", 2.77, 0, Published::kBoth, kExact, "huggingface.co/state-spaces/mamba-2.8b-hf, safetensors"},
    {"mamba2-2.7b", 2.70, 0, Published::kBoth, kExact, "huggingface.co/state-spaces/mamba2-2.7b"},
    {"falcon-mamba-7b", 7.27, 0, Published::kBoth, kExact, "huggingface.co/tiiuae/falcon-mamba-7b, safetensors"},
    {"jamba-1.5-mini", 51.6, 12, Published::kBoth, 0.0125, "huggingface.co/ai21labs/AI21-Jamba-1.5-Mini, safetensors"},
    {"jamba-1.5-large", 398, 94, Published::kBoth, kExact, "arXiv 2408.12570"},
    {"lfm2-1.2b", 1.170340608, 0, Published::kBoth, 1e-9, "huggingface.co/LiquidAI/LFM2-1.2B, model card"},
    {"lfm2-8b-a1b", 8.34, 1.5, Published::kHead, 0.04, "huggingface.co/LiquidAI/LFM2-8B-A1B, safetensors; model card"},
    {"nemotron-h-8b", 8.1, 0, Published::kBoth, kExact, "huggingface.co/nvidia/Nemotron-H-8B-Base-8K, safetensors"},
    {"nemotron-3-nano-30b-a3b", 31.6, 3.6, Published::kBoth, kExact,
     "NVIDIA Nemotron 3 Nano report (31.6 B, 3.6 B with embeddings)"},
    {"nemotron-3-ultra-550b-a55b", 550, 55, Published::kHead, 0.0091,
     "huggingface.co/nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16"},
    {"mimo-v2-flash", 309, 15, Published::kHead, 0.034, "huggingface.co/XiaomiMiMo/MiMo-V2-Flash, model card"},
    {"nemotron-4-15b", 15.6, 0, Published::kBoth, kExact, "arXiv 2402.16819"},
    {"minitron-8b", 8.27, 0, Published::kBoth, kExact, "arXiv 2407.14679"},
    {"minitron-4b", 4.19, 0, Published::kBoth, kExact, "arXiv 2407.14679"},
};

}  // namespace

TEST_CASE("published parameter counts") {
  for (const Published& row : kPublished) {
    CAPTURE(row.name);
    CAPTURE(row.source);
    const ModelSpec model = shipped(row.name);
    const ParameterCount count = count_parameters(model);
    CHECK(count.total / 1e9 == doctest::Approx(row.total).epsilon(kExact));
    if (row.active == 0) continue;
    double active = count.active;
    const double table = model.vocabulary * model.embedding_dim;
    if (row.counts == Published::kNone) active -= table;
    if (row.counts == Published::kBoth) active += table;
    CHECK(active / 1e9 == doctest::Approx(row.active).epsilon(row.loose));
  }
}

TEST_CASE("a small dense model, by hand") {
  // embedding and head 1000 * 256 each = 256 000, final norm 256
  // layer: q and o 256 * 256 each, k and v 256 * 64 each = 163 840; three matrices 256 * 512 = 393 216; norms 512
  // total = 2 * 256 000 + 256 + 4 * (163 840 + 393 216 + 512) = 2 742 528
  const ParameterCount count = count_parameters(from_text(kSmall + "}"));
  CHECK(count.total == 2742528);
  CHECK(count.embedding == 256000);
  CHECK(count.active == 2742528 - 256000);
  // Tied: the head's matrix is the embedding's. A token still passes it.
  const ParameterCount tied = count_parameters(from_text(kSmall + ", tie_word_embeddings: true}"));
  CHECK(tied.total == 2742528 - 256000);
  CHECK(tied.active == count.active);
}

TEST_CASE("a Gemma-like model, by hand") {
  // heads wider than hidden / heads: q, o 256 * 8 * 64 each = 131 072, k, v 256 * 2 * 64 each = 32 768: 327 680
  // q and k norm 2 * 64; four norms 1024; feed-forward 393 216; 6 layers; embedding once; final norm
  const ModelSpec model = from_text(
      "{model_type: gemma3_text, hidden_size: 256, num_hidden_layers: 6, num_attention_heads: 8, num_key_value_heads: "
      "2, "
      "head_dim: 64, intermediate_size: 512, vocab_size: 1000, sliding_window: 128, max_position_embeddings: 4096}");
  CHECK(count_parameters(model).total == 256000 + 256 + 6 * (327680 + 128 + 1024 + 393216));
  REQUIRE(model.layers.size() == 2);
  CHECK(model.layers[0].count == 5);
  CHECK(std::get<GroupedAttention>(model.layers[0].mixer).window == 128);
  CHECK(std::get<GroupedAttention>(model.layers[1].mixer).window == 0);
  CHECK(model.order == std::vector<int>{0, 0, 0, 0, 0, 1});
}

TEST_CASE("a Jamba-like hybrid, by hand") {
  // 4 layers: attention at 1 and 3 (period 2, offset 1), experts at 0 and 2 (period 2, offset 0); inner 2 * 256 = 512,
  // N 16, dt rank 16, convolution 4 with bias.
  // Mamba: in 256 * 1024, x 512 * 48, dt 16 * 512 + 512, conv 512 * 5, A 512 * 16, D 512, out 512 * 256, norms 16 + 32
  //      = 262 144 + 24 576 + 8 704 + 2 560 + 8 192 + 512 + 131 072 + 48 = 437 808
  // attention 163 840; dense 393 216; experts 4 * 393 216 + router 1 024; two norms a layer 512
  const ModelSpec model = from_text(
      "{model_type: jamba, hidden_size: 256, num_hidden_layers: 4, num_attention_heads: 8, num_key_value_heads: 2, "
      "intermediate_size: 512, vocab_size: 1000, attn_layer_period: 2, attn_layer_offset: 1, expert_layer_period: 2, "
      "expert_layer_offset: 0, num_experts: 4, num_experts_per_tok: 2, mamba_d_state: 16, mamba_dt_rank: 16}");
  const double experts_layer = 437808 + 4 * 393216 + 1024 + 512;
  const double attention_layer = 163840 + 393216 + 512;
  CHECK(count_parameters(model).total == 2 * 256000 + 256 + 2 * experts_layer + 2 * attention_layer);
  CHECK(count_parameters(model).active == 256000 + 256 + 2 * (experts_layer - 2 * 393216) + 2 * attention_layer);
}

TEST_CASE("Gemma 4 E2B and E4B: a table of embeddings per layer, and wide blocks behind shared caches") {
  // 2 layers of width 64, the second of which reads the first one's cache and is twice as wide. Table 100 x 64, and
  // 100 x 8 for each layer; a projection 64 x (2 x 8); of each layer a gate and a projection 64 x 8.
  // Attention: q and o 64 x 64 in both, k and v 64 x 32 in the first. Blocks 3 x 64 x 128 and 3 x 64 x 256. Norms: five
  // of 64 in each layer, q's and k's of 16 (q's alone where the cache is another's), and the last one.
  const ModelSpec model = from_text(
      "{model_type: gemma4_text, hidden_size: 64, num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: "
      "2, "
      "head_dim: 16, intermediate_size: 128, vocab_size: 100, vocab_size_per_layer_input: 100, "
      "hidden_size_per_layer_input: 8, num_kv_shared_layers: 1, use_double_wide_mlp: true, sliding_window: 32, "
      "max_position_embeddings: 1024, layer_types: [sliding_attention, sliding_attention]}");
  const double matrices = 2 * 2 * 64.0 * 64 + 2 * 64.0 * 32 + 3 * 64.0 * (128 + 256);
  const double sides = 100 * 8 * 2 + 64 * 8 * 2 + 2 * 2 * 64.0 * 8;
  const double norms = 2 * 5 * 64 + 64 + 3 * 16;
  CHECK(count_parameters(model).total == 100 * 64 + matrices + sides + norms);
  // "5.1B with embeddings" and "8B with embeddings" (ai.google.dev/gemma/docs/core/model_card_4), towers of 0.45 B
  // among them
  CHECK(count_parameters(shipped("gemma-4-e2b")).total == doctest::Approx(5.1e9 - 0.45e9).epsilon(0.03));
  CHECK(count_parameters(shipped("gemma-4-e4b")).total == doctest::Approx(8.0e9 - 0.45e9).epsilon(0.03));
  CHECK(count_parameters(shipped("gemma-4-31b")).total == doctest::Approx(30.7e9).epsilon(0.01));
}

TEST_CASE("parameters of checkpoints from their config.json, to the last one") {
  // Each the total of the checkpoint's safetensors.
  const auto total = [](const std::string& config) { return count_parameters(from_text(config)).total; };
  CHECK(total("{model_type: qwen, hidden_size: 4096, intermediate_size: 22016, num_hidden_layers: 32, "
              "num_attention_heads: 32, vocab_size: 151936, tie_word_embeddings: false}") == 7721324544);  // Qwen-7B
  CHECK(total("{model_type: glm, hidden_size: 4096, intermediate_size: 13696, num_hidden_layers: 40, "
              "num_attention_heads: 32, num_key_value_heads: 2, head_dim: 128, vocab_size: 151552, attention_bias: "
              "true, tie_word_embeddings: false}") == 9399951360);  // glm-4-9b-chat-hf
  CHECK(total("{model_type: stablelm, hidden_size: 2048, intermediate_size: 5632, num_hidden_layers: 24, "
              "num_attention_heads: 32, num_key_value_heads: 32, vocab_size: 100352, use_qkv_bias: true, "
              "tie_word_embeddings: false}") == 1644515328);  // stablelm-2-1_6b
  CHECK(total("{model_type: falcon_h1, hidden_size: 1024, intermediate_size: 2048, num_hidden_layers: 36, "
              "num_attention_heads: 8, num_key_value_heads: 2, head_dim: 64, mamba_d_ssm: 1536, mamba_n_heads: 24, "
              "mamba_d_head: 64, mamba_n_groups: 1, mamba_d_state: 128, mamba_d_conv: 4, "
              "vocab_size: 32784, tie_word_embeddings: false}") == 521411104);  // Falcon-H1-0.5B
  CHECK(total("{model_type: granitemoehybrid, hidden_size: 1536, num_hidden_layers: 40, num_attention_heads: 12, "
              "num_key_value_heads: 4, mamba_n_heads: 48, mamba_d_head: 64, mamba_d_state: 128, mamba_n_groups: 1, "
              "mamba_d_conv: 4, num_local_experts: 64, num_experts_per_tok: 6, intermediate_size: 512, "
              "shared_intermediate_size: 1024, vocab_size: 100352, tie_word_embeddings: true, "
              "attn_layer_indices: [5, 15, 25, 35]}") == 6939037248);  // granite-4.0-h-tiny
}

TEST_CASE("GPT-Neo: parameters to the last one, every other layer local") {
  const std::string neo =
      "{model_type: gpt_neo, hidden_size: 2048, num_heads: 16, vocab_size: 50257, "
      "max_position_embeddings: 2048";
  const ModelSpec model = from_text(neo + ", num_layers: 24}");
  CHECK(count_parameters(model).total == 1315575808);  // gpt-neo-1.3B, safetensors
  const auto windows = [](const ModelSpec& of) {
    std::map<double, int> layers;
    for (const LayerKind& kind : of.layers) layers[std::get<GroupedAttention>(kind.mixer).window] += kind.count;
    return layers;
  };
  CHECK(windows(model) == std::map<double, int>{{0, 12}, {256, 12}});
  CHECK(windows(from_text(neo + ", num_layers: 3, window_size: 64, attention_layers: [local, local, global]}")) ==
        std::map<double, int>{{0, 1}, {64, 2}});
}

TEST_CASE("Molmo counts gate and up as one width, MPT's multi-query attention has one key-value head") {
  const auto total = [](const std::string& config) { return count_parameters(from_text(config)).total; };
  const std::string sizes =
      ", hidden_size: 256, num_hidden_layers: 4, num_attention_heads: 8, num_key_value_heads: 2, vocab_size: 1000, "
      "tie_word_embeddings: false, intermediate_size: ";
  CHECK(total("{model_type: molmo" + sizes + "1024}") == total("{model_type: qwen2" + sizes + "512}"));
  const std::string mpt = "{model_type: mpt, d_model: 256, n_layers: 2, n_heads: 8, vocab_size: 1000, attn_config: ";
  // A layer has keys and values of one head of 32 in place of 8.
  CHECK(total(mpt + "{attn_type: multihead_attention}}") - total(mpt + "{attn_type: multiquery_attention}}") ==
        2 * 2 * 7 * 32 * 256);
  CHECK(total(mpt + "{attn_type: grouped_query_attention, kv_n_heads: 1}}") ==
        total(mpt + "{attn_type: multiquery_attention}}"));
}
