#include "sim/model/encoder.h"

#include <algorithm>
#include <cmath>

#include "sim/model/operator_list.h"

namespace roofcast {
namespace {

constexpr double kHalf = 2.0;                          // bytes of a 16-bit value
constexpr double kWindowSeconds = 30, kFrames = 50.0;  // of Whisper: 3000 mel frames, halved by a convolution

struct Grid {
  double columns, rows;
  double tokens() const { return columns * rows; }
};

/// transformers/models/qwen2_vl/image_processing_qwen2_vl.py, smart_resize: sides to multiples of a token's; of too
/// large a picture both are divided, of too small a one multiplied by what makes the area right, and rounded so that it
/// stays so.
Grid native_grid(const EncoderSpec& e, double width, double height, double least, double most) {
  const double side = e.patch * e.merge;
  const auto sides = [&](double factor, double (*round)(double)) {
    return Grid{std::max(1.0, round(width * factor / side)), std::max(1.0, round(height * factor / side))};
  };
  const Grid plain = sides(1.0, std::round);
  const double area = width * height / (side * side);
  if (plain.tokens() > most) return sides(std::sqrt(most / area), std::floor);
  if (plain.tokens() < least) return sides(std::sqrt(least / area), std::ceil);
  return plain;
}

/// transformers/models/pixtral/image_processing_pixtral.py, get_resize_output_image_size.
Grid cut_grid(const EncoderSpec& e, double width, double height) {
  const double ratio = std::max({1.0, width / e.image_size, height / e.image_size}), side = e.patch * e.merge;
  return {std::ceil(std::floor(width / ratio) / side), std::ceil(std::floor(height / ratio) / side)};
}

/// transformers/models/gemma4/image_processing_gemma4.py: both sides by one factor, then down to multiples of a
/// token's.
Grid filled_grid(const EncoderSpec& e, double width, double height) {
  const double side = e.patch * e.merge, factor = std::sqrt(e.most * side * side / (width * height));
  const double columns = std::floor(width * factor / side), rows = std::floor(height * factor / side);
  return {std::clamp(columns, 1.0, e.most), std::clamp(rows, 1.0, e.most)};
}

/// transformers/models/llama4/image_processing_llama4_fast.py, find_supported_resolutions and get_best_fit: of all
/// grids the one that enlarges the picture least, else the one that shrinks it least; of equal ones the smallest.
Grid tile_grid(const EncoderSpec& e, double width, double height) {
  Grid best{1, 1};
  double best_scale = 0;
  for (double columns = 1; columns <= e.most_tiles; ++columns) {
    for (double rows = 1; columns * rows <= e.most_tiles; ++rows) {
      const double scale = std::min(columns * e.image_size / width, rows * e.image_size / height);
      const bool enlarges = scale >= 1.0, best_enlarges = best_scale >= 1.0;
      const bool better = enlarges == best_enlarges ? (enlarges ? scale < best_scale : scale > best_scale) : enlarges;
      const bool smaller = scale == best_scale && columns * rows < best.tokens();
      if (better || smaller) best = {columns, rows}, best_scale = scale;
    }
  }
  return best;
}

}  // namespace

EncoderWork picture_work(const EncoderSpec& e, double items, double width, double height) {
  const double cells = e.merge * e.merge;
  const auto whole = [&](const Grid& grid, double more) {
    return EncoderWork{items, 1, grid.tokens() * cells, grid.tokens(), grid.tokens() + more + e.around};
  };
  switch (e.rule) {
    case EncoderSpec::Rule::kNative:
      return whole(native_grid(e, width, height, e.least, e.most), 0);
    case EncoderSpec::Rule::kRows: {
      const Grid grid = cut_grid(e, width, height);
      return whole(grid, grid.rows);  // [IMG_BREAK], at last [IMG_END]
    }
    case EncoderSpec::Rule::kFilled:
      return whole(filled_grid(e, width, height), 0);
    case EncoderSpec::Rule::kTiles: {
      const Grid grid = tile_grid(e, width, height);
      const double tiles = grid.tokens() + (grid.tokens() > 1 ? 1 : 0), side = e.image_size / e.patch;
      const double each = side * side / cells;
      // processing_llama4.py, _prompt_split_image: a separator after each tile, where there are several
      return {items, tiles, side * side + 1, tiles * each,
              tiles * each + (grid.tokens() > 1 ? grid.tokens() : 0) + e.around};
    }
    case EncoderSpec::Rule::kFixed:
    case EncoderSpec::Rule::kSound:
      break;
  }
  const double side = std::floor(e.image_size / e.patch);
  return {items, 1, side * side, e.most, e.most + e.around};
}

/// Frames go in pairs through one embedding, and every pair attends to itself alone. Qwen2-VL and Qwen2.5-VL limit the
/// tokens of a pair, and those of all until a pair has kRoom times the least (qwen_vl_utils/vision_process.py,
/// fetch_video: max_pixels = max(min(VIDEO_MAX_PIXELS, total_pixels / nframes * 2), min_pixels * 1.05)); Qwen3-VL those
/// of all (transformers, video_processing_qwen3_vl.py). Where pairs have tokens around them, the video has none:
/// processing_qwen3_vl.py replaces <|vision_start|><|video_pad|><|vision_end|> whole.
EncoderWork video_work(const EncoderSpec& e, double items, double width, double height, double frames) {
  constexpr double kRoom = 1.05;
  const double grids = std::max(1.0, std::ceil(frames / e.frames_of_grid)), cells = e.merge * e.merge;
  const double least = std::max(e.least_of_grid, e.least_of_video / grids);
  const double most = std::max(std::min(e.most_of_grid, e.most_of_video / grids), kRoom * e.least_of_grid);
  const double tokens = native_grid(e, width, height, least, most).tokens();
  const double around = e.around_grid > 0 ? grids * e.around_grid : e.around;
  return {items, grids, tokens * cells, grids * tokens, grids * tokens + around};
}

EncoderWork sound_work(const EncoderSpec& e, double items, Seconds length) {
  const double seconds = length.base(), windows = std::max(1.0, std::ceil(seconds / kWindowSeconds));
  const double tokens = std::ceil((e.padded ? windows * kWindowSeconds : seconds) * kFrames / e.merge);
  return {items, windows, kWindowSeconds * kFrames, tokens, tokens + e.around, true};
}

namespace {

/// The cost of an attention kernel depends on its visible pairs. Causal chunks of n queries behind c cached tokens have
/// n c + n (n + 1) / 2 of them: as many as n tokens that all see each other, n n, where c is (n - 1) / 2.
PrefillWork full_attention(double sequences, double patches, double heads, double head_dim) {
  return {{.batch = sequences, .query_len = patches, .context_before = (patches - 1) / 2},
          {.heads = heads, .kv_heads = heads, .head_dim = head_dim, .value_dim = head_dim}};
}

}  // namespace

std::vector<Operator> encoder_operators(const OperatorContext& context, const EncoderSpec& e, const EncoderWork& w) {
  OperatorList list(context);
  const double tp = context.sharding.tp, sequences = w.items * w.sequences, rows = sequences * w.patches;
  const double width = std::ceil(e.heads / tp) * e.head_dim, inter = std::ceil(e.inter / tp);
  const auto product = [&](const char* name, double count, double m, double k, double n) {
    list.product(name, count, m, k, n, WeightRole::kOther);
  };
  product("encoder_patches", 1, rows * (e.convolved > 0 ? 2 : 1), e.patch_values, e.hidden);
  if (e.convolved > 0) product("encoder_convolution", 1, rows, e.convolved, e.hidden);
  list.stream("encoder_norm", 2 * e.layers, rows * e.hidden * 4.0 * kHalf);
  product("encoder_qkv", e.layers, rows, e.hidden, 3 * width);
  const double all_seen = e.layers - e.windowed_layers;
  list.add("encoder_attention", all_seen, full_attention(sequences, w.patches, std::ceil(e.heads / tp), e.head_dim));
  if (e.windowed_layers > 0) {
    const double in_window = std::min(w.patches, e.window * e.window);
    list.add("encoder_window_attention", e.windowed_layers,
             full_attention(rows / in_window, in_window, std::ceil(e.heads / tp), e.head_dim));
  }
  product("encoder_out", e.layers, rows, width, e.hidden);
  list.exchange(Collective::kAllReduce, "encoder_all_reduce", 2 * e.layers, rows * e.hidden * kHalf,
                context.sharding.tp);
  product("encoder_up", e.layers, rows, e.hidden, inter * (e.gated ? 2.0 : 1.0));
  list.stream("encoder_activation", e.layers, rows * inter * (e.gated ? 3.0 : 2.0) * kHalf);
  product("encoder_down", e.layers, rows, inter, e.hidden);
  const double outputs = w.items * w.outputs, between = std::ceil(e.projector_width / tp);
  if (between > 0) product("encoder_project", e.projectors, outputs, e.projector_in, between);
  product("encoder_project_out", e.projectors, outputs, between > 0 ? between : e.projector_in, e.output);
  return list.take();
}

double encoder_parameters(const EncoderSpec& e) {
  const double width = e.heads * e.head_dim, block = (e.gated ? 3.0 : 2.0) * e.hidden * e.inter;
  const double project =
      e.projector_width > 0 ? e.projector_width * (e.projector_in + e.output) : e.projector_in * e.output;
  return e.layers * (4.0 * e.hidden * width + block) + (e.patch_values + e.convolved) * e.hidden +
         e.projectors * project + e.vectors;
}

/// Residual, norm, and the widest of projections and feed-forward block, in 16 bit.
Bytes encoder_activations(const EncoderSpec& e, const EncoderWork& w, const Sharding& s) {
  const double widest = std::max(3 * e.heads * e.head_dim, e.inter * (e.gated ? 3.0 : 2.0)) / s.tp;
  return Bytes(w.sequences * w.patches * (2 * e.hidden + widest) * kHalf);
}

}  // namespace roofcast
