// Builds a ModelSpec from a config.json or one of our YAML models.

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "base/quoted_switches.h"
#include "base/text.h"
#include "sim/model/derived_model.h"
#include "sim/model/encoder.h"
#include "sim/model/families.h"
#include "sim/model/feed_forward_model.h"
#include "sim/model/mixer_model.h"
#include "sim/model/pruned_layers.h"
#include "sim/model/towers.h"

namespace roofcast {

namespace {

const Family* find_family(std::string_view model_type) {
  for (const Family& family : families()) {
    const auto& types = family.model_types;
    if (std::find(types.begin(), types.end(), model_type) != types.end()) return &family;
  }
  return nullptr;
}

/// model_types of other encoders, image and audio models.
constexpr std::array<std::string_view, 11> kOtherModels{
    "albert", "electra", "deberta", "deberta-v2", "nomic_bert", "clip", "siglip", "vit", "wav2vec2", "hubert", "sam"};

/// Throws ConfigError for layers that only attend to images (Llama 3.2 Vision), which this reader cannot represent.
void refuse_picture_layers(HfConfig& in) {
  if (in.is_list({"cross_attention_layers"}) && in.model_type().starts_with("mllama"))
    in.fail("cross_attention_layers",
            fmt::format("{} of the layers of '{}' attend only to images; such layers are not modelled",
                        in.numbers({"cross_attention_layers"}).size(), in.model_type()));
}

/// Models that do not generate text token by token.
void refuse_other_models(HfConfig& in) {
  if (std::find(kOtherModels.begin(), kOtherModels.end(), in.model_type()) != kOtherModels.end()) {
    in.fail("model_type",
            fmt::format("'{}' is not an autoregressive language model; it cannot be forecast", in.model_type()));
  }
  const Family* family = find_family(in.model_type());
  if (in.flag({"is_encoder_decoder"}, false) && (family == nullptr || !family->attends_to_encoder))
    in.fail(
        "is_encoder_decoder",
        fmt::format("'{}' is an encoder-decoder whose layers are not known; those of t5, bart, mbart, pegasus, marian, "
                    "m2m_100 and whisper are",
                    in.model_type()));
  if (family != nullptr && (family->name == "bert" || family->name == "modernbert")) return;
  for (const std::string& name : in.architectures()) {
    for (std::string_view kind : {"ForMaskedLM", "ForSequenceClassification", "ForTokenClassification",
                                  "ForPreTraining", "ForImageClassification", "ForQuestionAnswering"}) {
      if (name.ends_with(kind)) in.outer().fail("architectures", fmt::format("{} does not generate text", name));
    }
  }
}

/// Parameters of a timm encoder, whose config has a name in place of sizes; 0 if it is not known.
double timm_parameters(const std::string& architecture) {
  if (architecture == "mobilenetv5_300m_enc") return 300e6;  // Google, "Introducing Gemma 3n", 2025: MobileNet-V5-300M
  return 0;
}

/// Parameters of an encoder in the checkpoint, which takes memory even for text: depth x (4 h^2 + 2 h i), attention and
/// feed-forward per layer; 3 h i with a gate (SiLU; Pixtral).
double tower_parameters(HfConfig& in, std::string_view config) {
  auto vision = ConfigReader(part_with_towers(in.outer().whole())).optional_child(config);
  if (!vision) return 0.0;
  const auto first_of = [&](Names names) {
    for (std::string_view name : names) {
      if (vision->has(name)) return vision->number(name, kAtLeastZero);
    }
    return 0.0;
  };
  const double depth = first_of({"depth", "num_hidden_layers", "vt_num_hidden_layers", "encoder_layers", "layers"});
  const double hidden = first_of({"embed_dim", "hidden_size", "vt_hidden_size", "d_model", "width"});
  const double ratio = vision->has("mlp_ratio") ? vision->number("mlp_ratio", kAtLeastZero) : 4.0;
  const double inter = first_of({"intermediate_size", "vt_intermediate_size", "encoder_ffn_dim"});
  const double named = timm_parameters(vision->text("architecture", ""));
  const bool gated = vision->text("hidden_act", "") == "silu" || vision->text("model_type", "") == "pixtral";
  vision->ignore_rest();
  if (depth <= 0) return named;
  return depth * hidden * (4.0 * hidden + (gated ? 3.0 : 2.0) * (inter > 0 ? inter : ratio * hidden));
}

/// Parts of a checkpoint that are neither its language model nor a tower that is read, under their names in configs.
constexpr std::array<std::string_view, 12> kOtherParts{
    "talker_config", "token2wav_config", "code2wav_config", "embd_layer",  "audio_processor",       "img_processor",
    "vision_lora",   "speech_lora",      "vision_tower",    "audio_tower", "speech_encoder_config", "vit_config"};

/// Phi-4-multimodal's adapters for images and speech for every product of its layers, r (k + n) parameters each,
/// and its tower for pictures, whose sizes its config leaves to its code: those of
/// transformers/models/phi4_multimodal/configuration_phi4_multimodal.py (SigLIP), and two products as wide as the
/// model.
void add_phi4_parts(HfConfig& in, ModelSpec& model) {
  if (in.model_type() != "phi4mm") return;
  for (const char* key : {"embd_layer", "img_processor", "audio_processor", "vision_lora", "speech_lora"})
    in.reader().ignore(key);
  double sides = 0;
  for (const LayerKind& kind : model.layers) {
    for (const WeightMatrix& m : layer_weights(model, kind, Sharding{}).matrices) sides += kind.count * (m.k + m.n);
  }
  double adapters = 0;
  for (const char* key : {"vision_lora", "speech_lora"}) {
    auto adapter = in.outer().optional_child(key);
    if (adapter && adapter->has("r")) adapters += sides * adapter->number("r", kAtLeastOne);
    if (adapter) adapter->ignore_rest();
  }
  constexpr double kLayers = 27, kHidden = 1152, kInter = 4304, kPatchValues = 3 * 14 * 14;
  const bool sees = in.outer().has("embd_layer");
  const double tower = sees ? kLayers * kHidden * (4 * kHidden + 2 * kInter) + kPatchValues * kHidden +
                                  model.hidden * (kHidden + model.hidden)
                            : 0;
  model.extra_parameters += adapters + tower;
  model.assumptions.push_back(
      fmt::format("adapters for pictures and speech: about {:.2f} B parameters in memory, no work; vision tower: about "
                  "{:.2f} B, as "
                  "transformers has it; its tokens per image are not known",
                  adapters / 1e9, tower / 1e9));
}

/// Notes which parts of the checkpoint are included neither in the weights nor in the work.
void say_parts_left_out(HfConfig& in, ModelSpec& model) {
  const ConfigTree whole = in.outer().whole(), towers = part_with_towers(whole);
  std::vector<std::string> left_out;
  const bool phi4 = in.model_type() == "phi4mm";  // counted
  for (const std::string_view key : kOtherParts) {
    if (phi4) break;
    for (const ConfigTree& tree : {whole, towers}) {
      const ConfigTree* part = tree->find(key);
      if (part == nullptr || !*part || (*part)->kind == ConfigNode::Kind::kNull) continue;
      left_out.emplace_back(key);
      break;
    }
  }
  if (!left_out.empty())
    model.assumptions.push_back(
        fmt::format("left out, in memory and in work: {}, other parts of the checkpoint", join(left_out, ", ")));
}

/// Adds an encoder's memory, and notes what is unknown of it. `unknown`: why there is no encoder.
void add_tower(HfConfig& in, ModelSpec& model, const char* config, const std::optional<EncoderSpec>& encoder,
               const std::string& unknown) {
  const ConfigTree* written = part_with_towers(in.outer().whole())->find(config);
  const bool apart = written != nullptr && *written && (*written)->kind == ConfigNode::Kind::kMap;
  if (!apart && !encoder) return;
  const double parameters = encoder ? encoder_parameters(*encoder) : tower_parameters(in, config);
  model.extra_parameters += parameters;
  if (!apart && in.model_type() == "whisper") return;  // its encoder is a part of the model
  const char* tower = std::string_view(config) == "audio_config" ? "audio tower" : "vision tower";
  const std::string size = parameters > 0
                               ? fmt::format("about {:.2f} B parameters in memory, no work for text", parameters / 1e9)
                               : std::string("left out, its config does not say how large it is");
  model.assumptions.push_back(fmt::format("{}: {}{}", tower, size, encoder ? "" : "; it " + unknown));
}

bool is_size(double value) { return value >= 1.0 && value == std::floor(value); }

void check_layers(const ModelSpec& model, const HfConfig& in) {
  for (const LayerKind& kind : model.layers) {
    model_of(kind.mixer)->check(in);
    model_of(kind.feed_forward)->check(in);
    for (const WeightMatrix& m : layer_weights(model, kind, Sharding{}).matrices) {
      if (!is_size(m.k) || !is_size(m.n)) {
        in.fail("model_type",
                fmt::format("'{}' would be {} x {}: sizes must be whole numbers of at least 1", m.name, m.k, m.n));
      }
    }
  }
}

/// Checks that apply to the models of all readers.
void check_model(const ModelSpec& model, const HfConfig& in) {
  if (model.hidden < 1) in.fail("hidden_size", "must be at least 1");
  if (model.vocabulary < 1) in.fail("vocab_size", "must be at least 1");
  check_layers(model, in);
  if (model.encoder) check_layers(*model.encoder, in);
}

/// Removes windows that no context can exceed.
ModelSpec without_wide_windows(const ModelSpec& model) {
  ModelSpec out = model;
  out.layers.clear();
  out.order.clear();
  for (int i : model.order) {
    LayerKind kind = model.layers[static_cast<std::size_t>(i)];
    if (model.max_context > 0) kind.mixer = model_of(kind.mixer)->without_wide_window(model.max_context);
    append_layer(out, std::move(kind));
  }
  return out;
}

bool any_layer(const ModelSpec& model, bool (*is)(const LayerKind&)) {
  return std::any_of(model.layers.begin(), model.layers.end(), is);
}

/// Throws ConfigError if a foreign config names experts or states by unknown keys: without them any result would be
/// wrong.
void refuse_lost_layers(const ModelSpec& model, HfConfig& in) {
  const bool experts = any_layer(model, [](const LayerKind& k) { return facts_of(k.feed_forward).experts > 0; });
  const bool states =
      any_layer(model, [](const LayerKind& k) { return model_of(k.mixer)->cache(Precision{}, Sharding{}).state > 0; });
  for (const std::string& key : model.unread) {
    const ConfigTree value = in.reader().tree(key);
    const bool number = value && value->kind == ConfigNode::Kind::kScalar &&
                        value->scalar.find_first_not_of("0123456789") == std::string::npos &&
                        value->scalar.size() > 0 && value->scalar != "0" && value->scalar != "1";
    if (!number) continue;
    if (!experts && (key.find("expert") != std::string::npos || key.starts_with("moe_")))
      in.fail(key, fmt::format("'{}' has experts, in words that are not known", in.model_type()));
    if (!states && (key.starts_with("mamba_") || key.starts_with("ssm_")))
      in.fail(key, fmt::format("'{}' has layers with a state, in words that are not known", in.model_type()));
  }
}

}  // namespace

ModelSpec parse_model(const ConfigTree& document) {
  const ConfigTree tree = derive_model(document);
  HfConfig in(tree);
  const bool ours = tree->find("name") != nullptr;
  if (in.model_type().empty() && in.architectures().empty()) {
    in.fail("model_type", "neither 'model_type' nor 'architectures': this is not a model's config");
  }
  refuse_other_models(in);
  refuse_picture_layers(in);
  const Family* family = find_family(in.model_type());
  ModelSpec model = family != nullptr ? family->read(in) : read_unknown(in);
  model.family = family != nullptr ? std::string(family->name) : in.model_type();
  model.model_type = in.model_type();
  for (std::string_view key : {"source", "published", "hugging_face", "chat", "_name_or_path", "hf_quant_config"})
    in.outer().ignore(key);
  model.multimodal = in.outer().boolean("multimodal", in.nested() || in.outer().has("vision_config"));
  const std::string file_name = std::filesystem::path(tree->location.path.str()).stem().string();
  model.name = ours ? in.outer().text("name") : in.outer().text("_name_or_path", file_name);
  model.precision = read_checkpoint_precision(in, model);
  model.encoders = read_encoders(in, model.hidden);
  add_tower(in, model, "vision_config", model.encoders.pictures, model.encoders.no_pictures);
  add_tower(in, model, "audio_config", model.encoders.sounds, model.encoders.no_sounds);
  add_phi4_parts(in, model);
  say_parts_left_out(in, model);
  check_model(model, in);
  model = without_pruned(model, in);
  model = without_wide_windows(model);
  in.finish(ours);
  for (const std::string& said : in.said()) model.assumptions.push_back(said);
  for (const QuotedSwitch& found : quoted_switches(tree)) model.assumptions.push_back(text_of(found));
  model.unread = in.unread();
  refuse_lost_layers(model, in);
  return model;
}

}  // namespace roofcast
