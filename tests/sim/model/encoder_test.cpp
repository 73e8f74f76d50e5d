#include "sim/model/encoder.h"

#include <doctest/doctest.h>

#include "tests/sim/model/models.h"

using namespace roofcast;

namespace {

constexpr const char* kText =
    R"("hidden_size": 4096, "num_hidden_layers": 2, "num_attention_heads": 32, "num_key_value_heads": 8,
       "intermediate_size": 12288, "vocab_size": 1000, "max_position_embeddings": 32768)";

ModelSpec with(const std::string& type, const std::string& outer, const std::string& vision) {
  return from_text("{\"model_type\": \"" + type + "\", " + outer + R"("text_config": {"model_type": "qwen2", )" +
                   kText + "}, " + vision + "}");
}

ModelSpec qwen3_vl() {
  return with(
      "qwen3_vl", "",
      R"("vision_config": {"model_type": "qwen3_vl", "depth": 27, "hidden_size": 1152, "intermediate_size": 4304,
                 "num_heads": 16, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2,
                 "deepstack_visual_indexes": [8, 16, 24], "out_hidden_size": 4096})");
}
ModelSpec qwen25_vl() {
  return with("qwen2_5_vl", "",
              R"("vision_config": {"model_type": "qwen2_5_vl", "depth": 32, "hidden_size": 1280,
                 "intermediate_size": 3420, "num_heads": 16, "patch_size": 14, "spatial_merge_size": 2,
                 "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31]})");
}
ModelSpec llama4() {
  return with("llama4", "",
              R"("vision_config": {"model_type": "llama4_vision_model", "num_hidden_layers": 34, "hidden_size": 1408,
                 "intermediate_size": 5632, "num_attention_heads": 16, "patch_size": 14, "image_size": 336,
                 "pixel_shuffle_ratio": 0.5, "projector_input_dim": 4096})");
}
ModelSpec gemma3() {
  return with("gemma3", R"("mm_tokens_per_image": 256, )",
              R"("vision_config": {"model_type": "siglip_vision_model", "num_hidden_layers": 27, "hidden_size": 1152,
                 "intermediate_size": 4304, "num_attention_heads": 16, "patch_size": 14, "image_size": 896})");
}
ModelSpec pixtral(const std::string& merge) {
  return with(
      "mistral3", merge,
      R"("vision_config": {"model_type": "pixtral", "num_hidden_layers": 24, "hidden_size": 1024, "head_dim": 64,
                 "intermediate_size": 4096, "num_attention_heads": 16, "patch_size": 14, "image_size": 1540})");
}

EncoderWork picture(const ModelSpec& model, double width, double height) {
  REQUIRE(model.encoders.pictures.has_value());
  return picture_work(*model.encoders.pictures, 1, width, height);
}

}  // namespace

TEST_CASE("images: sides are rounded to whole tokens, between a minimum and a maximum") {
  // Qwen3-VL: tokens of 32 x 32 pixels. 1024 x 768: 32 x 24, and <|vision_start|> <|vision_end|>
  EncoderWork w = picture(qwen3_vl(), 1024, 768);
  CHECK(w.outputs == 768);
  CHECK(w.tokens == 770);
  CHECK(w.patches == 4 * 768);
  // Qwen2.5-VL: 28 x 28. 1000 x 700 is 35.7 x 25 tokens: 36 x 25
  CHECK(picture(qwen25_vl(), 1000, 700).outputs == 900);
  // Too large: 10,000 x 10,000 is 127,551 tokens; both sides divided by sqrt(127551 / 16384) = 2.79: 128 x 128
  CHECK(picture(qwen25_vl(), 10000, 10000).outputs == 16384);
  // Too small: 32 x 16 pixels of Qwen3-VL, half a token: sides times sqrt(64 / 0.5) = 11.3: 12 x 6
  CHECK(picture(qwen3_vl(), 32, 16).outputs == 72);
}

