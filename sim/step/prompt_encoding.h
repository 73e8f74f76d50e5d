#pragma once
// The encoder part of an encoder-decoder's step, and the prompts as the decoder sees them.

#include <memory>
#include <span>
#include <vector>

#include "sim/step/step_parts.h"

namespace roofcast {

/// Does nothing for other models. Not thread-safe.
class PromptEncoding {
 public:
  /// `deployment` and `decoder` (its parts) must outlive it.
  PromptEncoding(const Deployment& deployment, StepParts& decoder);

  /// The decoder's share of a step: per prompt, the tokens that start its answer. They cross-attend to the encoder's
  /// output as to cached tokens. Prompts are never chunked. The result is valid until the next call. After a
  /// preemption, output tokens that are recomputed count as encoder input, because a chunk does not state how many
  /// there are.
  StepBatch of_decoder(const StepBatch& batch);

  /// Calls add(parts, part, share, starts) for each part: `share` of its time and `starts` of its launches.
  template <class Add>
  void for_each_part(std::span<const PrefillChunk> prompts, const Add& add) {
    if (prompts.empty() || !model_.attends_to_encoder()) return;
    const auto count = static_cast<double>(prompts.size());
    double tokens = 0;
    for (const PrefillChunk& prompt : prompts) tokens += encoded(prompt);
    if (encoder_) {
      add(*encoder_, TokenPart{tokens, tokens, true}, 1.0, 1.0);
      add(*encoder_, HeadPart{tokens}, 1.0, 1.0);
      for (const PrefillChunk& prompt : prompts)
        add(*encoder_, PrefillPart{prompts.size(), encoded(prompt), 0}, 1.0 / count, 1.0 / count);
    } else {
      add(decoder_,
          EncoderPart{{.items = count,
                       .sequences = 1,
                       .patches = model_.encoded_tokens,
                       .outputs = model_.encoded_tokens,
                       .sound = true}},
          1.0, 1.0);
    }
    add(decoder_, EncodedPart{tokens}, 1.0, 1.0);
  }

  bool is_encoder(const StepParts& parts) const { return &parts == encoder_.get(); }

 private:
  /// Tokens of the encoder's output.
  double encoded(const PrefillChunk& prompt) const {
    return model_.encoded_tokens > 0 ? model_.encoded_tokens : prompt.tokens;
  }

  const ModelSpec& model_;
  StepParts& decoder_;
  std::unique_ptr<const Deployment> encoding_;  ///< deployment of a text encoder
  std::unique_ptr<StepParts> encoder_;          ///< its parts
  std::vector<PrefillChunk> answers_;
};

}  // namespace roofcast
