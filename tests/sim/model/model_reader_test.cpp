#include <algorithm>
#include <fstream>
#include <set>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/model_document.h"
#include "models.h"
#include "sim/model/encoder.h"
#include "sim/model/families.h"
#include "tests/base/temporary_folder.h"
#include "tests/measured_data.h"

using namespace roofcast;

namespace {
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
}  // namespace

TEST_CASE("every shipped model is read, has sensible counts and a source") {
  int models = 0;
  for (const auto& file : std::filesystem::directory_iterator(std::string(ROOFCAST_SOURCE_DIR) + "/configs/models")) {
    const std::string name = file.path().stem().string();
    CAPTURE(name);
    const ConfigTree tree = parse_config_file(file.path().string());
    const ModelSpec model = parse_model(tree);
    CHECK(model.name == name);
    CHECK(tree->find("source") != nullptr);
    const ParameterCount count = count_parameters(model);
    CHECK(count.total > 1e7);
    const bool shares = std::any_of(model.layers.begin(), model.layers.end(),
                                    [](const LayerKind& kind) { return kind.weight_sets > 0; });
    CHECK((shares || count.active <= count.total + model.vocabulary * model.hidden));  // shared ones are passed again
    CHECK(model.layer_count() > 0);
    ++models;
  }
  CHECK(models >= 60);
}

TEST_CASE("embeddings are tied where the config leaves the class's default out") {
  const std::string small =
      "hidden_size: 64, intermediate_size: 256, num_hidden_layers: 2, num_attention_heads: 4, vocab_size: 1000}";
  CHECK(from_text("{model_type: smollm3, " + small).tied_embedding);
  CHECK(from_text("{model_type: ernie4_5, " + small).tied_embedding);
  CHECK(!from_text("{model_type: smollm3, tie_word_embeddings: false, " + small).tied_embedding);
  CHECK(!from_text("{model_type: llama, " + small).tied_embedding);
}

TEST_CASE("an MLX checkpoint states its bits under 'quantization'") {
  const ModelSpec model = from_text(
      "{model_type: llama, hidden_size: 64, intermediate_size: 256, num_hidden_layers: 2, num_attention_heads: 4, "
      "vocab_size: 1000, quantization: {bits: 4, group_size: 64}}");
  CHECK(model.precision.weights == Dtype::kInt4);
  CHECK(model.precision.weight_scales.group_size == 64);
}

/// Reads every model below `folder`; how many were read and how many refused.
std::pair<int, int> read_configs(const std::string& folder) {
  int imported = 0, refused = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (file.path().extension() != ".json") continue;
    CAPTURE(file.path().string());
    try {
      const ModelSpec model = parse_model(parse_model_file(file.path().string()));
      CHECK(count_parameters(model).total > 1e8);
      CHECK(model.layer_count() > 0);
      ++imported;
    } catch (const ConfigError& error) {
      CHECK(contains(error.what(), "not a model"));
      CHECK(contains(file.path().filename().string(), "hf_quant_config"));
      ++refused;
    }
  }
  return {imported, refused};
}

TEST_CASE("a sample of real config.json files is read") {
  CHECK(read_configs(testing::kSampleData + "/hf_configs") == std::pair(5, 0));
}

TEST_CASE("real config.json files are read or refused with a reason") {
  if (!testing::there_or_skip(testing::kWholeData + "/hf_configs")) return;
  const auto [imported, refused] = read_configs(testing::kWholeData + "/hf_configs");
  CHECK(imported >= 74);
  CHECK(refused <= 4);
}

TEST_CASE("a config.json is named by its own name or its folder, another file by its file name") {
  const TemporaryFolder folder;
  const auto name_of = [&](const std::string& file, const std::string& rest) {
    return parse_model(parse_model_file(folder.write(file, kSmall + rest + "}"))).name;
  };
  CHECK(name_of("llama-x/config.json", "") == "llama-x");
  CHECK(name_of("llama-x/config.json", ", _name_or_path: /checkpoints/mine/") == "mine");
  CHECK(name_of("llama-x/config.json", ", _name_or_path: us/mine") == "mine");
  CHECK(name_of("llama-x/other.json", ", _name_or_path: us/mine") == "other");
  CHECK(name_of("llama-x/config.json", ", _name_or_path: ./") == "llama-x");
  CHECK(name_of("llama-x/config.json", ", _name_or_path: null") == "llama-x");
  CHECK_THROWS_AS(name_of("llama-x/config.json", ", _name_or_path: [a]"), ConfigError);
  CHECK(name_of("llama-x/y/../config.json", "") == "llama-x");
  const std::string path = folder.write("llama-x/config.json", kSmall + "}");
  const ConfigTree changed = parse_config_text("{name: '" + path + "', num_hidden_layers: 1}", "scenario.yaml");
  CHECK(parse_model(resolve_named("models", changed)).name == "llama-x");
}

