#pragma once
// Towers that turn a picture or a sound into tokens of the language model.

#include <optional>
#include <string>
#include <vector>

namespace roofcast {

/// A product of an encoder beside those of its layers: a convolution before them, a part of a merger behind them.
struct EncoderProduct {
  double count = 1;
  double rows_per_patch = 1;  ///< 0: one row of a pass, whose cost is to read the weights
  double inputs = 0, outputs = 0;
};

/// Columns and rows of tiles.
struct TileGrid {
  double columns = 1, rows = 1;
  double tiles() const { return columns * rows; }
};

/// Transformer layers over patches of a picture or frames of a sound; every patch attends to all of its sequence.
struct EncoderSpec {
  /// How pictures become sequences of patches.
  enum class Rule {
    kNative,   ///< sides rounded to whole tokens, between a least and a most number of them (Qwen-VL, GLM-4.1V)
    kPadded,   ///< scaled down to a most number of patches, padded to whole tokens (Kimi)
    kRows,     ///< the longer side cut to `image_size`, a token more at the end of each row (Pixtral)
    kFilled,   ///< scaled up or down to as many tokens as there may be (Gemma 4)
    kTiles,    ///< cut into up to `most_tiles` squares of image_size, and the whole one small (Llama 4)
    kMatched,  ///< stretched to that grid of up to `most_tiles` squares whose sides are nearest in ratio (InternVL)
    kSplit,    ///< the longer side scaled to `longest`, cut into squares, and the whole one small (Idefics3)
    kAnyGrid,  ///< fitted into one of `grids`, what is padding left out again, and the whole one small (LLaVA-NeXT)
    kFixed,    ///< scaled to one square (Gemma 3, LLaVA)
    kSound,    ///< windows of `window_seconds` (Whisper)
  };
  std::string name;  ///< its model_type
  Rule rule = Rule::kFixed;
  double layers = 0, hidden = 0, heads = 0, head_dim = 0, inter = 0;
  bool gated = false;
  double patch_values = 0;  ///< inputs of a patch's embedding
  double convolved = 0;     ///< inputs of a second embedding over two patches (Whisper's second convolution), 0 = none
  double vectors = 0;       ///< parameters that are no matrices, where they are known
  std::vector<EncoderProduct> products;  ///< beside those of its layers
  bool padded = false;          ///< of a sound: what follows sees the silence that its windows are filled with, too
  double patch = 14;            ///< pixels of a patch's side
  double merge = 1;             ///< patches of a token's side; of sound: frames of a token
  double image_size = 0;        ///< pixels of a side
  double least = 0, most = 0;   ///< tokens of a picture
  double most_tiles = 1;        ///< of kAnyGrid: what is left of more squares is scaled down to so many, 0 = never
  bool thumbnail = true;        ///< of kMatched: several tiles come with the whole picture
  bool class_token = false;     ///< one vector more of each sequence, which is dropped
  double longest = 0;           ///< pixels of the longer side (kSplit; of kPadded at most, 0 = any)
  std::vector<TileGrid> grids;  ///< kAnyGrid
  double window_seconds = 30, frames_per_second = 50;  ///< of a sound
  bool whole_windows = true;                           ///< a sound fills its last window with silence
  double tokens_of_sound = 0;  ///< of any sound, where there are always as many; 0 = by its length
  double around = 0;           ///< tokens that stand around a picture's own
  /// Of videos: frames that become one grid of tokens (0: no videos), tokens of a grid, and of all, at least and at
  /// most, and what stands around a grid (then nothing does around the video).
  double frames_of_grid = 0;
  double least_of_grid = 0, most_of_grid = 0, least_of_video = 0, most_of_video = 0, around_grid = 0;
  double window = 0;  ///< patches of a side of an attention window, 0 = none
  double windowed_layers = 0;
  double projector_in = 0, projector_width = 0;  ///< width of the input of one token; projector_width 0: one product
  double output = 0;                             ///< width of the language model
  double projectors = 1;                         ///< one, and those of earlier layers (DeepStack of Qwen3-VL)
};

/// The size of one picture or sound for the encoder and for the language model.
struct EncoderWork {
  double items = 0;      ///< equal ones
  double sequences = 1;  ///< of patches, of each
  double patches = 0;    ///< of a sequence
  double outputs = 0;    ///< tokens that leave the encoder, of each item
  double tokens = 0;     ///< of the prompt, of each item: these and what stands around them
  bool sound = false;    ///< it is for the encoder of sounds
};

/// The encoders of a config: of pictures (vision_config), of sounds (audio_config); and why there is none, as the end
/// of a sentence that begins with the model's name.
struct Encoders {
  std::optional<EncoderSpec> pictures, sounds;
  std::string no_pictures, no_sounds;
};

}  // namespace roofcast
