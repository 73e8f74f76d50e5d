#pragma once
// Encoders that turn images or audio into tokens of the language model.

#include <optional>
#include <string>
#include <vector>

namespace roofcast {

/// A product outside of the encoder's layers, such as a convolution before them or part of a merger after them.
struct EncoderProduct {
  double count = 1;
  double rows_per_patch = 1;  ///< 0: one row per pass, so that reading the weights dominates
  double inputs = 0, outputs = 0;
};

/// A grid of tiles, columns x rows.
struct TileGrid {
  double columns = 1, rows = 1;
  double tiles() const { return columns * rows; }
};

/// Transformer layers over the patches of an image or the frames of audio. Every patch attends to its whole sequence.
struct EncoderSpec {
  /// How images become sequences of patches.
  enum class Rule {
    kNative,   ///< native resolution, between `least` and `most` tokens (Qwen-VL, GLM-4.1V)
    kPadded,   ///< scaled down to a maximum number of patches, padded to whole tokens (Kimi)
    kRows,     ///< longer side limited to `image_size`, one extra token per row (Pixtral)
    kFilled,   ///< scaled up or down to the maximum number of tokens (Gemma 4)
    kTiles,    ///< up to `most_tiles` square tiles of image_size, plus a thumbnail (Llama 4)
    kMatched,  ///< stretched to the grid of up to `most_tiles` tiles with the nearest aspect ratio (InternVL)
    kSplit,    ///< longer side scaled to `longest`, square tiles, plus a thumbnail (Idefics3)
    kAnyGrid,  ///< fitted into one of `grids`, padding removed, plus a thumbnail (LLaVA-NeXT)
    kFixed,    ///< scaled to one square (Gemma 3, LLaVA)
    kSound,    ///< audio in windows of `window_seconds` (Whisper)
  };
  std::string name;  ///< its model_type
  Rule rule = Rule::kFixed;
  double layers = 0, hidden = 0, heads = 0, head_dim = 0, inter = 0;
  bool gated = false;
  double patch_values = 0;  ///< inputs of a patch's embedding
  double convolved = 0;     ///< inputs of a second embedding over two patches (Whisper's second convolution); 0: none
  double vectors = 0;       ///< parameters outside of matrices, where known
  std::vector<EncoderProduct> products;  ///< products outside of the layers
  bool padded = false;                   ///< audio: later layers also process the silence that pads a window
  double patch = 14;                     ///< side of a patch in pixels
  double merge = 1;                      ///< patches per side of a token; audio: frames per token
  double image_size = 0;                 ///< side in pixels
  double least = 0, most = 0;            ///< minimum and maximum tokens per image
  double most_tiles = 1;                 ///< kAnyGrid: maximum number of tiles after padding is removed; 0: no limit
  bool thumbnail = true;                 ///< kMatched: several tiles come with a thumbnail
  bool class_token = false;              ///< one extra vector per sequence, which is dropped
  double longest = 0;                    ///< longer side in pixels (kSplit: exactly; kPadded: at most, 0: any)
  std::vector<TileGrid> grids;           ///< kAnyGrid: allowed grids
  double window_seconds = 30, frames_per_second = 50;  ///< audio
  bool whole_windows = true;                           ///< the last window of audio is padded with silence
  double tokens_of_sound = 0;                          ///< fixed number of tokens of audio; 0: depends on its length
  double around = 0;                                   ///< delimiter tokens around those of an image
  /// Videos: frames per grid of tokens (0: no videos), then tokens per grid, minimum and maximum tokens in total, and
  /// delimiter tokens around a grid (in which case there are none around the video).
  double frames_of_grid = 0;
  double least_of_grid = 0, most_of_grid = 0, least_of_video = 0, most_of_video = 0, around_grid = 0;
  double window = 0;  ///< side of an attention window in patches; 0: none
  double windowed_layers = 0;
  double projector_in = 0, projector_width = 0;  ///< input width of one token; projector_width 0: a single product
  double output = 0;                             ///< hidden size of the language model
  double projectors = 1;  ///< 1, plus one per earlier layer that is tapped (DeepStack of Qwen3-VL)
};

/// Equal images, audio clips or videos, as input of the encoder and of the language model.
struct EncoderWork {
  double items = 0;      ///< number of equal items
  double sequences = 1;  ///< sequences of patches per item
  double patches = 0;    ///< patches per sequence
  double outputs = 0;    ///< output tokens of the encoder per item
  double tokens = 0;     ///< prompt tokens per item: outputs and delimiters
  bool sound = false;    ///< uses the audio encoder
};

/// The encoders of a config: image (vision_config) and audio (audio_config). If there is none, the reason as the end of
/// a sentence that starts with the model's name.
struct Encoders {
  std::optional<EncoderSpec> pictures, sounds;
  std::string no_pictures, no_sounds;
};

}  // namespace roofcast
