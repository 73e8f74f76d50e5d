#include "sim/plan/usual_lengths.h"

#include <algorithm>

#include "sim/step/deployment.h"

namespace roofcast {

RequestLengths usual_lengths(const Deployment& d, std::optional<int> prompt, std::optional<int> output) {
  constexpr int kPrompt = 1024, kOutput = 128;
  constexpr int kStart = 4;  // tokens that ask Whisper for a transcription
  const ModelSpec& model = d.model;
  const auto at_most = [](int usual, double limit) {
    return static_cast<int>(std::clamp(limit, 1.0, static_cast<double>(usual)));
  };
  if (model.attends_to_encoder()) {
    const bool audio = model.encoded_tokens > 0;
    const double positions = model.encoder ? model.encoder->max_context : 0;
    RequestLengths usual{prompt.value_or(audio ? kStart : kPrompt), output.value_or(kOutput)};
    if (!prompt && positions > 0) usual.prompt_tokens = at_most(usual.prompt_tokens, positions);
    if (!output && model.decoder_positions > 0)
      usual.output_tokens = at_most(kOutput, model.decoder_positions - (audio ? usual.prompt_tokens : 0));
    return usual;
  }
  const double context = d.engine.max_model_len > 0 ? d.engine.max_model_len : model.max_context;
  if (context <= 0) return {prompt.value_or(kPrompt), output.value_or(kOutput)};
  const int out = output.value_or(at_most(kOutput, prompt ? context - *prompt : context / 8));
  return {prompt.value_or(at_most(kPrompt, context - out)), out};
}

}  // namespace roofcast
