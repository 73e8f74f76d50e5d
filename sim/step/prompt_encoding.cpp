#include "sim/step/prompt_encoding.h"

#include <algorithm>

namespace roofcast {

PromptEncoding::PromptEncoding(const Deployment& deployment, StepParts& decoder)
    : model_(deployment.model), decoder_(decoder) {
  if (!model_.encoder) return;
  auto encoding = std::make_unique<Deployment>(deployment);
  encoding->model = *model_.encoder;
  encoding_ = std::move(encoding);
  encoder_ = std::make_unique<StepParts>(*encoding_);
}

StepBatch PromptEncoding::of_decoder(const StepBatch& batch) {
  if (!model_.attends_to_encoder()) return batch;
  answers_.clear();
  for (const PrefillChunk& prompt : batch.prefills) {
    const double encoder_tokens = encoded(prompt);
    answers_.push_back({.tokens = std::max(1, prompt.tokens - static_cast<int>(encoder_tokens)),
                        .context_before = static_cast<int>(encoder_tokens),
                        .last = prompt.last});
  }
  StepBatch out = batch;
  out.prefills = answers_;
  out.encodes = {};
  return out;
}

}  // namespace roofcast