TEST_CASE("no two families claim one model_type") {
  std::set<std::string_view> names, types;
  for (const Family& family : families()) {
    CHECK(names.insert(family.name).second);
    CHECK(!family.help.empty());
    for (std::string_view type : family.model_types) {
      CAPTURE(type);
      CHECK(types.insert(type).second);
    }
  }
}

TEST_CASE("head_dim may be absent, or differ from hidden over heads") {
  CHECK(std::get<GroupedAttention>(from_text(kSmall + "}").layers[0].mixer).head_dim == 32);
  CHECK(std::get<GroupedAttention>(from_text(kSmall + ", head_dim: 64}").layers[0].mixer).head_dim == 64);
  CHECK(std::get<GroupedAttention>(from_text(kSmall + ", head_dim: null}").layers[0].mixer).head_dim == 32);
}

TEST_CASE("heads by layer: Laguna's windowed layers have more") {
  const std::string laguna =
      "{model_type: laguna, hidden_size: 64, intermediate_size: 128, num_hidden_layers: 4, num_attention_heads: 4, "
      "num_key_value_heads: 2, head_dim: 32, vocab_size: 100, num_experts: 4, num_experts_per_tok: 2, "
      "moe_intermediate_size: 16, sliding_window: 8, layer_types: [full_attention, sliding_attention, "
      "sliding_attention, sliding_attention], mlp_layer_types: [dense, sparse, sparse, sparse], gating: per-head, "
      "sliding_window_pattern: LLLG, num_attention_heads_per_layer: ";
  const ModelSpec model = from_text(laguna + "[4, 6, 6, 6]}");
  REQUIRE(model.layers.size() == 2);
  const auto& whole = std::get<GroupedAttention>(model.layers[0].mixer);
  const auto& windowed = std::get<GroupedAttention>(model.layers[1].mixer);
  CHECK(whole.heads == 4);
  CHECK(whole.window == 0);
  CHECK(windowed.heads == 6);
  CHECK(windowed.window == 8);
  CHECK(model.layers[1].count == 3);
  CHECK(model.assumptions.empty());
  CHECK_THROWS_AS(from_text(laguna + "[4, 6]}"), ConfigError);
  CHECK_THROWS_AS(from_text(laguna + "[4, 6, 6, 0]}"), ConfigError);
}

TEST_CASE("windows by flag, by first layers, by pattern, by list") {
  const auto windowed = [](const std::string& text) {
    int count = 0;
    for (const LayerKind& kind : from_text(text).layers) {
      if (std::get<GroupedAttention>(kind.mixer).window > 0) count += kind.count;
    }
    return count;
  };
  CHECK(windowed(kSmall + ", sliding_window: 512}") == 4);
  CHECK(windowed(kSmall + ", sliding_window: 512, use_sliding_window: false}") == 0);
  CHECK(windowed(kSmall + ", sliding_window: 512, use_sliding_window: true, max_window_layers: 3}") == 1);
  CHECK(windowed(kSmall + ", sliding_window: 512, sliding_window_pattern: 2}") == 2);
  CHECK(windowed(kSmall + ", sliding_window: 512, layer_types: [full_attention, sliding_attention, sliding_attention, "
                          "sliding_attention]}") == 3);
  CHECK(windowed(kSmall + ", sliding_window: null}") == 0);
}

TEST_CASE("bare Infinity, nested text models, foreign keys") {
  const ModelSpec model = from_text(
      "{\"architectures\": [\"XForConditionalGeneration\"], \"model_type\": \"gemma3\", \"text_config\": "
      "{\"model_type\": "
      "\"gemma3_text\", \"hidden_size\": 256, \"num_hidden_layers\": 6, \"intermediate_size\": 512, \"vocab_size\": "
      "1000, "
      "\"time_step_limit\": [0.0, Infinity]}, \"vision_config\": {\"hidden_size\": 99}}");
  CHECK(model.hidden == 256);
  CHECK(model.family == "gemma3");
  CHECK(std::get<GroupedAttention>(model.layers[0].mixer).kv_heads == 4);  // transformers' default
  CHECK(model.extra_parameters == 0);                                      // a vision tower without a depth
}

