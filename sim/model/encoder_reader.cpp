// The encoders of a config.json.

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "sim/model/encoder.h"
#include "sim/model/towers.h"

namespace roofcast {
namespace {

using Rule = EncoderSpec::Rule;

/// A nested part of the document, under its families' names.
class Part {
 public:
  explicit Part(ConfigReader in) : in_(std::move(in)) {}
  double number(Names names, double otherwise) {
    for (std::string_view name : names) {
      if (in_.has(name)) return in_.number(name, kAtLeastZero);
    }
    return otherwise;
  }
  bool has(std::string_view key) const { return in_.has(key); }
  std::string text(std::string_view key) { return in_.text(key, ""); }
  std::size_t length_of(std::string_view key) {
    const ConfigTree list = in_.tree(key);
    return list && list->kind == ConfigNode::Kind::kList ? list->items.size() : 0;
  }
  [[noreturn]] void fail(std::string_view key, const std::string& message) const { in_.fail(key, message); }
  void done() { in_.ignore_rest(); }

 private:
  ConfigReader in_;
};

/// Widths under all their names.
EncoderSpec widths(Part& in) {
  EncoderSpec e;
  e.layers = in.number({"depth", "num_hidden_layers", "vt_num_hidden_layers", "encoder_layers", "layers"}, 0);
  e.hidden = in.number({"embed_dim", "hidden_size", "vt_hidden_size", "d_model", "width"}, 0);
  e.heads = in.number({"num_heads", "num_attention_heads", "vt_num_attention_heads", "encoder_attention_heads"}, 16);
  const double ratio = in.number({"mlp_ratio"}, 4);
  e.inter = in.number({"intermediate_size", "vt_intermediate_size", "encoder_ffn_dim"}, ratio * e.hidden);
  const double head_width = e.heads > 0 ? in.number({"qkv_hidden_size"}, e.hidden) / e.heads : 0;
  e.head_dim = in.number({"head_dim"}, head_width);
  e.patch = in.number({"patch_size"}, 14);
  e.merge = in.number({"spatial_merge_size"}, 1);
  e.image_size = in.number({"image_size"}, 0);
  const double channels = in.number({"num_channels", "in_channels", "in_chans"}, 3);
  e.patch_values = channels * e.patch * e.patch * in.number({"temporal_patch_size"}, 1);
  return e;
}

/// What a token of the language model is made of: cells of merge x merge patches side by side, through two products as
/// wide as they are (Qwen2VLPatchMerger; MoonViT's patch merger).
void merge_patches(EncoderSpec& e) { e.projector_in = e.projector_width = e.hidden * e.merge * e.merge; }

/// Two products as wide as the language model (LLaVA, Pixtral).
void project(EncoderSpec& e) {
  e.projector_in = e.hidden;
  e.projector_width = e.output;
}

/// preprocessor_config.json of Qwen2-VL and Qwen2.5-VL: 56^2 to 28^2 x 16,384 pixels; of Qwen3-VL: 65,536 to
/// 16,777,216.
void read_qwen(Part& in, EncoderSpec& e) {
  e.rule = Rule::kNative;
  e.merge = in.number({"spatial_merge_size"}, 2);
  e.most = 16384;
  const bool third = e.name.starts_with("qwen3");  // Qwen3-VL and Qwen3.5
  e.least = third ? 64 : 4;
  e.around = 2;  // <|vision_start|> <|vision_end|>
  e.gated = e.name == "qwen2_5_vl" || e.name == "qwen2_5_omni_vision_encoder";
  e.projectors = 1.0 + static_cast<double>(in.length_of("deepstack_visual_indexes"));
  merge_patches(e);
  // qwen_vl_utils/vision_process.py, fetch_video: 128 to 768 tokens of two frames, and of all frames nine tenths of
  // MODEL_SEQ_LEN, 128,000 (24,576 in its first releases). Qwen3-VL's video_preprocessor_config.json: 4,096 to
  // 25,165,824 pixels of all frames, two of which make a token of 32 x 32; each pair stands behind its time,
  // "<12.3 seconds>" of about 6 tokens, between <|vision_start|> and <|vision_end|> (processing_qwen3_vl.py).
  e.frames_of_grid = in.number({"temporal_patch_size"}, 2);
  if (third) {
    e.least_of_video = 2;
    e.most_of_grid = e.most_of_video = 12288;
    e.around_grid = 8;
  } else {
    e.least_of_grid = 128;
    e.most_of_grid = 768;
    e.most_of_video = 0.9 * 128000;
  }
  // modeling_qwen2_5_vl.py: windows of window_size pixels in all layers but these.
  const double window = in.number({"window_size"}, 0);
  if (window <= 0) return;
  e.window = window / e.patch;
  e.windowed_layers = e.layers - static_cast<double>(in.length_of("fullatt_block_indexes"));
}

/// in_patch_limit of preprocessor_config.json: 16,384 patches of Kimi-K2.5, 65,536 of Kimi-K3.
void read_moonvit(EncoderSpec& e, bool k3) {
  e.rule = Rule::kNative;
  e.merge = 2;
  e.least = 1;
  e.most = k3 ? 16384 : 4096;
  e.around = 3;  // <|media_start|>image<|media_content|> and <|media_end|>, the text of which is one more
  merge_patches(e);
}

/// modeling_llama4.py: pixels shuffled into a quarter of the tokens, two products (Llama4VisionMLP2), one projection.
void read_llama4(Part& in, EncoderSpec& e) {
  e.rule = Rule::kTiles;
  e.merge = std::round(1.0 / in.number({"pixel_shuffle_ratio"}, 0.5));
  e.most_tiles = 16;  // max_patches of preprocessor_config.json
  e.around = 3;       // <|image_start|> <|image|> <|image_end|>
  e.projector_in = e.hidden * e.merge * e.merge;
  e.projector_width = in.number({"projector_input_dim"}, 4096);
}

void read_gemma3(EncoderSpec& e, double tokens) {
  e.rule = Rule::kFixed;
  e.most = tokens;
  e.around = 4;  // <start_of_image> <end_of_image>, empty lines before and after
  e.projector_in = e.hidden;
}

void read_gemma4(Part& in, EncoderSpec& e, double tokens) {
  e.rule = Rule::kFilled;
  e.merge = in.number({"pooling_kernel_size"}, 3);
  e.most = tokens;
  e.gated = true;
  e.around = 2;
  e.projector_in = e.hidden;
}

void read_pixtral(EncoderSpec& e, double merge) {
  e.rule = Rule::kRows;
  e.merge = merge;
  e.gated = true;
  if (e.head_dim <= 0) e.head_dim = 64;
  if (e.image_size <= 0) e.image_size = 1024;
  project(e);
  e.projector_in *= merge * merge;
}

/// One square picture, whose class token is dropped (LLaVA 1.5; vision_feature_select_strategy: default).
void read_clip(EncoderSpec& e) {
  e.rule = Rule::kFixed;
  const double side = e.patch > 0 ? std::floor(e.image_size / e.patch) : 0;
  e.most = side * side;
  project(e);
}

/// processing_paligemma.py: a square of image_size, a token for each patch, through one product
/// (PaliGemmaMultiModalProjector). Text follows at once.
void read_paligemma(EncoderSpec& e) {
  e.rule = Rule::kFixed;
  const double side = e.patch > 0 ? std::floor(e.image_size / e.patch) : 0;
  e.most = side * side;
  e.projector_in = e.hidden;
}

/// Reads what is known of a vision_config; else says what is not.
std::string read_pictures(Part& in, ConfigReader& outer, EncoderSpec& e) {
  const std::string whole = outer.text("model_type", "");
  const auto outer_number = [&](std::string_view key, double otherwise) {
    return outer.has(key) ? outer.number(key, kAtLeastOne) : otherwise;
  };
  if (e.name.starts_with("qwen2_vl") || e.name.starts_with("qwen2_5_vl") || e.name.starts_with("qwen3_vl") ||
      e.name.starts_with("qwen3_5") || e.name == "qwen2_5_omni_vision_encoder") {
    read_qwen(in, e);
  } else if (e.name.starts_with("llama4")) {
    read_llama4(in, e);
  } else if (outer.has("mm_tokens_per_image")) {
    read_gemma3(e, outer_number("mm_tokens_per_image", 256));
  } else if (e.name == "gemma4_vision") {
    read_gemma4(in, e, outer_number("vision_soft_tokens_per_image", in.number({"default_output_length"}, 280)));
  } else if (e.name == "pixtral") {
    read_pixtral(e, outer_number("spatial_merge_size", 1));
  } else if (in.has("vt_hidden_size")) {
    read_moonvit(e, whole == "kimi_k3");
  } else if (e.name == "clip_vision_model" && whole == "llava") {
    read_clip(e);
  } else if (whole == "paligemma") {
    read_paligemma(e);
  } else {
    return fmt::format("sees by '{}', whose tokens per image are not known",
                       e.name.empty() ? (whole.empty() ? "vision_config" : whole) : e.name);
  }
  return "";
}

/// Whisper's encoder (Radford et al. 2022, arXiv:2212.04356, section 2.2): windows of 30 s, 1500 positions after two
/// convolutions over three frames each, the second of which takes every other one. Keys have no biases.
void read_whisper(EncoderSpec& e, double bins, double positions) {
  e.rule = Rule::kSound;
  e.patch_values = 3.0 * bins;
  e.convolved = 3.0 * e.hidden;
  e.vectors = e.layers * (8.0 * e.hidden + e.inter) + (4.0 + positions) * e.hidden;
}

/// Qwen2-Audio halves Whisper's positions again, as Qwen2.5-Omni does (modeling_qwen2_5_omni.py,
/// _get_feat_extract_output_lengths); Voxtral joins four.
std::string read_sounds(EncoderSpec& e, double bins) {
  read_whisper(e, bins, 1500);
  e.projector_in = e.hidden;
  if (e.name == "qwen2_audio_encoder" || e.name == "qwen2_5_omni_audio_encoder") {
    e.merge = 2;
    e.around = 2;
    return "";
  }
  if (e.name == "voxtral_encoder") {
    e.merge = 4;
    e.around = 1;
    e.projector_in = 4 * e.hidden;
    e.projector_width = e.output;
    return "";
  }
  return fmt::format("hears by '{}', whose tokens per second are not known", e.name);
}

bool complete(const EncoderSpec& e) { return e.layers >= 1 && e.hidden >= 1 && e.heads >= 1 && e.head_dim >= 1; }

}  // namespace

Encoders read_encoders(HfConfig& in, double hidden) {
  Encoders out;
  if (in.model_type() == "whisper") {
    Part part(in.outer());
    EncoderSpec e = widths(part);
    e.name = "whisper";
    read_whisper(e, part.number({"num_mel_bins"}, 80), part.number({"max_source_positions"}, 1500));
    e.padded = true;
    e.projectors = 0;  // the decoder attends to what leaves it
    if (!complete(e)) in.fail("encoder_layers", "an encoder without layers, width or heads");
    out.sounds = e;
    out.no_pictures = "hears, and sees no images";
    return out;
  }
  out.no_pictures = "has no image encoder (no vision_config)";
  out.no_sounds = "has no audio encoder (no audio_config)";
  const ConfigTree towers = part_with_towers(in.outer().whole());
  ConfigReader nested(towers);
  ConfigReader& outer = towers == in.outer().whole() ? in.outer() : nested;
  if (auto vision = outer.optional_child("vision_config")) {
    Part part(std::move(*vision));
    EncoderSpec e = widths(part);
    e.name = part.text("model_type");
    if (e.name.empty()) e.name = outer.text("model_type", "");  // Qwen2.5-VL's first configs say it there alone
    e.output = hidden;
    out.no_pictures = read_pictures(part, outer, e);
    if (out.no_pictures.empty() && !complete(e)) out.no_pictures = "has a vision_config without layers, width or heads";
    if (out.no_pictures.empty()) out.pictures = e;
    part.done();
  }
  if (auto audio = outer.optional_child("audio_config")) {
    Part part(std::move(*audio));
    EncoderSpec e = widths(part);
    e.name = part.text("model_type");
    e.output = hidden;
    out.no_sounds = read_sounds(e, part.number({"num_mel_bins"}, 128));
    if (out.no_sounds.empty() && !complete(e)) out.no_sounds = "has an audio_config without layers, width or heads";
    if (out.no_sounds.empty()) out.sounds = e;
    part.done();
  }
  return out;
}

}  // namespace roofcast
