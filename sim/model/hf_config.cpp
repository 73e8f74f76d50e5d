#include "sim/model/hf_config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"

namespace roofcast {
namespace {

constexpr std::array<std::string_view, 5> kTextParts{"text_config", "llm_config", "language_config", "thinker_config",
                                                     "language_model_config"};
constexpr Range kCount{0.0, 1e9};

ConfigTree text_part(const ConfigTree& whole) {
  for (std::string_view key : kTextParts) {
    const ConfigTree* part = whole->find(key);
    if (part != nullptr && *part && (*part)->kind == ConfigNode::Kind::kMap) return text_part(*part);
  }
  return whole;
}

/// Default sizes of transformers' LlamaConfig, MistralConfig and Qwen2Config. Multimodal configs (LLaVA) omit values of
/// their text part that equal these.
struct LibraryDefaults {
  std::string_view model_type;
  std::array<double, 6> sizes;
};
constexpr std::array<std::string_view, 6> kDefaultedKeys{"hidden_size",         "intermediate_size",
                                                         "num_hidden_layers",   "num_attention_heads",
                                                         "num_key_value_heads", "vocab_size"};
constexpr std::array<LibraryDefaults, 3> kLibraryDefaults{{{"llama", {4096, 11008, 32, 32, 32, 32000}},
                                                           {"mistral", {4096, 14336, 32, 32, 8, 32000}},
                                                           {"qwen2", {4096, 22016, 32, 32, 32, 151936}}}};

/// The text part, with defaults if it is nested and states neither width nor depth.
ConfigTree text_with_defaults(const ConfigTree& whole, std::vector<std::string>& said) {
  const ConfigTree part = text_part(whole);
  const ConfigTree* type = part->find("model_type");
  if (part == whole || type == nullptr || !*type || part->find("hidden_size") || part->find("num_hidden_layers")) {
    return part;
  }
  for (const LibraryDefaults& defaults : kLibraryDefaults) {
    if ((*type)->scalar != defaults.model_type) continue;
    std::vector<ConfigNode::Entry> entries;
    for (std::size_t i = 0; i < kDefaultedKeys.size(); ++i) {
      entries.push_back({std::string(kDefaultedKeys[i]), part->location,
                         make_scalar(fmt::format("{}", defaults.sizes[i]), part->location)});
    }
    said.push_back(
        fmt::format("sizes that the text part leaves out are transformers' defaults for '{}'", defaults.model_type));
    return overlay(make_map(std::move(entries), part->location), part);
  }
  return part;
}

/// Configs of state-spaces/mamba have {d_model, n_layer, ssm_cfg: {layer: Mamba2}} and no model_type.
std::string state_space_type(ConfigReader& in) {
  ConfigReader mixer = in.child("ssm_cfg");
  return mixer.text("layer", "Mamba1") == "Mamba2" ? "mamba2" : "mamba";
}

/// Architectures whose configs have no model_type (LongCat) or a wrong one (Grok-2: "git").
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kTypeOfArchitecture{
    {{"LongcatFlashForCausalLM", "longcat_flash"},
     {"Grok1ForCausalLM", "grok-1"},
     {"Grok1ModelForCausalLM", "grok-1"}}};

/// Unread keys, as finish() would report them.
std::vector<std::string> unread_keys(const ConfigReader& in) {
  std::vector<std::string> keys;
  for (const std::string& key : in.keys()) {
    ConfigReader alone = in;
    for (const std::string& other : in.keys()) {
      if (other != key) alone.ignore(other);
    }
    try {
      alone.finish();
    } catch (const ConfigError&) {
      keys.push_back(key);
    }
  }
  return keys;
}

constexpr std::string_view kLatentKeys =
    "model_type deepseek_v3 with kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim and v_head_dim";
/// Common terms for the parts of a model, and the config keys that express them.
struct DesignWord {
  std::string_view word, keys;
};
constexpr std::array<DesignWord, 12> kDesignWords{{
    {"attention", "num_key_value_heads (MHA, GQA, MQA), sliding_window, kv_lora_rank (MLA)"},
    {"mla", kLatentKeys},
    {"kv_lora_rank", kLatentKeys},
    {"experts", "model_type mixtral with num_local_experts and num_experts_per_tok"},
    {"moe", "model_type mixtral with num_local_experts and num_experts_per_tok"},
    {"layers", "num_hidden_layers"},
    {"hidden", "hidden_size"},
    {"ffn", "intermediate_size"},
    {"heads", "num_attention_heads"},
    {"kv_heads", "num_key_value_heads"},
    {"window", "sliding_window"},
    {"vocab", "vocab_size"},
}};

/// Rejects these terms and names the keys to use instead.
void refuse_design_words(const ConfigReader& in) {
  const std::vector<std::string> keys = in.keys();
  const auto is_written = [&](const DesignWord& w) {
    return std::find(keys.begin(), keys.end(), w.word) != keys.end();
  };
  const auto word = std::find_if(kDesignWords.begin(), kDesignWords.end(), is_written);
  if (word == kDesignWords.end()) return;
  const std::vector<std::string> unread = unread_keys(in);
  if (std::find(unread.begin(), unread.end(), word->word) == unread.end()) return;
  throw ConfigError(in.location_of(word->word),
                    fmt::format("unknown key '{}' of a model; its config says {}", word->word, word->keys));
}

/// Drops keys that do not affect the cost of a forward pass: transformers' own (PretrainedConfig,
/// configuration_utils.py), and those about tokens, training, generation, and rotary scaling.
std::vector<std::string> meaningful(std::vector<std::string> keys) {
  static constexpr std::string_view kIrrelevant =
      " _attn_implementation _attn_implementation_autoset _commit_hash _name_or_path add_cross_attention "
      "architectures attention_bias attn_implementation auto_map best_of bos_token chat chunk_size_feed_forward "
      "classifier_dropout clip_qkv cross_attention_hidden_size dtype early_stopping embd_pdrop ep_size "
      "experts_per_token finetuning_task fuse_cross_entropy fuse_norm gradient_checkpointing head_dim "
      "hf_quant_config hidden_act hugging_face id2label initial_context_length initializer_range "
      "intermediate_size is_decoder is_encoder_decoder label2id layer_norm_eps layer_norm_epsilon "
      "length_penalty linear_fc2_use_fp32 logits_scaling max_length max_new_tokens max_window_layers "
      "min_length mlp_hidden_act model_type mscale multimodal name norm_elementwise_affine norm_eps "
      "norm_epsilon norm_topk_prob norm_type num_beams num_key_value_heads original_max_position_embeddings "
      "output_attentions output_hidden_states output_router_logits output_scores partial_rotary_factor "
      "prefix preprocessor_config pretraining_tp problem_type pruned_heads qk_norm_type quantization_config "
      "query_pre_attn_scalar remove_invalid_values reorder_and_upcast_attn repetition_penalty "
      "residual_multiplier return_dict rms_norm_eps rope_interleave rope_local_base_freq rope_parameters "
      "rope_pct rope_ratio rope_scaling rope_theta rope_type rotary_base rotary_dim rotary_emb_base "
      "rotary_pct routed_scaling_factor scale_attn_by_inverse_layer_idx scale_attn_weights scale_emb "
      "scoring_func seq_aux sliding_window source swiglu_limit task_specific_params temperature "
      "tf_legacy_loss tie_embeddings tie_encoder_decoder tie_word_embeddings tokenizer_class top_k top_p "
      "topk_group topk_method torch_dtype torchscript transformers_version typical_p use_bfloat16 use_cache "
      "use_return_dict use_sliding_window z_loss_coefficient activation_function scale_embedding n_ctx output_past "
      "is_gated_act dense_act_fn num_logits_to_keep logit_scale flash_attn attn_temperature_len extrapolation_factor "
      "attn_factor beta_fast beta_slow mla_scale_q_lora mla_scale_kv_lora embeddings_scale scale_qk_dot_by_d "
      "width_scale "
      "hidden_activation for_llm_compressor bad_words_ids diversity_penalty do_sample encoder_no_repeat_ngram_size "
      "exponential_decay_length_penalty "
      "no_repeat_ngram_size num_beam_groups num_return_sequences return_dict_in_generate block_dim block_use_swiglu "
      "conv_dim conv_dim_out num_heads use_pos_enc mlp_only_layers mtp_use_dedicated_embeddings mtp_share_layers "
      "_num_mtp_layers "
      "score_function classifier_proj_size median_filter_width use_weighted_layer_sum forced_decoder_ids ";
  std::erase_if(keys, [](const std::string& key) {
    const auto holds = [&](std::string_view part) { return key.find(part) != std::string::npos; };
    return kIrrelevant.find(" " + key + " ") != std::string_view::npos || holds("token_id") || holds("token_index") ||
           holds("dropout") || holds("pdrop") || holds("initializer") || holds("aux_loss") || holds("_init") ||
           holds("rotary") || holds("rope_") || holds("_eps") || holds("jitter") || holds("softcap") ||
           holds("scaling") || holds("multiplier") || holds("layerdrop") || holds("mask_time") ||
           holds("mask_feature") || holds("spec_augment") || holds("suppress_tokens") || key.starts_with("summary_") ||
           key.starts_with("vision_") || key.starts_with("audio_");
  });
  return keys;
}

}  // namespace

HfConfig::HfConfig(const ConfigTree& whole)
    : whole_(whole, "a model"), text_(text_with_defaults(whole, said_), "a model"), nested_(text_part(whole) != whole) {
  model_type_ = text_.text("model_type", "");
  if (model_type_.empty()) model_type_ = whole_.text("model_type", "");
  if (model_type_.empty() && text_.has("ssm_cfg")) model_type_ = state_space_type(text_);
  architectures_ = whole_.texts("architectures");
  for (const auto& [name, type] : kTypeOfArchitecture) {
    if (std::find(architectures_.begin(), architectures_.end(), name) != architectures_.end()) model_type_ = type;
  }
  text_.ignore("architectures");
}

std::string_view HfConfig::key_of(Names names) const {
  for (std::string_view name : names) {
    if (text_.has(name)) return name;
  }
  return *names.begin();
}

bool HfConfig::has(Names names) const { return text_.has(key_of(names)); }
/// A list of equal values per layer stands for that value.
double HfConfig::factor(Names names, double default_value) {
  const std::string_view key = key_of(names);
  if (!is_list(names)) return text_.number(key, default_value, kCount);
  const std::vector<double> values = text_.numbers(key, kCount);
  if (values.empty()) return default_value;
  for (double value : values) {
    if (value != values.front()) fail(key, "a number for each layer, and not all are equal: this is not supported");
  }
  return values.front();
}
double HfConfig::number(Names names, double default_value) {
  const double value = factor(names, default_value);
  if (value != std::floor(value) && has(names))
    fail(key_of(names), fmt::format("must be a whole number, got {}", value));
  return value;
}
double HfConfig::number(Names names) {
  if (!has(names)) text_.number(key_of(names), kCount);  // reports the missing key
  return number(names, 0.0);
}
int HfConfig::integer(Names names) { return static_cast<int>(text_.integer(key_of(names), kCount)); }
int HfConfig::integer(Names names, int default_value) {
  return static_cast<int>(text_.integer(key_of(names), default_value, kCount));
}
bool HfConfig::flag(Names names, bool default_value) { return text_.boolean(key_of(names), default_value); }
std::string HfConfig::text(Names names, std::string_view default_value) {
  return text_.text(key_of(names), default_value);
}
ConfigTree HfConfig::tree(Names names) { return text_.tree(key_of(names)); }

bool HfConfig::is_list(Names names) const {
  const ConfigTree* found = text_.whole()->find(key_of(names));
  return found != nullptr && *found && (*found)->kind == ConfigNode::Kind::kList;
}

std::vector<double> HfConfig::numbers(Names names) {
  return is_list(names) ? text_.numbers(key_of(names)) : std::vector<double>{};
}
std::vector<std::string> HfConfig::texts(Names names) {
  return is_list(names) ? text_.texts(key_of(names)) : std::vector<std::string>{};
}

void HfConfig::say(const std::string& assumption) {
  if (std::find(said_.begin(), said_.end(), assumption) == said_.end()) said_.push_back(assumption);
}

void HfConfig::finish(bool ours) {
  if (!ours) {
    unread_ = meaningful(unread_keys(text_));
    constexpr std::size_t kNamed = 8;
    if (!unread_.empty())
      say(fmt::format("{} of the config not understood, and left out: {}{}", unread_.size() == 1 ? "a key" : "keys",
                      join({unread_.data(), std::min(kNamed, unread_.size())}, ", "),
                      unread_.size() > kNamed ? fmt::format(" and {} more", unread_.size() - kNamed) : ""));
    text_.ignore_rest();
    whole_.ignore_rest();
    return;
  }
  for (std::string_view key : kTextParts) whole_.ignore(key);
  if (!nested_) {  // two readers of the same map: keys read by either count
    for (std::string_view key : {"name", "source", "published", "hugging_face", "chat", "quantization_config",
                                 "hf_quant_config", "_name_or_path", "multimodal", "vision_config", "audio_config",
                                 "mm_tokens_per_image", "vision_soft_tokens_per_image", "spatial_merge_size"})
      text_.ignore(key);
  }
  // Every config has these, even if its architecture ignores them.
  for (std::string_view key : {"num_key_value_heads", "intermediate_size", "head_dim", "attention_bias", "hidden_act",
                               "rope_theta", "rms_norm_eps", "max_window_layers", "qk_norm_type", "mlp_hidden_act"}) {
    text_.ignore(key);
  }
  refuse_design_words(text_);
  text_.finish();
  if (nested_) whole_.finish();
}

ModelSpec start_model(HfConfig& in, const Traits& traits) {
  ModelSpec model;
  model.hidden = in.number({"hidden_size", "n_embd", "d_model", "dim"});
  const Names vocabulary{"vocab_size", "padded_vocab_size"};
  model.vocabulary = traits.vocabulary > 0 ? in.number(vocabulary, traits.vocabulary) : in.number(vocabulary);
  const double multiple = std::max(1.0, in.number({"pad_vocab_size_multiple"}, 1));
  model.vocabulary = std::ceil(model.vocabulary / multiple) * multiple;
  model.embedding_dim = in.number({"word_embed_proj_dim"}, model.hidden);
  model.max_context = in.number(
      {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx", "max_sequence_length"}, 0);
  model.max_context = in.number({"model_max_length"}, model.max_context);  // Command R; engines take it first
  bool tied = in.flag({"tie_word_embeddings", "tie_embeddings", "weight_tying"}, traits.tied);
  if (in.nested()) tied = in.outer().boolean("tie_word_embeddings", tied);
  model.tied_embedding = tied;
  model.head_bias = in.flag({"lm_head_bias"}, traits.head_bias);
  model.mtp_layers = in.number({"num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"}, 0);
  return model;
}

GroupedAttention read_attention(HfConfig& in, const Traits& traits) {
  GroupedAttention a;
  const Names heads{"num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"};
  a.heads = traits.heads > 0 ? in.number(heads, traits.heads) : in.number(heads);
  if (a.heads < 1) in.fail("num_attention_heads", "must be at least 1");
  const bool multi_query = in.flag({"multi_query"}, false);
  a.kv_heads = in.number({"num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num", "n_kv_heads"},
                         multi_query ? 1.0 : (traits.kv_heads > 0 ? traits.kv_heads : a.heads));
  const double hidden = in.number({"hidden_size", "n_embd", "d_model", "dim"});
  a.head_dim = in.number({"head_dim", "attention_head_dim", "kv_channels"},
                         traits.head_dim > 0 ? traits.head_dim : std::floor(hidden / a.heads));
  if (std::fmod(hidden, a.heads) != 0.0 && traits.head_dim <= 0 &&
      !in.has({"head_dim", "attention_head_dim", "kv_channels"})) {
    in.fail("num_attention_heads",
            fmt::format("{} heads do not divide a hidden size of {}, and there is no 'head_dim'", a.heads, hidden));
  }
  a.value_dim = in.number({"v_head_dim"}, a.head_dim);
  const bool bias = in.flag({"attention_bias", "use_bias", "bias"}, false);
  a.qkv_bias = in.flag({"qkv_bias", "use_qkv_bias", "add_qkv_bias"}, bias || traits.qkv_bias);
  a.output_bias = in.flag({"attention_out_bias", "o_bias"}, (bias && traits.bias_on_output) || traits.output_bias);
  a.qk_norm = in.flag({"use_qk_norm", "qk_layernorm", "qk_norm"}, traits.qk_norm);
  a.sinks = traits.sinks;
  a.output_gate = in.flag({"attn_output_gate", "attention_output_gate"}, traits.output_gate);
  a.rotary = traits.rotary;
  return a;
}

DenseFeedForward read_dense(HfConfig& in, const Traits& traits) {
  DenseFeedForward f;
  const Names inter{"intermediate_size_mlp", "dense_intermediate_size", "intermediate_size", "ffn_dim", "n_inner",
                    "ffn_hidden_size",       "mlp_hidden_size"};
  const double hidden = in.number({"hidden_size", "n_embd", "d_model", "dim"});
  if (traits.inter_factor <= 0 && !in.has(inter))
    in.fail("intermediate_size", "missing: the width of the feed-forward block");
  f.inter = traits.inter_factor > 0 ? in.number(inter, traits.inter_factor * hidden) : in.number(inter);
  f.gated = traits.gated;
  f.bias = in.flag({"mlp_bias", "use_bias"}, traits.mlp_bias);
  return f;
}

ExpertFeedForward read_experts(HfConfig& in, const Traits& traits) {
  ExpertFeedForward f;
  f.experts = in.number({"n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts"});
  f.top_k = in.number({"num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk", "top_k_experts",
                       "moe_top_k", "experts_per_token"});
  // Without a key of their own, experts are as wide as a dense block; a null key is an error.
  for (const std::string_view key : {"moe_intermediate_size", "expert_ffn_hidden_size"}) {
    const ConfigTree* width = in.reader().whole()->find(key);
    if (width != nullptr && !in.has({key})) in.fail(key, "is null: the width of an expert must be a number");
  }
  f.inter = in.number({"moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size"});
  f.gated = traits.gated;
  const double shared =
      in.number({"n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert"}, 0);
  f.shared_inter = in.number({"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
                              "shared_intermediate_size", "share_expert_dim"},
                             shared * f.inter);
  f.shared_gate = traits.shared_gate;
  f.bias = traits.expert_bias;
  if (in.flag({"residual_moe"}, false)) f.dense_inter = in.number({"intermediate_size"});  // Grok-2
  f.router_bias = in.flag({"use_routing_bias", "use_moe_router_bias"}, traits.router_bias);
  f.groups = in.number({"n_group"}, 1);
  f.groups_kept = in.number({"topk_group"}, f.groups);
  if (f.groups < 1 || f.groups > f.experts) {
    in.fail("n_group", fmt::format("must be between 1 and the number of experts {}, got {}", f.experts, f.groups));
  }
  if (f.groups_kept < 1 || f.groups_kept > f.groups)
    in.fail("topk_group", fmt::format("must be between 1 and n_group {}, got {}", f.groups, f.groups_kept));
  f.latent = in.number({"moe_latent_size", "routed_expert_hidden_size"}, 0);
  if (f.experts < kExpertCount.low || f.experts > kExpertCount.high)
    in.fail("num_experts", fmt::format("must be from {} to {}", kExpertCount.low, kExpertCount.high));
  if (f.top_k < 1 || f.top_k > f.experts) {
    in.fail("num_experts_per_tok",
            fmt::format("must be between 1 and the number of experts {}, got {}", f.experts, f.top_k));
  }
  return f;
}

int layer_count(HfConfig& in) {
  const int layers = in.integer({"num_hidden_layers", "n_layer", "num_layers", "n_layers"});
  if (layers < 1 || layers > 10000) in.fail("num_hidden_layers", "must be between 1 and 10000");
  return layers;
}

LayerKind make_layer(Mixer mixer, FeedForward feed_forward, const Traits& traits) {
  LayerKind kind;
  kind.mixer = std::move(mixer);
  kind.feed_forward = std::move(feed_forward);
  kind.norms = traits.norms;
  kind.norm_bias = traits.norm_bias;
  kind.parallel_block = traits.parallel_block;
  return kind;
}

/// Grok-2 writes -1 for none.
double read_window(HfConfig& in) {
  constexpr std::string_view kNone = "sliding_window_size";
  if (in.has({kNone}) && !in.has({"sliding_window"}) && in.reader().number(kNone, 0) < 0) return 0;
  return in.number({"sliding_window", kNone, "attention_chunk_size"}, 0);
}

std::vector<double> read_windows(HfConfig& in, int layers, int pattern) {
  const std::size_t n = static_cast<std::size_t>(layers);
  const double window = read_window(in);
  const Names period{"sliding_window_pattern", "_sliding_window_pattern"};
  std::vector<double> windows(n, 0.0);
  const std::vector<std::string> types = in.texts({"layer_types"});
  if (!types.empty()) {
    for (const std::string_view key : period) in.reader().ignore(key);  // redundant shorthand
    if (types.size() < n) in.fail("layer_types", fmt::format("names {} layers of {}", types.size(), layers));
    for (std::size_t i = 0; i < n; ++i) {
      if (types[i] == "sliding_attention" || types[i] == "chunked_attention") {
        windows[i] = window;
      } else if (types[i] != "full_attention" && types[i] != "attention" && types[i] != "global_attention") {
        in.say(fmt::format("layers of type '{}' are taken for full attention", types[i]));
      }
    }
    return windows;
  }
  if (!in.flag({"use_sliding_window"}, true) || window <= 0) {
    (void)in.text(period, "");  // a period of windows that are switched off
    return windows;
  }
  const bool qwen = in.has({"use_sliding_window"});  // there the first max_window_layers layers see everything
  const std::size_t first = qwen ? static_cast<std::size_t>(in.integer({"max_window_layers"}, layers)) : 0;
  const std::string letters = in.text(period, "");  // EXAONE 4: "LLLG", local and global
  if (letters.find_first_not_of("LG") == std::string::npos && !letters.empty()) {
    for (std::size_t i = 0; i < n; ++i) windows[i] = letters[i % letters.size()] == 'L' ? window : 0.0;
    return windows;
  }
  const std::size_t every = static_cast<std::size_t>(in.integer(period, pattern));
  for (std::size_t i = first; i < n; ++i) {
    if (every == 0 || (i + 1) % every != 0) windows[i] = window;
  }
  return windows;
}

std::vector<bool> read_sparse_layers(HfConfig& in, int layers) {
  const std::size_t n = static_cast<std::size_t>(layers);
  std::vector<bool> sparse(n, true);
  if (in.is_list({"moe_layer_freq"})) {
    const std::vector<double> list = in.numbers({"moe_layer_freq"});
    for (std::size_t i = 0; i < n && i < list.size(); ++i) sparse[i] = list[i] != 0;
  } else {
    const std::size_t every = static_cast<std::size_t>(
        std::max(1, in.integer({"moe_layer_freq", "interleave_moe_layer_step", "decoder_sparse_step"}, 1)));
    for (std::size_t i = 0; i < n; ++i) {
      sparse[i] = in.has({"moe_layer_freq"}) ? i % every == 0 : (i + 1) % every == 0;
    }
  }
  const std::vector<std::string> types = in.texts({"mlp_layer_types"});
  for (std::size_t i = 0; i < n && i < types.size(); ++i) sparse[i] = types[i] == "sparse";
  for (double i : in.numbers({"mlp_only_layers"})) {
    if (i >= 0 && i < layers) sparse[static_cast<std::size_t>(i)] = false;
  }
  // ERNIE 4.5: every interval-th layer from the start index on, up to the end index.
  const std::size_t start = static_cast<std::size_t>(in.integer({"moe_layer_start_index"}, 0));
  const double last = in.reader().number("moe_layer_end_index", -1);  // negative: the last layer
  const std::size_t end = last < 0 ? n : static_cast<std::size_t>(last);
  const std::size_t interval = static_cast<std::size_t>(std::max(1, in.integer({"moe_layer_interval"}, 1)));
  const auto any = [&] { return std::find(sparse.begin(), sparse.end(), true) != sparse.end(); };
  const bool before = any();
  for (std::size_t i = 0; i < n; ++i) {
    if (i < start || i > end || (i + 1) % interval != 0) sparse[i] = false;
  }
  if (before && !any()) {
    const std::string_view key = start > 0   ? "moe_layer_start_index"
                                 : last >= 0 ? "moe_layer_end_index"
                                             : "moe_layer_interval";
    in.fail(key, fmt::format("leaves none of the {} layers with experts", n));
  }
  const std::size_t dense = static_cast<std::size_t>(in.integer({"first_k_dense_replace"}, 0));
  for (std::size_t i = 0; i < std::min(dense, n); ++i) sparse[i] = false;
  return sparse;
}

}  // namespace roofcast