TEST_CASE("our own models know every key they hold") {
  const std::string ours = "{name: x, source: here, " + kSmall.substr(1);
  CHECK(message(ours + "}") == "");
  CHECK(contains(message(ours + ", num_key_value_head: 2}"), "unknown key 'num_key_value_head'"));
  CHECK(message(kSmall + ", num_key_value_head: 2}") == "");  // a config.json may hold anything
}

TEST_CASE("an unknown decoder is approximated, with a note") {
  const ModelSpec model =
      from_text("{model_type: brand_new, " + kSmall.substr(std::string("{model_type: llama, ").size()) + "}");
  CHECK(model.family == "brand_new");
  REQUIRE(!model.assumptions.empty());
  CHECK(contains(model.assumptions.front(), "'brand_new' is not known"));
  CHECK(model.assumptions.size() >= 3);  // head_dim, tied or not, biases
  CHECK(from_text(kSmall + "}").assumptions.empty());
}

TEST_CASE("unknown keys of a config.json are reported") {
  const ModelSpec model = from_text(kSmall + ", acme_secret_gate: true, initializer_range: 0.02, eos_token_id: 2}");
  REQUIRE(model.assumptions.size() == 1);
  CHECK(model.assumptions.front() == "a key of the config not understood, and left out: acme_secret_gate");
  CHECK(model.unread == std::vector<std::string>{"acme_secret_gate"});
  std::string many;
  for (int i = 0; i < 10; ++i) many += ", acme_" + std::to_string(i) + ": 1";
  CHECK(contains(from_text(kSmall + many + "}").assumptions.front(), "acme_7 and 2 more"));
}

TEST_CASE("an unknown hybrid is read as the known one whose keys it has") {
  const std::string sizes =
      ", hidden_size: 256, num_hidden_layers: 8, num_attention_heads: 8, vocab_size: 1000, "
      "intermediate_size: 512";
  const ModelSpec jamba =
      from_text("{model_type: new_one" + sizes +
                ", attn_layer_period: 4, attn_layer_offset: 1, mamba_d_state: 16, mamba_dt_rank: 16, "
                "num_experts: 4, num_experts_per_tok: 2}");
  CHECK(contains(jamba.assumptions.front(), "taken for Jamba"));
  int attends = 0;
  for (const LayerKind& kind : jamba.layers)
    attends += std::holds_alternative<GroupedAttention>(kind.mixer) * kind.count;
  CHECK(attends == 2);
  const ModelSpec latent = from_text("{model_type: new_one" + sizes +
                                     ", kv_lora_rank: 64, qk_nope_head_dim: 32, qk_rope_head_dim: 16, v_head_dim: 32}");
  CHECK(std::get<LatentAttention>(latent.layers[0].mixer).latent_dim == 64);
  CHECK(contains(message("{model_type: griffin" + sizes + ", lru_width: 256}"), "'lru_width'"));
}

TEST_CASE("an unknown decoder has a gate where its activation has one") {
  const std::string rest = kSmall.substr(std::string("{model_type: llama, ").size());
  const auto gated = [&](const std::string& activation) {
    const ModelSpec model = from_text("{model_type: new_one, hidden_act: " + activation + ", " + rest + "}");
    return std::get<DenseFeedForward>(model.layers[0].feed_forward).gated;
  };
  CHECK(gated("silu"));
  CHECK(gated("gelu_pytorch_tanh"));
  CHECK(!gated("relu2"));
  CHECK(!gated("gelu"));
}

TEST_CASE("kinds of layers that a reader does not know are not passed over in silence") {
  const ModelSpec model = from_text(kSmall + ", layer_types: [full_attention, retention, retention, full_attention]}");
  REQUIRE(model.assumptions.size() == 1);
  CHECK(model.assumptions.front() == "layers of type 'retention' are taken for full attention");
  CHECK(contains(message("{model_type: llama, hidden_size: 250, num_hidden_layers: 2, vocab_size: 10, "
                         "num_attention_heads: 8, intermediate_size: 8}"),
                 "8 heads do not divide a hidden size of 250"));
}