TEST_CASE("images: each row of Pixtral ends with a token") {
  // Mistral Small 3.1: tokens of 28 x 28. 1024 x 768: 37 x 28, and 28 ends of rows
  EncoderWork w = picture(pixtral(R"("spatial_merge_size": 2, )"), 1024, 768);
  CHECK(w.outputs == 37 * 28);
  CHECK(w.tokens == 37 * 28 + 28);
  // 3080 x 1540 is halved: 55 x 28
  CHECK(picture(pixtral(R"("spatial_merge_size": 2, )"), 3080, 1540).outputs == 55 * 28);
  CHECK(picture(pixtral(""), 140, 140).outputs == 100);
}

TEST_CASE("images: tiles of Llama 4, plus a thumbnail") {
  // 336 x 336 fits one tile: 576 patches and a class, 144 tokens, 3 around
  EncoderWork w = picture(llama4(), 336, 336);
  CHECK(w.sequences == 1);
  CHECK(w.patches == 577);
  CHECK(w.tokens == 147);
  // 672 x 672: 2 x 2 tiles that enlarge it by 1, with the whole one five
  w = picture(llama4(), 672, 672);
  CHECK(w.sequences == 5);
  CHECK(w.outputs == 5 * 144);
  CHECK(w.tokens == 5 * 144 + 4 + 3);
  // 1024 x 768 into 4 x 3 tiles of 336: enlarged by 1344 / 1024 = 1008 / 768 = 1.3125, the least of all
  CHECK(picture(llama4(), 1024, 768).sequences == 13);
  // Larger than all grids: 4 x 4 shrinks a square least
  CHECK(picture(llama4(), 5000, 5000).sequences == 17);
}

TEST_CASE("images: InternVL stretches them to the tile grid with the nearest aspect ratio") {
  const ModelSpec model =
      with("internvl_chat", R"("force_image_size": 448, "downsample_ratio": 0.5, "max_dynamic_patch": 12, )",
           R"("vision_config": {"model_type": "intern_vit_6b", "num_hidden_layers": 24, "hidden_size": 1024,
                 "intermediate_size": 4096, "num_attention_heads": 16, "patch_size": 14, "image_size": 448})");
  // 4 x 3 squares of 448, and the whole one small: 13 x (32 / 2)^2, between <img> and </img>; 32^2 patches and a class
  EncoderWork w = picture(model, 1024, 768);
  CHECK(w.sequences == 13);
  CHECK(w.patches == 1025);
  CHECK(w.outputs == 13 * 256);
  CHECK(w.tokens == 13 * 256 + 2);
  // A square picture of one square covers half of two by two: no more than one, and nothing small beside it
  CHECK(picture(model, 448, 448).tokens == 256 + 2);
  // 896 x 896 covers more than half of 2 x 2 squares, not of 3 x 3
  CHECK(picture(model, 896, 896).sequences == 5);
}

TEST_CASE("images: Idefics3 scales the longer side and cuts tiles") {
  const auto model = [](const std::string& scale, const std::string& vision) {
    return with("idefics3", "\"scale_factor\": " + scale + ", ",
                R"("vision_config": {"model_type": "idefics3", "hidden_size": 1152, "intermediate_size": 4304,
                   "num_hidden_layers": 27, "num_attention_heads": 16, "patch_size": 14, )" +
                    vision + "}");
  };
  // Idefics3-8B: 1024 x 768 becomes 4 x 364 = 1456 x 1092, 4 x 3 squares of (26 / 2)^2 = 169 tokens with two before
  // them, 3 ends of rows, and 169 + 3 of the whole picture
  EncoderWork w = picture(model("2", R"("image_size": 364)"), 1024, 768);
  CHECK(w.sequences == 13);
  CHECK(w.outputs == 13 * 169);
  CHECK(w.tokens == 12 * 171 + 3 + 172);
  // SmolVLM: 1920 x 1440, 5 x 4 squares of 384 and (27 / 3)^2 tokens
  w = picture(model("3", R"("image_size": 384, "size": {"longest_edge": 1920})"), 1024, 768);
  CHECK(w.tokens == 20 * 83 + 4 + 84);
  // Upright: the same number
  CHECK(picture(model("3", R"("image_size": 384, "size": {"longest_edge": 1920})"), 768, 1024).outputs == w.outputs);
  // As small as one square
  CHECK(picture(model("2", R"("image_size": 364, "size": {"longest_edge": 364})"), 500, 400).tokens == 172);
}

