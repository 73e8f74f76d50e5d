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

TEST_CASE("pictures: sides are rounded to whole tokens, between a least and a most") {
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

TEST_CASE("pictures: rows of Pixtral end with a token each") {
  // Mistral Small 3.1: tokens of 28 x 28. 1024 x 768: 37 x 28, and 28 ends of rows
  EncoderWork w = picture(pixtral(R"("spatial_merge_size": 2, )"), 1024, 768);
  CHECK(w.outputs == 37 * 28);
  CHECK(w.tokens == 37 * 28 + 28);
  // 3080 x 1540 is halved: 55 x 28
  CHECK(picture(pixtral(R"("spatial_merge_size": 2, )"), 3080, 1540).outputs == 55 * 28);
  CHECK(picture(pixtral(""), 140, 140).outputs == 100);
}

TEST_CASE("pictures: tiles of Llama 4, and the whole picture once more") {
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

TEST_CASE("pictures: Gemma 3 makes 256 tokens of any") {
  EncoderWork w = picture(gemma3(), 3000, 100);
  CHECK(w.outputs == 256);
  CHECK(w.patches == 4096);
}

TEST_CASE("sounds: windows of 30 s, 25 tokens a second of Qwen2-Audio") {
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

TEST_CASE("encoders: what is not known is said") {
  CHECK(shipped("llama-3.1-8b").encoders.no_pictures.find("no vision_config") != std::string::npos);
  const ModelSpec other = with("some_vl", "", R"("vision_config": {"model_type": "some_tower", "depth": 2})");
  CHECK_FALSE(other.encoders.pictures.has_value());
  CHECK(other.encoders.no_pictures == "sees by 'some_tower', whose tokens per image are not known");
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