TEST_CASE("a nested text part may leave out what transformers has by default") {
  const ModelSpec model = from_text("{model_type: llava, text_config: {model_type: llama, vocab_size: 32064}}");
  // LLaVA-1.5-7B's language model: 6,738,415,616 of Llama-2-7B and 64 more rows in embedding and head
  CHECK(count_parameters(model).total == 6738415616.0 + 2 * 64 * 4096);
  CHECK(contains(model.assumptions.front(), "transformers' defaults"));
  CHECK(contains(message("{model_type: llama, vocab_size: 32064}"), "missing key 'hidden_size'"));
}

TEST_CASE("state-spaces' own configs have no model_type and pad the vocabulary") {
  const ModelSpec model = from_text(
      "{d_model: 2048, n_layer: 48, vocab_size: 50277, ssm_cfg: {layer: Mamba2}, pad_vocab_size_multiple: 16, "
      "tie_embeddings: true}");
  CHECK(model.vocabulary == 50288);
  // a layer: in 2048 x (2 x 4096 + 2 x 128 + 64), convolution 4352 x 5, A, D and dt 3 x 64, norms 4096 + 2048, out
  // 4096 x 2048 = 25,849,280
  CHECK(count_parameters(model).total == 48 * 25849280.0 + 50288 * 2048.0 + 2048);
}

TEST_CASE("caches are shared between layers that see the same") {
  const auto owners = [](const std::string& more) {
    int count = 0;
    for (const LayerKind& kind : from_text(kSmall + more + "}").layers) {
      if (std::get<GroupedAttention>(kind.mixer).owns_cache) count += kind.count;
    }
    return count;
  };
  CHECK(owners("") == 4);
  CHECK(owners(", cla_share_factor: 1") == 4);
  CHECK(owners(", cla_share_factor: 2") == 2);
  CHECK(owners(", cla_share_factor: 2, use_cla: false") == 4);
  CHECK(owners(", num_kv_shared_layers: 1") == 3);
  const std::string mixed =
      ", sliding_window: 512, layer_types: [full_attention, sliding_attention, full_attention, "
      "sliding_attention]";
  CHECK(owners(mixed + ", num_kv_shared_layers: 2") == 2);  // each reads the one of its kind
  CHECK(owners(mixed + ", cla_share_factor: 2") == 2);      // one of either kind
  CHECK(contains(message(kSmall + mixed + ", num_kv_shared_layers: 3}"), "no layer before layer 1 keeps such a cache"));
  CHECK(contains(message(kSmall + ", num_kv_shared_layers: 4}"), "must be less than the 4 layers"));
  CHECK(contains(message(kSmall + ", cla_share_factor: 0}"), "must be at least 1"));
}

TEST_CASE("models that are not autoregressive decoders are refused") {
  CHECK(contains(message("{architectures: [XForMaskedLM], model_type: x, hidden_size: 768}"), "XForMaskedLM"));
  CHECK(contains(message("{model_type: x, is_encoder_decoder: true}"), "encoder-decoder"));
  CHECK(contains(message("{model_type: clip, hidden_size: 768}"), "'clip' is not an autoregressive language model"));
  CHECK(contains(message("{model_type: xlstm, hidden_size: 768, num_hidden_layers: 12, vocab_size: 100}"),
                 "without attention heads"));
  CHECK(contains(message("{producer: {name: modelopt}}"), "not a model's config"));
}

TEST_CASE("impossible sizes are refused with their location") {
  CHECK(message("{model_type: llama}") == "config.json:1:1: missing key 'hidden_size' of a model");
  CHECK(contains(
      message("{model_type: llama, hidden_size: 256, num_hidden_layers: 0, vocab_size: 10, num_attention_heads: 8, "
              "intermediate_size: 8}"),
      "'num_hidden_layers': must be between 1 and 10000"));
  CHECK(contains(
      message("{model_type: llama, hidden_size: 256, num_hidden_layers: 2, vocab_size: 10, num_attention_heads: 8, "
              "num_key_value_heads: 3, intermediate_size: 8}"),
      "3 key-value heads do not divide 8 heads"));
  CHECK(contains(
      message("{model_type: mixtral, hidden_size: 256, num_hidden_layers: 2, vocab_size: 10, num_attention_heads: 8, "
              "intermediate_size: 8, num_local_experts: 4, num_experts_per_tok: 5}"),
      "between 1 and the number of experts 4"));
}