TEST_CASE("images: LLaVA-NeXT fits them into a grid and removes the padding") {
  const std::string clip =
      R"("vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024, "image_size": 336,
         "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14})";
  const std::string grids =
      R"("image_grid_pinpoints": [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]], )";
  // 1024 x 768 keeps most pixels in 672 x 672: 672 x 504 of them. Of 48 x 48 patches 36 rows are no padding; each ends
  // with a token more, and 24^2 of the whole picture stand before
  EncoderWork w = picture(with("llava_next", grids, clip), 1024, 768);
  CHECK(w.sequences == 5);
  CHECK(w.patches == 577);
  CHECK(w.outputs == 5 * 576);
  CHECK(w.tokens == 48 * 36 + 36 + 576);
  // 336 x 1008: 1 column of 3, nothing padded (a pair says the height first)
  CHECK(picture(with("llava_next", grids, clip), 336, 1008).tokens == 24 * 72 + 72 + 576);
  // LLaVA-OneVision, 5 x 5 squares of 27 x 27: more than nine are scaled down by sqrt(25 / 9) = 1.667, to 81 x 81
  w = picture(with("llava_onevision",
                   R"("image_grid_pinpoints": [[384, 384], [1920, 1920]], "vision_aspect_ratio": "anyres_max_9", )",
                   R"("vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152, "image_size": 384,
                      "intermediate_size": 4304, "num_attention_heads": 16, "num_hidden_layers": 26,
                      "patch_size": 14})"),
              1920, 1920);
  CHECK(w.sequences == 26);
  CHECK(w.tokens == 81 * 81 + 81 + 729);
  CHECK_THROWS_AS(with("llava_next", R"("image_grid_pinpoints": [[336]], )", clip), ConfigError);
}

TEST_CASE("images: Kimi pads to whole tokens, GLM-4.1V rounds and has a merger with a gate") {
  const ModelSpec kimi = with("kimi_vl", "",
                              R"("vision_config": {"model_type": "moonvit", "patch_size": 14, "num_attention_heads": 16,
              "num_hidden_layers": 27, "hidden_size": 1152, "intermediate_size": 4304, "merge_kernel_size": [2, 2]})");
  // 73 x 54 whole patches are fewer than 4096: 36.6 x 27.4 tokens of 28 pixels, padded to 37 x 28; 3 around
  CHECK(picture(kimi, 1024, 768).tokens == 37 * 28 + 3);
  // 2048 x 2048 has 146^2 patches: both sides by sqrt(4096 / 146^2) = 0.43836, 897 pixels, 33 tokens
  CHECK(picture(kimi, 2048, 2048).outputs == 33 * 33);
  const ModelSpec glm =
      with("glm4v", "",
           R"("vision_config": {"model_type": "glm4v", "depth": 24, "hidden_size": 1536, "intermediate_size": 13696,
              "num_heads": 12, "out_hidden_size": 4096, "patch_size": 14, "spatial_merge_size": 2,
              "temporal_patch_size": 2, "image_size": 336})");
  CHECK(picture(glm, 1024, 768).tokens == 37 * 27 + 2);
  CHECK(picture(glm, 8000, 8000).outputs == 78 * 78);  // of 6144 at most: sides by sqrt(6144) = 78.4
  // 24 layers of 4 x 1536^2 and a gate of 4096; a convolution of 6144 x 4096, 4096^2, and 3 x 4096 x 13696
  const double blocks = 24 * (4.0 * 1536 * 1536 + 3.0 * 1536 * 4096), merger = 6144.0 * 4096 + 4096.0 * 4096;
  CHECK(encoder_parameters(*glm.encoders.pictures) ==
        doctest::Approx(blocks + merger + 3.0 * 4096 * 13696 + 3.0 * 14 * 14 * 2 * 1536));
}

