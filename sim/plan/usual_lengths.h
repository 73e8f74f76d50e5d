#pragma once
// How long the requests of an estimate are where nobody says it.

#include <optional>

#include "sim/serve/workload.h"

namespace roofcast {

struct Deployment;

/// 1024 tokens of prompt and 128 of output, or as many as the served context or an encoder-decoder has positions for.
/// One that is given stays as it is. Whisper's prompt is the four tokens that start, name language and task, and say
/// that there are no time stamps (Radford et al. 2022, arXiv:2212.04356, figure 1); its sound comes on top.
RequestLengths usual_lengths(const Deployment& deployment, std::optional<int> prompt, std::optional<int> output);

}  // namespace roofcast