TEST_CASE("sizes in parts, of nothing and without end are refused, whatever they are of") {
  const std::string moe =
      "{model_type: qwen3_moe, vocab_size: 32000, hidden_size: 512, num_hidden_layers: 2, num_attention_heads: 8, "
      "num_key_value_heads: 2, num_experts_per_tok: 2";
  CHECK(message(moe + ", num_experts: 8, moe_intermediate_size: 64}").empty());
  CHECK(contains(message(moe + ", num_experts: 8, moe_intermediate_size: 64.5}"),
                 "'moe_intermediate_size': must be a whole number, got 64.5"));
  CHECK(contains(message(moe + ", num_experts: 8, moe_intermediate_size: null}"),
                 "'moe_intermediate_size': is null: the width of an expert must be a number"));
  CHECK(contains(message(moe + ", num_experts: 8, moe_intermediate_size: 0}"),
                 "'experts_gate_up' would be 512 x 0: sizes must be whole numbers of at least 1"));
  const std::string dbrx =
      "{model_type: dbrx, vocab_size: 32000, d_model: 512, n_layers: 2, n_heads: 8, attn_config: {kv_n_heads: 2}, "
      "ffn_config: {ffn_hidden_size: 64, moe_top_k: 2, moe_num_experts: ";
  CHECK(message(dbrx + "8}}").empty());
  CHECK(contains(message(dbrx + "8.5}}"), "2 of 8.5 experts: both must be whole numbers of at least 1"));
  CHECK(contains(message("{model_type: mamba2, vocab_size: 1000, hidden_size: 500, expand: 2, head_dim: 64, "
                         "num_hidden_layers: 2, state_size: 16, n_groups: 1, conv_kernel: 4}"),
                 "sizes must be whole numbers of at least 1"));
  CHECK(contains(
      message("{model_type: deepseek_v3, vocab_size: 100, hidden_size: 512, num_hidden_layers: 1, "
              "num_attention_heads: 8, kv_lora_rank: 64, qk_rope_head_dim: 16, qk_nope_head_dim: 0, v_head_dim: 16, "
              "intermediate_size: 64}"),
      "'qk_nope_head_dim': must be at least 1"));
  CHECK(contains(message(moe + ", num_experts: 512000000, moe_intermediate_size: 64}"), "must be from 1 to 100000"));
}

TEST_CASE("derived models") {
  const ModelSpec teacher = shipped("nemotron-4-15b");
  const ModelSpec student = shipped("minitron-8b");
  CHECK(teacher.hidden == 6144);
  CHECK(student.hidden == 4096);
  CHECK(student.layer_count() == teacher.layer_count());
  CHECK(std::get<GroupedAttention>(student.layers[0].mixer).head_dim == 128);  // heads keep their width
  CHECK(contains(message("{name: x, base: llama-3.1-8b, prune: {layers: 40}}"),
                 "pruning cannot raise layers from 32 to 40"));
  CHECK(contains(message("{name: x, base: llama-3.1-8b, prune: {depth: 4}}"), "unknown key 'depth'"));
  CHECK(contains(message("{name: x, base: llama-3.1-8b}"), "either 'prune' or 'distilled_to'"));
  CHECK(contains(message("{name: x, base: llama-3.1-8b, prune: {experts: 4}}"), "the base model has no"));
  const ModelSpec half = from_text("{name: x, base: llama-3.1-8b, distilled_to: {layers: 16}}");
  CHECK(half.layer_count() == 16);
  CHECK(half.name == "x");
}

TEST_CASE("which layers have experts is honoured, and refused where none is left") {
  const std::string sizes =
      "hidden_size: 256, num_hidden_layers: 4, num_attention_heads: 8, num_key_value_heads: 2, intermediate_size: 512, "
      "vocab_size: 1000, num_experts_per_tok: 2, ";
  const auto with_experts = [&](const std::string& rest) {
    const ModelSpec model = from_text("{" + sizes + rest + "}");
    int count = 0;
    for (int kind : model.order) {
      const FeedForward& block = model.layers[static_cast<std::size_t>(kind)].feed_forward;
      count += std::holds_alternative<ExpertFeedForward>(block) ? 1 : 0;
    }
    return count;
  };
  const std::string arctic = "model_type: arctic, num_local_experts: 8";
  CHECK(with_experts(arctic + ", moe_layer_frequency: 1") == 4);
  CHECK(with_experts(arctic + ", moe_layer_frequency: 2") == 2);
  CHECK_THROWS_AS(with_experts(arctic + ", moe_layer_frequency: 5"), ConfigError);
  const std::string ernie = "model_type: ernie4_5_moe, moe_num_experts: 8, moe_k: 2, moe_intermediate_size: 128";
  CHECK(with_experts(ernie + ", moe_layer_start_index: 1") == 3);
  CHECK_THROWS_AS(with_experts(ernie + ", moe_layer_start_index: 4"), ConfigError);
  CHECK_THROWS_AS(with_experts(ernie + ", moe_layer_interval: 9"), ConfigError);
}

