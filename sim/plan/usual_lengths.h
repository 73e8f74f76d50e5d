#pragma once
// Default request lengths of an estimate.

#include <optional>

#include "sim/serve/workload.h"

namespace roofcast {

struct Deployment;

/// 1024 prompt and 128 output tokens, limited by the served context or the positions of an encoder-decoder. Given
/// lengths are kept. Whisper's prompt is the four tokens for start, language, task and no timestamps (Radford et al.
/// 2022, arXiv:2212.04356, figure 1), in addition to its audio.
RequestLengths usual_lengths(const Deployment& deployment, std::optional<int> prompt, std::optional<int> output);

}  // namespace roofcast