TEST_CASE("audio: Qwen3-Omni has 13 tokens a second, Gemma 3n always 188, Phi-4-multimodal 12.5") {
  const std::string layers = R"("d_model": 1280, "encoder_layers": 32, "encoder_attention_heads": 20,
                                "encoder_ffn_dim": 5120, "num_mel_bins": 128, "output_dim": 4096})";
  const ModelSpec omni =
      with("qwen3_omni_moe", "", R"("audio_config": {"model_type": "qwen3_omni_moe_audio_encoder", )" + layers);
  EncoderWork w = sound_work(*omni.encoders.sounds, 1, Seconds(30));
  CHECK(w.outputs == 390);
  CHECK(w.sequences == 4);  // of 8 s
  CHECK(w.patches == 98);   // 97.5 on average
  // 32 layers of 4 h^2 + 2 h i, convolutions of 9, 9 x 480 and 9 x 480 inputs, 16 x 480 x 1280, two products
  CHECK(encoder_parameters(*omni.encoders.sounds) ==
        doctest::Approx(32 * (4.0 * 1280 * 1280 + 2.0 * 1280 * 5120) + 480 * (9 + 2 * 9.0 * 480) + 7680.0 * 1280 +
                        1280.0 * (1280 + 4096)));
  const ModelSpec gemma = with("gemma3", "",
                               R"("audio_config": {"model_type": "gemma3n_audio", "hidden_size": 1536,
                                  "conf_num_hidden_layers": 12, "conf_num_attention_heads": 8})");
  CHECK(sound_work(*gemma.encoders.sounds, 1, Seconds(3)).outputs == 188);
  CHECK(sound_work(*gemma.encoders.sounds, 1, Seconds(3)).patches == 75);
  // The projection of distances (pos_proj) is one pass over its weights of each layer, however long the sound
  OperatorContext context;
  context.model = &gemma;
  double distances = 0;
  for (const Operator& op :
       encoder_operators(context, *gemma.encoders.sounds, sound_work(*gemma.encoders.sounds, 1, Seconds(3)))) {
    const auto* product = std::get_if<GemmShape>(&op.work);
    if (product != nullptr && product->m == 1 && product->k == 1536 && product->n == 1536) distances += op.count;
  }
  CHECK(distances == 12);
  // A layer: two feed-forward blocks of 8 h^2, attention of 5, a convolution of 3
  CHECK(encoder_parameters(*gemma.encoders.sounds) ==
        doctest::Approx(12 * 24.0 * 1536 * 1536 + 1024.0 * 1536 + 9 * 128 + 9 * 128 * 32 + 1536.0 * 4096));
  const ModelSpec phi = from_text(std::string("{\"model_type\": \"phi4mm\", ") + kText +
                                  R"(, "audio_processor": {"name": "cascades", "config": {"attention_dim": 1024,
                                     "attention_heads": 16, "num_blocks": 24, "linear_units": 1536}}})");
  CHECK(sound_work(*phi.encoders.sounds, 1, Seconds(10)).outputs == 125);
  CHECK(phi.encoders.no_pictures.find("whose tokens are not known") != std::string::npos);
}

TEST_CASE("images: PaliGemma and GLM-4V-9B always make the same number of tokens") {
  const auto paligemma = [](const std::string& size) {
    return with(
        "paligemma", "",
        R"("vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304,
                   "num_attention_heads": 16, "num_hidden_layers": 27, "num_image_tokens": 256, "patch_size": 14)" +
            size + "}");
  };
  // As paligemma-3b-pt-224's is published, without image_size: SiglipVisionConfig's 224, (224 / 14)^2
  EncoderWork w = picture(paligemma(""), 1024, 768);
  CHECK(w.patches == 256);
  CHECK(w.tokens == 256);
  CHECK(picture(paligemma(R"(, "image_size": 448)"), 1024, 768).tokens == 1024);
  const auto glm = [](const std::string& size) {
    return with(
        "chatglm", R"("ffn_hidden_size": 13696, )",
        R"("vision_config": {"hidden_act": "gelu", "in_channels": 3, "num_hidden_layers": 63, "hidden_size": 1792,
                   "patch_size": 14, "num_heads": 16, "intermediate_size": 15360, "num_positions": 6401)" +
            size + "}");
  };
  // (1120 / 14)^2 = 6400 patches and a class token, four patches of a token, and two tokens around
  w = picture(glm(R"(, "image_size": 1120)"), 300, 200);
  CHECK(w.patches == 6401);  // num_positions
  CHECK(w.outputs == 1600);
  CHECK(w.tokens == 1602);
  CHECK(glm("").encoders.no_pictures == "has a vision_config without image_size");
}