TEST_CASE("combinations: windows switched off, latents shared between layers, models derived where they are used") {
  const ModelSpec windows = from_text(
      "{name: x, model_type: gemma3_text, hidden_size: 64, num_hidden_layers: 6, "
      "intermediate_size: 128, sliding_window: null, sliding_window_pattern: 6}");
  for (const LayerKind& kind : windows.layers) CHECK(std::get<GroupedAttention>(kind.mixer).window == 0);
  // Five windows and one layer that sees everything, twice: of a pair of a kind the first keeps the cache.
  const std::string gemma =
      "{name: x, model_type: gemma3_text, hidden_size: 64, num_hidden_layers: 12, "
      "intermediate_size: 128, sliding_window: 16, sliding_window_pattern: 6, cla_share_factor: ";
  const auto owners = [&](const std::string& factor) {
    int global = 0, local = 0;
    for (const LayerKind& kind : from_text(gemma + factor + "}").layers) {
      const auto& a = std::get<GroupedAttention>(kind.mixer);
      if (a.owns_cache) (a.window > 0 ? local : global) += kind.count;
    }
    return std::pair{global, local};
  };
  CHECK(owners("1") == std::pair{2, 10});
  CHECK(owners("2") == std::pair{1, 5});
  CHECK(owners("3") == std::pair{1, 4});
  const auto latents = [](int factor) {
    int count = 0;
    const ModelSpec model = parse_model(resolve_named(
        "models", parse_config_text("{name: deepseek-v3, cla_share_factor: " + std::to_string(factor) + "}", "t")));
    for (const LayerKind& kind : model.layers) {
      if (std::get<LatentAttention>(kind.mixer).owns_cache) count += kind.count;
    }
    return count;
  };
  CHECK(latents(1) == 61);
  CHECK(latents(2) == 31);
  const auto inlined = [](const std::string& text) {
    return parse_model(resolve_named("models", parse_config_text(text, "t")));
  };
  CHECK(inlined("{base: llama-3.1-8b, prune: {layers: 16}}").layer_count() == 16);
  CHECK(inlined("{base: llama-3.1-8b, prune: {layers: 16}}").name == "llama-3.1-8b-pruned");
  CHECK(inlined("{name: mine, base: llama-3.1-8b, prune: {layers: 16}}").name == "mine");
}

TEST_CASE("a pattern of layers and their number must agree") {
  const std::string path = std::string(ROOFCAST_SOURCE_DIR) + "/configs/models/nemotron-h-8b.yaml";
  const ConfigTree fewer = with_value(parse_config_file(path), "num_hidden_layers", make_scalar("16"), "test");
  std::string message;
  try {
    parse_model(fewer);
  } catch (const ConfigError& error) {
    message = error.what();
  }
  CHECK(message.find("'num_hidden_layers' is 16, but the pattern of layers has 52: change both") != std::string::npos);
}

