#include "sim/model/encoder.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/model/operator_list.h"

namespace roofcast {
namespace {

using Grid = TileGrid;  // of tiles, patches or tokens

/// transformers/models/qwen2_vl/image_processing_qwen2_vl.py, smart_resize: rounds both sides to multiples of a token's
/// side. Images that are too large or too small are scaled to the limiting area, rounding so that the limit holds.
Grid native_grid(const EncoderSpec& e, double width, double height, double least, double most) {
  const double side = e.patch * e.merge;
  const auto sides = [&](double factor, double (*round)(double)) {
    return Grid{std::max(1.0, round(width * factor / side)), std::max(1.0, round(height * factor / side))};
  };
  const Grid plain = sides(1.0, std::round);
  const double area = width * height / (side * side);
  if (plain.tiles() > most) return sides(std::sqrt(most / area), std::floor);
  if (plain.tiles() < least) return sides(std::sqrt(least / area), std::ceil);
  return plain;
}

/// image_processing_kimi_vl.py, rescale: only whole patches count; padding fills the last tokens. Kimi-K2.5 also limits
/// both sides to `longest` (media_utils.py of moonshotai/Kimi-K2.5, navit_resize_image).
Grid padded_grid(const EncoderSpec& e, double width, double height) {
  const double patches = std::max(1.0, std::floor(width / e.patch)) * std::max(1.0, std::floor(height / e.patch));
  const double of_side = e.longest > 0 ? e.longest / std::max(width, height) : 1.0, side = e.patch * e.merge;
  const double factor = std::min({1.0, of_side, std::sqrt(e.most * e.merge * e.merge / patches)});
  return {std::max(1.0, std::ceil(std::floor(width * factor) / side)),
          std::max(1.0, std::ceil(std::floor(height * factor) / side))};
}

/// transformers/models/pixtral/image_processing_pixtral.py, get_resize_output_image_size.
Grid cut_grid(const EncoderSpec& e, double width, double height) {
  const double ratio = std::max({1.0, width / e.image_size, height / e.image_size}), side = e.patch * e.merge;
  return {std::ceil(std::floor(width / ratio) / side), std::ceil(std::floor(height / ratio) / side)};
}

/// transformers/models/gemma4/image_processing_gemma4.py: scales both sides by one factor, then rounds down to
/// multiples of a token's side.
Grid filled_grid(const EncoderSpec& e, double width, double height) {
  const double side = e.patch * e.merge, factor = std::sqrt(e.most * side * side / (width * height));
  const double columns = std::floor(width * factor / side), rows = std::floor(height * factor / side);
  return {std::clamp(columns, 1.0, e.most), std::clamp(rows, 1.0, e.most)};
}

/// transformers/models/llama4/image_processing_llama4_fast.py, find_supported_resolutions and get_best_fit: the grid
/// that enlarges the image least, else the one that shrinks it least; ties go to the smallest grid.
Grid tile_grid(const EncoderSpec& e, double width, double height) {
  Grid best{1, 1};
  double best_scale = 0;
  for (double columns = 1; columns <= e.most_tiles; ++columns) {
    for (double rows = 1; columns * rows <= e.most_tiles; ++rows) {
      const double scale = std::min(columns * e.image_size / width, rows * e.image_size / height);
      const bool enlarges = scale >= 1.0, best_enlarges = best_scale >= 1.0;
      const bool better = enlarges == best_enlarges ? (enlarges ? scale < best_scale : scale > best_scale) : enlarges;
      const bool smaller = scale == best_scale && columns * rows < best.tiles();
      if (better || smaller) best = {columns, rows}, best_scale = scale;
    }
  }
  return best;
}

/// huggingface.co/OpenGVLab/InternVL3-8B, README.md, find_closest_aspect_ratio: ties go to the grid with more tiles if
/// the image covers more than half of them.
Grid matched_grid(const EncoderSpec& e, double width, double height) {
  std::vector<Grid> grids;
  for (double tiles = 1; tiles <= e.most_tiles; ++tiles) {
    for (double columns = 1; columns <= tiles; ++columns) {
      if (std::fmod(tiles, columns) == 0) grids.push_back({columns, tiles / columns});
    }
  }
  Grid best;
  double least = INFINITY;
  for (const Grid& grid : grids) {
    const double difference = std::abs(width / height - grid.columns / grid.rows);
    const bool covered = width * height > 0.5 * e.image_size * e.image_size * grid.tiles();
    if (difference < least || (difference == least && covered)) best = grid, least = difference;
  }
  return best;
}

/// transformers/models/idefics3/image_processing_idefics3.py: scales the longer side to `longest` and the other by the
/// same factor to an even number, then rounds both up to whole tiles.
Grid split_grid(const EncoderSpec& e, double width, double height) {
  const double ratio = std::max(width, height) / std::min(width, height), square = e.image_size;
  const double shorter = std::floor(e.longest / ratio), even = std::max(1.0, shorter + std::fmod(shorter, 2.0));
  const double longer = std::ceil(e.longest / square);
  const double across = std::max(1.0, std::ceil(std::floor(longer * square * even / e.longest) / square));
  return width >= height ? Grid{longer, across} : Grid{across, longer};
}

/// transformers/image_processing_utils.py, select_best_resolution: the grid that keeps most pixels of the image, then
/// the one with the least padding.
Grid fitting_grid(const EncoderSpec& e, double width, double height) {
  Grid best;
  double most = -1, least_padding = INFINITY;
  for (const Grid& grid : e.grids) {
    const double across = grid.columns * e.image_size, down = grid.rows * e.image_size;
    const double scale = std::min(across / width, down / height);
    const double kept = std::min(std::floor(width * scale) * std::floor(height * scale), width * height);
    const double padding = across * down - kept;
    if (kept > most || (kept == most && padding < least_padding)) best = grid, most = kept, least_padding = padding;
  }
  return best;
}

/// Tokens of an image in `grid` without padding (processing_llava_next.py, _get_unpadded_features): rows and columns of
/// patches. More than `most_tiles` tiles are scaled down (processing_llava_onevision.py).
Grid unpadded_tokens(const EncoderSpec& e, const Grid& grid, double width, double height) {
  const double side = std::floor(e.image_size / e.patch);
  Grid tokens{side * grid.columns, side * grid.rows};
  const auto without_padding = [](double all, double filled) { return all - 2 * std::floor((all - filled) / 2); };
  if (width / height > tokens.columns / tokens.rows) {
    tokens.rows = without_padding(tokens.rows, std::floor(height * tokens.columns / width + 1e-7));
  } else {
    tokens.columns = without_padding(tokens.columns, std::floor(width * tokens.rows / height + 1e-7));
  }
  const double over = e.most_tiles > 0 ? std::sqrt(tokens.tiles() / (e.most_tiles * side * side)) : 0;
  return over > 1.1 ? Grid{std::floor(tokens.columns / over), std::floor(tokens.rows / over)} : tokens;
}

/// Tiles of image_size; several tiles come with a thumbnail.
EncoderWork squares_work(const EncoderSpec& e, double items, double width, double height) {
  const double side = std::floor(e.image_size / e.patch), each = std::floor(std::pow(side / e.merge, 2));
  const auto work = [&](double squares, double tokens) {
    return EncoderWork{items, squares, side * side + (e.class_token ? 1 : 0), squares * each, tokens + e.around};
  };
  if (e.rule == EncoderSpec::Rule::kMatched) {
    const Grid grid = matched_grid(e, width, height);
    const double squares = grid.tiles() + (e.thumbnail && grid.tiles() > 1 ? 1 : 0);
    return work(squares, squares * each);
  }
  if (e.rule == EncoderSpec::Rule::kSplit) {
    // processing_idefics3.py: a delimiter and the position before each tile, a newline after each row; the thumbnail
    // has a delimiter on both sides, after its name
    const Grid grid = split_grid(e, width, height);
    if (grid.tiles() <= 1) return work(1, each + 3);
    return work(grid.tiles() + 1, grid.tiles() * (each + 2) + grid.rows + each + 3);
  }
  const Grid grid = fitting_grid(e, width, height), tokens = unpadded_tokens(e, grid, width, height);
  return work(grid.tiles() + 1, each + tokens.tiles() + tokens.rows);  // a newline after each row
}

}  // namespace

EncoderWork picture_work(const EncoderSpec& e, double items, double width, double height) {
  const double cells = e.merge * e.merge;
  const auto whole = [&](const Grid& grid, double more) {
    return EncoderWork{items, 1, grid.tiles() * cells, grid.tiles(), grid.tiles() + more + e.around};
  };
  switch (e.rule) {
    case EncoderSpec::Rule::kNative:
      return whole(native_grid(e, width, height, e.least, e.most), 0);
    case EncoderSpec::Rule::kPadded:
      return whole(padded_grid(e, width, height), 0);
    case EncoderSpec::Rule::kMatched:
    case EncoderSpec::Rule::kSplit:
    case EncoderSpec::Rule::kAnyGrid:
      return squares_work(e, items, width, height);
    case EncoderSpec::Rule::kRows: {
      const Grid grid = cut_grid(e, width, height);
      return whole(grid, grid.rows);  // [IMG_BREAK], at last [IMG_END]
    }
    case EncoderSpec::Rule::kFilled:
      return whole(filled_grid(e, width, height), 0);
    case EncoderSpec::Rule::kTiles: {
      const Grid grid = tile_grid(e, width, height);
      const double tiles = grid.tiles() + (grid.tiles() > 1 ? 1 : 0), side = e.image_size / e.patch;
      const double each = side * side / cells;
      // processing_llama4.py, _prompt_split_image: a separator after each of several tiles
      return {items, tiles, side * side + 1, tiles * each,
              tiles * each + (grid.tiles() > 1 ? grid.tiles() : 0) + e.around};
    }
    case EncoderSpec::Rule::kFixed:
    case EncoderSpec::Rule::kSound:
      break;
  }
  const double side = std::floor(e.image_size / e.patch);
  return {items, 1, side * side + (e.class_token ? 1 : 0), e.most, e.most + e.around};
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
  const double tokens = native_grid(e, width, height, least, most).tiles();
  const double around = e.around_grid > 0 ? grids * e.around_grid : e.around;
  return {items, grids, tokens * cells, grids * tokens, grids * tokens + around};
}

EncoderWork sound_work(const EncoderSpec& e, double items, Seconds length) {
  const double seconds = length.base(), windows = std::max(1.0, std::ceil(seconds / e.window_seconds));
  const double all = windows * e.window_seconds, heard = e.padded ? all : seconds;
  const double tokens = e.tokens_of_sound > 0 ? e.tokens_of_sound : std::ceil(heard * e.frames_per_second / e.merge);
  const double frames = (e.whole_windows ? all : seconds) * e.frames_per_second / windows;
  return {items, windows, std::max(1.0, std::ceil(frames)), tokens, tokens + e.around, true};
}

namespace {

/// The cost of an attention kernel depends on the number of visible pairs. Causal chunks of n queries after c cached
/// tokens have n c + n (n + 1) / 2 pairs; c = (n - 1) / 2 gives the n n pairs of bidirectional attention.
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
  for (const EncoderProduct& p : e.products)
    product("encoder_other", p.count, std::max(1.0, std::round(rows * p.rows_per_patch)), p.inputs, p.outputs);
  list.stream("encoder_norm", 2 * e.layers, rows * e.hidden * 4.0 * kHalfBytes);
  product("encoder_qkv", e.layers, rows, e.hidden, 3 * width);
  const double all_seen = e.layers - e.windowed_layers;
  list.add("encoder_attention", all_seen, full_attention(sequences, w.patches, std::ceil(e.heads / tp), e.head_dim));
  if (e.windowed_layers > 0) {
    const double in_window = std::min(w.patches, e.window * e.window);
    list.add("encoder_window_attention", e.windowed_layers,
             full_attention(rows / in_window, in_window, std::ceil(e.heads / tp), e.head_dim));
  }
  product("encoder_out", e.layers, rows, width, e.hidden);
  list.exchange(Collective::kAllReduce, "encoder_all_reduce", 2 * e.layers, rows * e.hidden * kHalfBytes,
                context.sharding.tp);
  product("encoder_up", e.layers, rows, e.hidden, inter * (e.gated ? 2.0 : 1.0));
  list.stream("encoder_activation", e.layers, rows * inter * (e.gated ? 3.0 : 2.0) * kHalfBytes);
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
  double products = 0;
  for (const EncoderProduct& p : e.products) products += p.count * p.inputs * p.outputs;
  return products + e.layers * (4.0 * e.hidden * width + block) + (e.patch_values + e.convolved) * e.hidden +
         e.projectors * project + e.vectors;
}

/// Residual, norm, and the widest of projections and feed-forward block, in 16 bit.
Bytes encoder_activations(const EncoderSpec& e, const EncoderWork& w, const Sharding& s) {
  const double widest = std::max(3 * e.heads * e.head_dim, e.inter * (e.gated ? 3.0 : 2.0)) / s.tp;
  return Bytes(w.sequences * w.patches * (2 * e.hidden + widest) * kHalfBytes);
}

}  // namespace roofcast