TEST_CASE("images: the limits of preprocessor_config.json, in each family's form") {
  const auto qwen = [](const std::string& limits) {
    return with("qwen3_vl",
                R"("preprocessor_config": {"patch_size": 16, "temporal_patch_size": 2, "merge_size": 2,
                               "image_mean": [0.5, 0.5, 0.5], "image_processor_type": "Qwen2VLImageProcessorFast", )" +
                    limits + "}, ",
                R"("vision_config": {"model_type": "qwen3_vl", "depth": 27, "hidden_size": 1152,
                   "intermediate_size": 4304, "num_heads": 16, "patch_size": 16})");
  };
  // As Qwen3-VL's is published: 64 to 16,384 tokens of 32 x 32 pixels; 10,000 x 10,000 is 128 x 128
  const ModelSpec published = qwen(R"("size": {"longest_edge": 16777216, "shortest_edge": 65536})");
  CHECK(picture(published, 10000, 10000).outputs == 16384);
  CHECK(picture(published, 32, 32).outputs == 64);
  // With 1024 x 1024 and 512 x 512 pixels in their place: 32 x 32 and 16 x 16
  const ModelSpec smaller = qwen(R"("size": {"longest_edge": 1048576, "shortest_edge": 262144})");
  CHECK(picture(smaller, 10000, 10000).outputs == 1024);
  CHECK(picture(smaller, 32, 32).outputs == 256);
  // max_pixels goes before size
  CHECK(picture(qwen(R"("max_pixels": 262144, "size": {"longest_edge": 16777216})"), 10000, 10000).outputs == 256);
  const auto kimi = [](const std::string& limits) {
    return with("kimi_k25",
                R"("preprocessor_config": {"auto_map": {"AutoProcessor": "kimi_k25_processor.KimiK25Processor"},
                               "media_proc_cfg": {)" +
                    limits +
                    R"("patch_size": 14, "merge_kernel_size": 2, "fixed_output_tokens": null,
                                   "in_patch_limit_each_frame": 4096, "in_patch_limit_video": null}}, )",
                R"("vision_config": {"patch_size": 14, "vt_num_attention_heads": 16, "vt_num_hidden_layers": 27,
                   "vt_hidden_size": 1152, "vt_intermediate_size": 4304})");
  };
  // Kimi-K2.5's 16,384 patches are 64 x 64 tokens of 28 pixels; 2800 x 2800 has 200^2 patches: sides by 128 / 200
  CHECK(picture(kimi(R"("in_patch_limit": 16384, )"), 2800, 2800).outputs == 64 * 64);
  CHECK(picture(kimi(R"("in_patch_limit": 4096, )"), 2800, 2800).outputs == 32 * 32);
  // 512 patches a side, 7168 pixels: 14,336 x 140 is halved to 7168 x 70, 256 x 3 tokens (1024 x 10 patches are few)
  CHECK(picture(kimi(""), 14336, 140).outputs == 256 * 3);
  CHECK(picture(kimi(R"("patch_limit_on_one_side": 256, )"), 14336, 140).outputs == 128 * 2);
}