TEST_CASE("configs whose model_type is missing or wrong are read by their architecture") {
  // meituan-longcat/LongCat-Flash-Chat: 560 B, of which a token passes 27 B on average (arXiv:2509.01322)
  const ModelSpec longcat = from_text(
      R"({"architectures": ["LongcatFlashForCausalLM"], "attention_method": "MLA", "vocab_size": 131072,
          "hidden_size": 6144, "ffn_hidden_size": 12288, "expert_ffn_hidden_size": 2048, "num_layers": 28,
          "num_attention_heads": 64, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64,
          "v_head_dim": 128, "qk_nope_head_dim": 128, "n_routed_experts": 512, "zero_expert_num": 256, "moe_topk": 12,
          "max_position_embeddings": 131072})");
  CHECK(longcat.layer_count() == 56);
  CHECK(count_parameters(longcat).total / 1e9 == doctest::Approx(560).epsilon(0.005));
  CHECK(count_parameters(longcat).active / 1e9 == doctest::Approx(27).epsilon(0.03));
  // xai-org/grok-2: 270 B; a dense block beside the experts
  const ModelSpec grok = from_text(
      R"({"architectures": ["Grok1ForCausalLM"], "model_type": "git", "vocab_size": 131072, "hidden_size": 8192,
          "intermediate_size": 32768, "moe_intermediate_size": 16384, "max_position_embeddings": 131072,
          "num_experts_per_tok": 2, "num_local_experts": 8, "residual_moe": true, "num_attention_heads": 64,
          "num_key_value_heads": 8, "num_hidden_layers": 64, "head_dim": 128, "sliding_window_size": -1})");
  CHECK(count_parameters(grok).total / 1e9 == doctest::Approx(270).epsilon(0.005));
  CHECK(count_parameters(grok).active / 1e9 == doctest::Approx(115).epsilon(0.02));
  // inceptionai/jais-13b: 13.0 B
  const ModelSpec jais = from_text(
      R"({"architectures": ["JAISLMHeadModel"], "model_type": "jais", "activation_function": "swiglu", "n_embd": 5120,
          "n_head": 40, "n_inner": 13653, "n_layer": 40, "n_positions": 2048, "position_embedding_type": "alibi",
          "vocab_size": 84992})");
  CHECK(count_parameters(jais).total / 1e9 == doctest::Approx(13.0).epsilon(0.005));
}

TEST_CASE("experts and states in words of their own are refused") {
  const std::string sizes =
      "{model_type: new_one, hidden_size: 256, num_hidden_layers: 4, num_attention_heads: 8, intermediate_size: 512, "
      "vocab_size: 1000, ";
  CHECK(contains(message(sizes + "num_routed_experts: 64}"), "'num_routed_experts': 'new_one' has experts, in words"));
  CHECK(contains(message(sizes + "mamba_step: 2}"), "'new_one' has layers with a state, in words"));
  CHECK(message(sizes + "moe_layers: null}").empty());
}

TEST_CASE("layers that attend only to images are refused") {
  CHECK(contains(message(R"({"model_type": "mllama", "text_config": {"model_type": "mllama_text_model",
                              "cross_attention_layers": [3, 8], "hidden_size": 256, "num_hidden_layers": 10,
                              "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 512,
                              "vocab_size": 100}})"),
                 "2 of the layers of 'mllama_text_model' attend only to images"));
}

TEST_CASE("true and false in quotes are read as such, and noted") {
  const ModelSpec model = from_text(kSmall + ", attention_bias: \"true\", tie_word_embeddings: \"false\"}");
  CHECK(std::get<GroupedAttention>(model.layers[0].mixer).qkv_bias);
  CHECK_FALSE(model.tied_embedding);
  REQUIRE(model.assumptions.size() == 2);
  CHECK(model.assumptions[0] == "'attention_bias': true in quotes is read as true");
  CHECK(model.assumptions[1] == "'tie_word_embeddings': false in quotes is read as false");
  CHECK(contains(message(kSmall + ", attention_bias: \"no\"}"), "must be true or false, got the quoted text 'no'"));
}

TEST_CASE("a config of an unknown class without tie_word_embeddings has tied embeddings, as in transformers") {
  const std::string sizes =
      ", hidden_size: 64, num_hidden_layers: 1, num_attention_heads: 4, vocab_size: 100, intermediate_size: 128";
  const double tied = count_parameters(from_text("{model_type: xglm" + sizes + "}")).total;
  CHECK(count_parameters(from_text("{model_type: xglm" + sizes + ", tie_word_embeddings: false}")).total ==
        tied + 100 * 64);
  CHECK(count_parameters(from_text("{model_type: persimmon" + sizes + "}")).total == tied + 100 * 64);
  CHECK_FALSE(from_text(kSmall + "}").tied_embedding);  // LlamaConfig has false
}

TEST_CASE("LLaDA's own names of sizes") {
  const ModelSpec model = from_text(
      "{model_type: llada, d_model: 64, n_heads: 4, n_kv_heads: 2, n_layers: 3, mlp_hidden_size: 96, vocab_size: 100, "
      "max_sequence_length: 4096, weight_tying: false}");
  CHECK(model.layer_count() == 3);
  CHECK(model.max_context == 4096);
  CHECK_FALSE(model.tied_embedding);
  CHECK(std::get<GroupedAttention>(model.layers[0].mixer).kv_heads == 2);
  CHECK(std::get<DenseFeedForward>(model.layers[0].feed_forward).inter == 96);
}

