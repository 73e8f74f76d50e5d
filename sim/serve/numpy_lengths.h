#pragma once
// Lengths of requests as NumPy's legacy generator draws them: what vLLM's benchmark_serving.py and its copies send.

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "sim/serve/workload.h"

namespace roofcast {

/// From [low, high], as numpy.random.randint(low, high + 1) does it (RandomState, masked rejection of 32-bit words).
int draw_as_numpy(std::mt19937& twister, int low, int high);

/// All prompts, then all outputs, from seed 0. A prompt is `growth` times as long as drawn.
std::shared_ptr<const std::vector<RequestLengths>> numpy_lengths(const LengthSpec::Uniform& prompts,
                                                                 const LengthSpec::Uniform& outputs,
                                                                 std::int64_t requests, double growth);

}  // namespace roofcast