TEST_CASE("images: a tile smaller than a token is reported") {
  const auto why = [](const std::string& type, const std::string& outer, const std::string& vision) {
    CAPTURE(vision);
    const ModelSpec model = with(type, outer,
                                 R"("vision_config": {"hidden_size": 1024, "intermediate_size": 4096,
                                    "num_attention_heads": 16, "num_hidden_layers": 24, )" +
                                     vision + "}");
    CHECK_FALSE(model.encoders.pictures.has_value());
    return model.encoders.no_pictures;
  };
  const std::string missing = "has a vision_config without image_size";
  const std::string pinpoints = R"("image_grid_pinpoints": [[336, 672], [672, 336]], )";
  CHECK(why("llava_next", pinpoints, R"("model_type": "some_tower", "patch_size": 14)") == missing);
  CHECK(why("paligemma", "", R"("patch_size": 14)") == missing);
  CHECK(why("llama4", "", R"("model_type": "llama4_vision_model", "patch_size": 14)") == missing);
  CHECK(why("llava", "", R"("model_type": "clip_vision_model", "image_size": 8, "patch_size": 14)") ==
        "has a vision_config whose image_size, 8, is smaller than the 14 pixels of a token");
  CHECK(why("gemma3", R"("mm_tokens_per_image": 256, )",
            R"("model_type": "siglip_vision_model", "image_size": 896, "patch_size": 0)") ==
        "has a vision_config without a patch size");
  // What CLIPVisionConfig takes, 224 and 32: 7 x 7 patches
  const ModelSpec clip = with("llava", "",
                              R"("vision_config": {"model_type": "clip_vision_model", "hidden_size": 768,
                                 "num_attention_heads": 12, "num_hidden_layers": 12, "intermediate_size": 3072})");
  CHECK(picture(clip, 1024, 768).tokens == 49);
  CHECK(picture(clip, 1024, 768).patches == 50);  // and a class token, which is dropped
  // Idefics3VisionConfig: 224 and 32
  const ModelSpec idefics =
      with("idefics3", R"("scale_factor": 1, )", R"("vision_config": {"model_type": "idefics3"})");
  CHECK(picture(idefics, 224, 224).patches == 49);
}

TEST_CASE("images: Gemma 3 makes 256 tokens of any image") {
  EncoderWork w = picture(gemma3(), 3000, 100);
  CHECK(w.outputs == 256);
  CHECK(w.patches == 4096);
}

TEST_CASE("audio: windows of 30 s, 25 tokens per second in Qwen2-Audio") {
  const ModelSpec model =
      with("qwen2_audio", "",
           R"("audio_config": {"model_type": "qwen2_audio_encoder", "d_model": 1280, "encoder_layers": 32,
              "encoder_attention_heads": 20, "encoder_ffn_dim": 5120, "num_mel_bins": 128})");
  REQUIRE(model.encoders.sounds.has_value());
  const EncoderWork w = sound_work(*model.encoders.sounds, 1, Seconds(40));
  CHECK(w.sequences == 2);
  CHECK(w.patches == 1500);
  CHECK(w.outputs == 1000);
}

TEST_CASE("an encoder's work by hand") {
  // Qwen3-VL, 512 x 512: 1024 patches, 256 tokens. FLOP: a layer 2 x 1024 x (4 x 1152^2 + 2 x 1152 x 4304) of products
  // and 4 x 1024^2 x 1152 of attention; the embedding of 3 x 16 x 16 x 2 values; four mergers of 4608 x 4608 and
  // 4608 x 4096.
  const ModelSpec model = qwen3_vl();
  OperatorContext context;
  context.model = &model;
  const EncoderWork work = picture(model, 512, 512);
  double flops = 0;
  for (const Operator& op : encoder_operators(context, *model.encoders.pictures, work)) {
    if (const auto* gemm = std::get_if<GemmShape>(&op.work)) flops += op.count * 2.0 * gemm->m * gemm->n * gemm->k;
    if (const auto* a = std::get_if<PrefillWork>(&op.work)) {
      const double pairs = a->shape.query_len * (a->shape.context_before + (a->shape.query_len + 1) / 2);
      flops += op.count * a->shape.batch * 4.0 * pairs * a->heads.heads * a->heads.head_dim;
    }
  }
  const double layer = 2.0 * 1024 * (4.0 * 1152 * 1152 + 2.0 * 1152 * 4304) + 4.0 * 1024 * 1024 * 1152;
  const double around = 2.0 * 1024 * 1536 * 1152 + 4 * 2.0 * 256 * (4608.0 * 4608 + 4608.0 * 4096);
  CHECK(flops == doctest::Approx(27 * layer + around));
}