TEST_CASE("encoders next to a nested text config are read, and others are reported") {
  const std::string text =
      "text_config: {model_type: qwen2_5_omni_text, hidden_size: 64, num_hidden_layers: 1, num_attention_heads: 4, "
      "vocab_size: 100, intermediate_size: 128}";
  const std::string vision =
      "vision_config: {model_type: qwen2_5_omni_vision_encoder, depth: 2, hidden_size: 32, intermediate_size: 48, "
      "num_heads: 2, patch_size: 14, spatial_merge_size: 2, temporal_patch_size: 2}";
  const std::string audio =
      "audio_config: {model_type: qwen2_5_omni_audio_encoder, d_model: 16, encoder_layers: 1, encoder_attention_heads: "
      "2, encoder_ffn_dim: 64, num_mel_bins: 8}";
  const ModelSpec omni = from_text("{model_type: qwen2_5_omni, talker_config: {hidden_size: 8}, thinker_config: {" +
                                   text + ", " + vision + ", " + audio + "}}");
  REQUIRE(omni.encoders.pictures);
  CHECK(omni.encoders.pictures->gated);
  REQUIRE(omni.encoders.sounds);
  CHECK(omni.encoders.sounds->merge == 2);  // 25 tokens a second
  CHECK(omni.extra_parameters > 2 * (4 * 32 * 32 + 3 * 32 * 48));
  REQUIRE(omni.assumptions.size() == 3);
  CHECK(contains(omni.assumptions[0], "vision tower: about"));
  CHECK(contains(omni.assumptions[1], "audio tower: about"));
  CHECK(contains(omni.assumptions[2], "left out, in memory and in work: talker_config"));
  // Widths under DeepSeek-VL2's names: 2 layers of 4 x 32^2 + 2 x 32 x 64
  const ModelSpec other = from_text(
      "{model_type: deepseek_vl_v2, language_config: {model_type: llama, hidden_size: 64, "
      "num_hidden_layers: 1, num_attention_heads: 4, vocab_size: 100, intermediate_size: "
      "128}, vision_config: {model_type: vision, layers: 2, width: 32, mlp_ratio: 2}}");
  CHECK(other.extra_parameters == 2 * (4 * 32 * 32 + 2 * 32 * 64));
  const ModelSpec unsized = from_text("{model_type: gemma3n, audio_config: {model_type: some_audio, hidden_size: 8}, " +
                                      kSmall.substr(kSmall.find("hidden_size")) + "}");
  CHECK(std::any_of(unsized.assumptions.begin(), unsized.assumptions.end(), [](const std::string& said) {
    return contains(said, "audio tower: left out, its config does not say how large it is");
  }));
}

TEST_CASE("a timm encoder has the parameters that its makers publish, not a number in its name") {
  const auto parameters = [](const char* architecture) {
    return from_text(
               fmt::format("{{model_type: gemma3n, vision_config: {{model_type: gemma3n_vision, architecture: {}, "
                           "hidden_size: 2048}}, {}}}",
                           architecture, kSmall.substr(kSmall.find("hidden_size"))))
        .extra_parameters;
  };
  const double without = parameters("some_tower");
  CHECK(parameters("mobilenetv5_300m_enc") == without + 300e6);
  CHECK(parameters("some_900m_tower") == without);
}

TEST_CASE("PaliGemma's image has one token per patch") {
  const ModelSpec model = from_text(
      "{model_type: paligemma, text_config: {model_type: gemma2, hidden_size: 64, num_hidden_layers: 2, "
      "num_attention_heads: 4, num_key_value_heads: 2, head_dim: 16, vocab_size: 100, intermediate_size: 128}, "
      "vision_config: {model_type: siglip_vision_model, hidden_size: 32, image_size: 224, intermediate_size: 64, "
      "num_attention_heads: 2, num_hidden_layers: 1, patch_size: 14}}");
  REQUIRE(model.encoders.pictures);
  CHECK(picture_work(*model.encoders.pictures, 1, 1024, 768).tokens == 256);  // (224 / 14)^2
}
