// The encoders of pictures, by family.

#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "sim/model/encoder_config.h"

namespace roofcast {
namespace {

using Rule = EncoderSpec::Rule;

double outer_number(ConfigReader& outer, std::string_view key, double default_value) {
  return outer.has(key) ? outer.number(key, kAtLeastOne) : default_value;
}

/// Patches of a side of image_size.
double patches_of_side(const EncoderSpec& e) { return e.patch > 0 ? std::floor(e.image_size / e.patch) : 0; }

/// A number of preprocessor_config.json, if it is next to config.json: the first of `paths` that is present, a key
/// or a map's name, a dot and its key.
double preprocessed(ConfigReader& outer, Names paths, double default_value) {
  auto file = outer.optional_child("preprocessor_config");
  if (!file) return default_value;
  std::optional<double> found;
  for (const std::string_view path : paths) {
    const std::size_t dot = path.find('.');
    const std::string_view key = dot == std::string_view::npos ? path : path.substr(dot + 1);
    ConfigReader* holder = &*file;
    std::optional<ConfigReader> part;
    if (dot != std::string_view::npos) {
      const ConfigTree map = file->tree(path.substr(0, dot));
      if (!map || map->kind != ConfigNode::Kind::kMap) continue;
      holder = &part.emplace(map, "a preprocessor_config");
    }
    if (!found && holder->has(key)) found = holder->number(key, kAtLeastOne);
    holder->ignore_rest();
  }
  file->ignore_rest();
  return found.value_or(default_value);
}

/// What a token of the language model is made of: cells of merge x merge patches side by side, through two products as
/// wide as they are (Qwen2VLPatchMerger; MoonViT's patch merger).
void merge_patches(EncoderSpec& e) { e.projector_in = e.projector_width = e.hidden * e.merge * e.merge; }

/// Two products as wide as the language model (LLaVA, Pixtral).
void project(EncoderSpec& e) {
  e.projector_in = e.hidden;
  e.projector_width = e.output;
}

/// preprocessor_config.json of Qwen2-VL and Qwen2.5-VL, and so taken of Qwen3-Omni: 3,136 to 12,845,056 pixels; of
/// Qwen3-VL: 65,536 to 16,777,216, there called shortest_edge and longest_edge of `size`; transformers/models/qwen2_vl/
/// image_processing_qwen2_vl.py takes min_pixels and max_pixels before them. Videos of Qwen3-Omni are not known.
void read_qwen(EncoderConfig& in, ConfigReader& outer, EncoderSpec& e) {
  e.rule = Rule::kNative;
  e.merge = in.number({"spatial_merge_size"}, 2);
  const bool omni = e.name == "qwen3_omni_moe_vision_encoder";
  const bool third = e.name.starts_with("qwen3") && !omni;  // Qwen3-VL and Qwen3.5
  const double pixels = std::pow(e.patch * e.merge, 2);
  e.least = std::ceil(
      preprocessed(outer, {"min_pixels", "size.shortest_edge", "size.min_pixels"}, third ? 65536 : 3136) / pixels);
  e.most = std::floor(
      preprocessed(outer, {"max_pixels", "size.longest_edge", "size.max_pixels"}, third ? 16777216 : 12845056) /
      pixels);
  e.around = 2;  // <|vision_start|> <|vision_end|>
  e.gated = e.name == "qwen2_5_vl" || e.name == "qwen2_5_omni_vision_encoder";
  e.projectors = 1.0 + static_cast<double>(in.length_of("deepstack_visual_indexes"));
  merge_patches(e);
  if (omni) return;
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

/// `patches`: in_patch_limit of media_proc_cfg in preprocessor_config.json, 16,384 of Kimi-K2.5, 65,536 of Kimi-K3;
/// in_token_limit of Kimi-VL-A3B, 4,096 (image_processing_kimi_vl.py; its Thinking-2506 has 16,384).
void read_moonvit(EncoderSpec& e, double patches) {
  e.rule = Rule::kPadded;
  e.merge = 2;
  e.most = patches / (e.merge * e.merge);
  e.around = 3;  // <|media_start|>image<|media_content|> and <|media_end|>, the text of which is one more
  merge_patches(e);
}

/// modeling_llama4.py: pixels shuffled into a quarter of the tokens, two products (Llama4VisionMLP2), one projection.
void read_llama4(EncoderConfig& in, EncoderSpec& e) {
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

void read_gemma4(EncoderConfig& in, EncoderSpec& e, double tokens) {
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
  project(e);
  e.projector_in *= merge * merge;
}

/// One square picture, whose class token is dropped (LLaVA 1.5; vision_feature_select_strategy: default).
void read_clip(EncoderSpec& e) {
  e.rule = Rule::kFixed;
  e.class_token = true;
  e.most = std::pow(patches_of_side(e), 2);
  project(e);
}

/// processing_paligemma.py: a square of image_size, a token for each patch, through one product
/// (PaliGemmaMultiModalProjector). Text follows at once.
void read_paligemma(EncoderSpec& e) {
  e.rule = Rule::kFixed;
  e.most = std::pow(patches_of_side(e), 2);
  e.projector_in = e.hidden;
}

/// transformers/models/glm4v/image_processing_glm4v.py, smart_resize: a picture counts as two equal frames, of 12,544
/// to 9,633,792 pixels in all. modeling_glm4v.py: blocks as wide as what they give out (Glm4VisionMlp); a convolution
/// over 2 x 2 patches, and a merger with a gate (Glm4vVisionPatchMerger), whose width is the config's
/// intermediate_size.
void merge_with_gate(EncoderSpec& e, double between) {
  const double cell = 1.0 / (e.merge * e.merge);
  e.products = {{1, cell, e.hidden * e.merge * e.merge, e.output},
                {1, cell, e.output, e.output},
                {1, cell, e.output, 2 * between}};
  e.projector_in = between;
}
void read_glm(EncoderConfig& in, EncoderSpec& e) {
  e.rule = Rule::kNative;
  e.merge = in.number({"spatial_merge_size"}, 2);
  e.least = 8;
  e.most = 6144;
  e.around = 2;  // <|begin_of_image|> <|end_of_image|>
  merge_with_gate(e, e.inter);
  e.inter = in.number({"out_hidden_size"}, e.output);
  e.gated = true;
}

/// GLM-4V-9B (visual.py of zai-org/glm-4v-9b): one square, 2 x 2 patches a token, and a class token that is dropped.
void read_glm_4v_9b(ConfigReader& outer, EncoderSpec& e) {
  e.rule = Rule::kFixed;
  e.class_token = true;
  e.merge = 2;
  e.most = std::pow(patches_of_side(e) / e.merge, 2);
  e.around = 2;  // <|begin_of_image|> <|end_of_image|>
  merge_with_gate(e, outer_number(outer, "ffn_hidden_size", 13696));
}

/// InternVL 1.5 to 3.5 (huggingface.co/OpenGVLab/InternVL3-8B, README.md, dynamic_preprocess, and
/// modeling_internvl_chat.py): pixels shuffled into downsample_ratio^2 of the tokens, two products as wide as the
/// language model. transformers has the same in got_ocr2/image_processing_got_ocr2.py.
void read_internvl(ConfigReader& outer, EncoderSpec& e) {
  e.rule = Rule::kMatched;
  e.image_size = outer_number(outer, "force_image_size", e.image_size > 0 ? e.image_size : 448);
  e.merge = std::round(1.0 / (outer.has("downsample_ratio") ? outer.number("downsample_ratio", {0.01, 1.0}) : 0.5));
  e.most_tiles = outer.boolean("dynamic_image_size", true) ? outer_number(outer, "max_dynamic_patch", 12) : 1;
  e.thumbnail = outer.boolean("use_thumbnail", true);
  e.class_token = true;
  e.around = 2;  // <img> </img>
  project(e);
  e.projector_in *= e.merge * e.merge;
}

/// transformers/models/idefics3/image_processing_idefics3.py and modeling_idefics3.py (Idefics3Connector, one product
/// of scale_factor^2 patches). `size` is written in the vision_config of SmolVLM; of Idefics3-8B it is four squares.
/// What a config leaves out is as in Idefics3VisionConfig.
void read_idefics3(EncoderConfig& in, ConfigReader& outer, EncoderSpec& e) {
  e.rule = Rule::kSplit;
  e.layers = in.number({"num_hidden_layers"}, 12);
  e.hidden = in.number({"hidden_size"}, 1152);
  e.inter = in.number({"intermediate_size"}, 3072);
  if (e.head_dim <= 0) e.head_dim = e.hidden / e.heads;
  e.merge = outer_number(outer, "scale_factor", 2);
  e.longest = in.number_of("size", "longest_edge", 4 * e.image_size);
  e.projector_in = e.hidden * e.merge * e.merge;
}

/// transformers/models/llava_next/processing_llava_next.py (_get_number_of_features) and, without a class token and
/// scaled down to nine squares, llava_onevision/processing_llava_onevision.py.
void read_any_grid(ConfigReader& outer, EncoderSpec& e) {
  e.rule = Rule::kAnyGrid;
  e.class_token = e.name == "clip_vision_model";
  e.most = std::pow(patches_of_side(e), 2);
  e.most_tiles = 0;
  const std::string ratio = outer.text("vision_aspect_ratio", "");  // anyres_max_9
  if (constexpr std::string_view kMost = "anyres_max_"; ratio.starts_with(kMost))
    e.most_tiles = std::atof(ratio.c_str() + kMost.size());
  for (const ConfigTree& item : outer.list("image_grid_pinpoints")) {
    ConfigReader sides(make_map({{"sides", item->location, item}}, item->location));
    const std::vector<double> pixels = sides.numbers("sides", kAtLeastOne);  // height and width
    if (pixels.size() != 2) outer.fail("image_grid_pinpoints", "must be pairs of a height and a width");
    e.grids.push_back({std::floor(pixels[1] / e.image_size), std::floor(pixels[0] / e.image_size)});
    if (e.grids.back().tiles() < 1)
      outer.fail("image_grid_pinpoints", fmt::format("must be at least image_size, {} pixels", e.image_size));
  }
  project(e);
}

}  // namespace

std::string read_pictures(EncoderConfig& in, ConfigReader& outer, EncoderSpec& e) {
  const std::string whole = outer.text("model_type", "");
  if (e.name.starts_with("qwen2_vl") || e.name.starts_with("qwen2_5_vl") || e.name.starts_with("qwen3_vl") ||
      e.name.starts_with("qwen3_5") || e.name == "qwen2_5_omni_vision_encoder" ||
      e.name == "qwen3_omni_moe_vision_encoder") {
    read_qwen(in, outer, e);
  } else if (e.name.starts_with("llama4")) {
    read_llama4(in, e);
  } else if (outer.has("mm_tokens_per_image")) {
    read_gemma3(e, outer_number(outer, "mm_tokens_per_image", 256));
  } else if (e.name == "gemma4_vision") {
    read_gemma4(in, e, outer_number(outer, "vision_soft_tokens_per_image", in.number({"default_output_length"}, 280)));
  } else if (e.name == "pixtral") {
    read_pixtral(e, outer_number(outer, "spatial_merge_size", 1));
  } else if (in.has("vt_hidden_size")) {
    read_moonvit(e, preprocessed(outer, {"media_proc_cfg.in_patch_limit", "in_patch_limit"},
                                 whole == "kimi_k3" ? 65536 : 16384));
    e.longest = e.patch * preprocessed(outer, {"media_proc_cfg.patch_limit_on_one_side"}, 512);
  } else if (whole == "kimi_vl") {
    read_moonvit(e, preprocessed(outer, {"in_token_limit"}, 4096));
  } else if (whole.starts_with("glm4v")) {
    read_glm(in, e);
  } else if (whole == "chatglm") {
    read_glm_4v_9b(outer, e);
  } else if (whole == "internvl_chat" || whole == "internvl") {
    read_internvl(outer, e);
  } else if (whole == "idefics3" || whole == "smolvlm") {
    read_idefics3(in, outer, e);
  } else if (outer.has("image_grid_pinpoints") && (whole == "llava_next" || whole == "llava_onevision")) {
    read_any_grid(outer, e);
  } else if (e.name == "clip_vision_model" && whole == "llava") {
    read_clip(e);
  } else if (whole == "paligemma") {
    read_paligemma(e);
  } else if (e.name == "gemma3n_vision") {
    return "has a convolutional image encoder, whose work is not priced";
  } else {
    return fmt::format("has the image encoder '{}', whose tokens per image are not known",
                       e.name.empty() ? (whole.empty() ? "vision_config" : whole) : e.name);
  }
  return "";
}

}  // namespace roofcast
