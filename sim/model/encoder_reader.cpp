// The encoders of a config.json.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sim/model/encoder.h"
#include "sim/model/encoder_config.h"
#include "sim/model/towers.h"

namespace roofcast {
namespace {

/// Defaults of transformers for the image and patch sizes that a vision_config omits (configuration_clip.py,
/// configuration_siglip.py, configuration_idefics3.py, configuration_smolvlm.py, configuration_pixtral.py).
struct SquareDefaults {
  std::string_view tower;
  double image_size, patch;
};
constexpr std::array kSquares{
    SquareDefaults{"clip_vision_model", 224, 32}, SquareDefaults{"siglip_vision_model", 224, 16},
    SquareDefaults{"idefics3", 224, 32},          SquareDefaults{"idefics3_vision", 224, 32},
    SquareDefaults{"smolvlm", 224, 32},           SquareDefaults{"smolvlm_vision", 224, 32},
    SquareDefaults{"pixtral", 1024, 16}};
SquareDefaults square_of(const std::string& tower) {
  const auto* found =
      std::find_if(kSquares.begin(), kSquares.end(), [&](const SquareDefaults& one) { return one.tower == tower; });
  return found != kSquares.end() ? *found : SquareDefaults{"", 0, 14};
}

/// Reads the widths of the encoder `name` under all of their key names.
EncoderSpec encoder_widths(EncoderConfig& in, const std::string& name) {
  EncoderSpec e;
  e.name = name;
  const SquareDefaults square = square_of(name);
  e.layers = in.number({"depth", "num_hidden_layers", "vt_num_hidden_layers", "encoder_layers", "layers"}, 0);
  e.hidden = in.number({"embed_dim", "hidden_size", "vt_hidden_size", "d_model", "width"}, 0);
  e.heads = in.number({"num_heads", "num_attention_heads", "vt_num_attention_heads", "encoder_attention_heads"}, 16);
  const double ratio = in.number({"mlp_ratio"}, 4);
  e.inter = in.number({"intermediate_size", "vt_intermediate_size", "encoder_ffn_dim"}, ratio * e.hidden);
  const double head_width = e.heads > 0 ? in.number({"qkv_hidden_size"}, e.hidden) / e.heads : 0;
  e.head_dim = in.number({"head_dim"}, head_width);
  e.patch = in.number({"patch_size"}, square.patch);
  e.merge = in.number({"spatial_merge_size"}, 1);
  e.image_size = in.number({"image_size"}, square.image_size);
  const double channels = in.number({"num_channels", "in_channels", "in_chans"}, 3);
  e.patch_values = channels * e.patch * e.patch * in.number({"temporal_patch_size"}, 1);
  return e;
}

/// Whisper's encoder (Radford et al. 2022, arXiv:2212.04356, section 2.2): windows of 30 s, 1500 positions after two
/// convolutions over three frames each, the second of which takes every other one. Keys have no biases.
void read_whisper(EncoderSpec& e, double bins, double positions) {
  e.rule = EncoderSpec::Rule::kSound;
  e.patch_values = 3.0 * bins;
  e.convolved = 3.0 * e.hidden;
  e.vectors = e.layers * (8.0 * e.hidden + e.inter) + (4.0 + positions) * e.hidden;
}

/// Three convolutions of 3 x 3, each over every other place of both sides, make 13 frames of the 100 of a second;
/// layers see windows of n_window_infer frames, two products follow (transformers/models/qwen3_omni_moe/
/// modeling_qwen3_omni_moe.py, Qwen3OmniMoeAudioEncoder and _get_feat_extract_output_lengths; its chunks are of
/// 2 n_window = 100 frames, one second).
void read_qwen3_omni_sounds(EncoderConfig& in, EncoderSpec& e) {
  const double channels = in.number({"downsample_hidden_size"}, 480), bins = in.number({"num_mel_bins"}, 128);
  const double frames = 13;
  e.rule = EncoderSpec::Rule::kSound;
  e.frames_per_second = frames;
  e.window_seconds = in.number({"n_window_infer"}, 800) / 100;
  e.whole_windows = false;
  e.around = 2;  // <|audio_start|> <|audio_end|>
  e.patch_values = std::ceil(bins / 8) * channels;
  e.products = {{1, 50 * std::ceil(bins / 2) / frames, 9, channels},
                {1, 25 * std::ceil(bins / 4) / frames, 9 * channels, channels},
                {1, std::ceil(bins / 8), 9 * channels, channels}};
  e.projector_in = e.projector_width = e.hidden;
}

/// A conformer (arXiv:2005.08100): two feed-forward blocks and, between them, a convolution of two products. Of Gemma
/// 3n (transformers/models/gemma3n/modeling_gemma3n.py, Gemma3nAudioEncoder): 25 frames a second after two convolutions
/// over every other place, attention to 24 frames near by, with a product for their distance; every fourth frame leaves
/// it, and a sound always has 188 tokens (processing_gemma3n.py), between two marks and two empty lines.
void read_gemma3n_sounds(EncoderConfig& in, EncoderSpec& e) {
  e.rule = EncoderSpec::Rule::kSound;
  e.layers = in.number({"conf_num_hidden_layers"}, 12);
  e.hidden = in.number({"hidden_size"}, 1536);
  e.heads = in.number({"conf_num_attention_heads"}, 8);
  e.head_dim = e.hidden / e.heads;
  e.inter = 2 * 4 * e.hidden;
  e.frames_per_second = 25;
  e.whole_windows = false;
  e.merge = in.number({"conf_reduction_factor"}, 4);
  e.tokens_of_sound = 188;
  e.around = 4;
  e.windowed_layers = e.layers;
  e.window =
      std::sqrt(in.number({"conf_attention_chunk_size"}, 12) + in.number({"conf_attention_context_left"}, 13) - 1);
  const double bins = in.number({"input_feat_size"}, 128), first = 128, second = 32;  // sscp_conv_channel_size
  e.patch_values = std::ceil(bins / 4) * second;
  e.products = {{1, 2 * std::ceil(bins / 2), 9, first},
                {1, std::ceil(bins / 4), 9 * first, second},
                {e.layers, 0, e.hidden, e.hidden},  // of 13 distances, once for all frames (pos_proj)
                {e.layers, 1, e.hidden, 2 * e.hidden},
                {e.layers, 1, e.hidden, e.hidden}};
  e.projector_in = e.hidden;
}

/// Of Phi-4-multimodal (transformers/models/phi4_multimodal/configuration_phi4_multimodal.py, whose defaults stand for
/// what a config leaves out, and modeling_phi4_multimodal.py): a convolution and two more by depth and by point make
/// 12.5 frames a second; blocks with gates; two products, once for speech and once for speech with images.
void read_phi4_sounds(EncoderConfig& in, EncoderSpec& e) {
  e.rule = EncoderSpec::Rule::kSound;
  e.layers = in.number({"num_blocks", "num_hidden_layers"}, 24);
  e.hidden = in.number({"attention_dim", "hidden_size"}, 1024);
  e.heads = in.number({"attention_heads", "num_attention_heads"}, 16);
  e.head_dim = e.hidden / e.heads;
  e.inter = 2 * in.number({"linear_units", "intermediate_size"}, 1536);
  e.gated = true;
  const double reduction = in.number({"time_reduction"}, 8), bins = in.number({"input_size"}, 80);
  e.frames_per_second = reduction > 0 ? 100 / reduction : 12.5;
  e.window_seconds = 500 / e.frames_per_second;  // longer audio is split (forward_core: max_seq_len)
  e.whole_windows = false;
  const double channels = 1024, pointwise = in.number({"ext_pw_out_channel"}, 1024);  // nemo_conv_channels
  e.patch_values = std::ceil(bins / 8) * channels;
  e.products = {{1, 4 * std::ceil(bins / 2), 9, channels},
                {1, 2 * std::ceil(bins / 4), channels, channels},
                {1, std::ceil(bins / 8), channels, channels},
                {e.layers, 1, e.hidden, 2 * pointwise},
                {e.layers, 1, pointwise, e.hidden}};
  e.projector_in = e.hidden;
  e.projector_width = e.output;
  e.vectors = e.projector_width * (e.projector_in + e.output);  // the second projector
}

/// Qwen2-Audio halves Whisper's positions again, as Qwen2.5-Omni does (modeling_qwen2_5_omni.py,
/// _get_feat_extract_output_lengths); Voxtral joins four.
std::string read_sounds(EncoderConfig& in, EncoderSpec& e) {
  if (e.name == "qwen3_omni_moe_audio_encoder") return read_qwen3_omni_sounds(in, e), "";
  if (e.name == "gemma3n_audio") return read_gemma3n_sounds(in, e), "";
  if (e.name.starts_with("phi4")) return read_phi4_sounds(in, e), "";
  read_whisper(e, in.number({"num_mel_bins"}, 128), 1500);
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
  return fmt::format("has the audio encoder '{}', whose tokens per second are not known", e.name);
}

bool complete(const EncoderSpec& e) { return e.layers >= 1 && e.hidden >= 1 && e.heads >= 1 && e.head_dim >= 1; }

/// Why the tile size is unknown, if the rule cuts images into tiles; else empty.
std::string unknown_square(const EncoderSpec& e) {
  using Rule = EncoderSpec::Rule;
  if (e.patch < 1 || e.merge < 1) return "has a vision_config without a patch size";
  const bool cuts = e.rule != Rule::kNative && e.rule != Rule::kPadded && e.rule != Rule::kFilled;
  if (!cuts || e.image_size >= e.patch * e.merge) return "";
  if (e.image_size <= 0) return "has a vision_config without image_size";
  return fmt::format("has a vision_config whose image_size, {}, is smaller than the {} pixels of a token", e.image_size,
                     e.patch * e.merge);
}

}  // namespace

Encoders read_encoders(HfConfig& in, double hidden) {
  Encoders out;
  if (in.model_type() == "whisper") {
    EncoderConfig part(in.outer());
    EncoderSpec e = encoder_widths(part, "whisper");
    read_whisper(e, part.number({"num_mel_bins"}, 80), part.number({"max_source_positions"}, 1500));
    e.padded = true;
    e.projectors = 0;  // the decoder attends to the encoder's output
    if (!complete(e)) in.fail("encoder_layers", "an encoder without layers, width or heads");
    out.sounds = e;
    out.no_pictures = "accepts audio but no images";
    return out;
  }
  out.no_pictures = in.model_type() == "phi4mm" ? "encodes crops of an image, whose tokens are not known"
                                                : "has no image encoder (no vision_config)";
  out.no_sounds = "has no audio encoder (no audio_config)";
  const ConfigTree towers = part_with_towers(in.outer().whole());
  ConfigReader nested(towers);
  ConfigReader& outer = towers == in.outer().whole() ? in.outer() : nested;
  if (auto vision = outer.optional_child("vision_config")) {
    EncoderConfig part(std::move(*vision));
    std::string name = part.text("model_type");
    if (name.empty()) name = outer.text("model_type", "");  // Qwen2.5-VL's first configs say it there alone
    EncoderSpec e = encoder_widths(part, name);
    e.output = hidden;
    out.no_pictures = read_pictures(part, outer, e);
    if (out.no_pictures.empty() && !complete(e)) out.no_pictures = "has a vision_config without layers, width or heads";
    if (out.no_pictures.empty()) out.no_pictures = unknown_square(e);
    if (out.no_pictures.empty()) out.pictures = e;
    part.done();
  }
  const auto hear = [&](ConfigReader audio, const std::string& name) {
    EncoderConfig part(std::move(audio));
    EncoderSpec e = encoder_widths(part, name.empty() ? part.text("model_type") : name);
    e.output = hidden;
    out.no_sounds = read_sounds(part, e);
    if (out.no_sounds.empty() && !complete(e)) out.no_sounds = "has an audio_config without layers, width or heads";
    if (out.no_sounds.empty()) out.sounds = e;
    part.done();
  };
  if (auto audio = outer.optional_child("audio_config")) hear(std::move(*audio), "");
  if (auto processor = outer.optional_child("audio_processor")) {  // Phi-4-multimodal, as it was published
    if (auto audio = processor->optional_child("config"); audio && in.model_type() == "phi4mm")
      hear(std::move(*audio), "phi4mm");
    processor->ignore_rest();
  }
  return out;
}

}  // namespace roofcast