TEST_CASE("windows of Qwen2.5-VL: 28 of 32 layers attend to 64 patches") {
  const ModelSpec model = qwen25_vl();
  CHECK(model.encoders.pictures->windowed_layers == 28);
  OperatorContext context;
  context.model = &model;
  double windowed = 0, all = 0;
  for (const Operator& op : encoder_operators(context, *model.encoders.pictures, picture(model, 1120, 1120))) {
    const auto* a = std::get_if<PrefillWork>(&op.work);
    if (a != nullptr) (a->shape.query_len == 64 ? windowed : all) += op.count;
  }
  CHECK(windowed == 28);
  CHECK(all == 4);
}

TEST_CASE("a vision_config without model_type is that of the whole (Qwen2.5-VL's first configs)") {
  const ModelSpec model =
      with("qwen2_5_vl", "", R"("vision_config": {"depth": 32, "hidden_size": 1280, "num_heads": 16})");
  REQUIRE(model.encoders.pictures.has_value());
  CHECK(model.encoders.pictures->name == "qwen2_5_vl");
  CHECK(model.encoders.pictures->gated);
}

TEST_CASE("encoders: unknown features are reported") {
  CHECK(shipped("llama-3.1-8b").encoders.no_pictures.find("no vision_config") != std::string::npos);
  const ModelSpec other = with("some_vl", "", R"("vision_config": {"model_type": "some_tower", "depth": 2})");
  CHECK_FALSE(other.encoders.pictures.has_value());
  CHECK(other.encoders.no_pictures == "has the image encoder 'some_tower', whose tokens per image are not known");
}

TEST_CASE("videos: frames in pairs, each pair a sequence of its own") {
  const auto video = [](const ModelSpec& model, double width, double height, double frames) {
    REQUIRE(model.encoders.pictures.has_value());
    return video_work(*model.encoders.pictures, 1, width, height, frames);
  };
  // Qwen2.5-VL, 60 s at 2 frames a second of 640 x 360: 23 x 13 tokens of 28 x 28 pixels in each of 60 pairs
  EncoderWork w = video(qwen25_vl(), 640, 360, 120);
  CHECK(w.sequences == 60);
  CHECK(w.patches == 23 * 13 * 4);
  CHECK(w.outputs == 60 * 23 * 13);
  CHECK(w.tokens == 60 * 23 * 13 + 2);
  // 1920 x 1080 has 69 x 39 tokens; down to 768 at most: by sqrt(1920 x 1080 / (768 x 28^2)) = 1.8558, 36 x 20
  w = video(qwen25_vl(), 1920, 1080, 4);
  CHECK(w.outputs == 2 * 36 * 20);
  // 140 x 140 has 25; up to 128 at least: by sqrt(128 x 28^2 / 140^2) = 2.2627, 12 x 12
  CHECK(video(qwen25_vl(), 140, 140, 4).outputs == 2 * 144);
  // 768 frames, 384 pairs, of 1920 x 1080: 0.9 x 128,000 / 384 = 300 tokens of a pair at most, by sqrt(1920 x 1080 /
  // (300 x 28^2)) = 2.9693: 23 x 12
  CHECK(video(qwen25_vl(), 1920, 1080, 768).outputs == 384 * 23 * 12);
  // 4000 frames: 57.6 tokens of a pair would be fewer than the least, so 1.05 x 128 = 134.4: by 4.4362, 15 x 8 = 120
  CHECK(video(qwen25_vl(), 1920, 1080, 4000).outputs == 2000 * 15 * 8);
  // Qwen3-VL, 20 frames of 640 x 352: 20 x 11 tokens of 32 x 32 in each of 10 pairs, which stand behind their time
  w = video(qwen3_vl(), 640, 352, 20);
  CHECK(w.outputs == 10 * 220);
  CHECK(w.tokens == 10 * (220 + 8));  // nothing stands around the video
  // 600 frames of 1920 x 1080: all pairs together have 12,288 tokens at most, 40.96 each
  w = video(qwen3_vl(), 1920, 1080, 600);
  CHECK(w.outputs <= 12288);
  CHECK(w.outputs >= 12288 * 0.75);
  CHECK(llama4().encoders.pictures->frames_of_grid == 0);
}
