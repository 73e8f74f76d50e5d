#pragma once
// Request lengths as NumPy's legacy generator draws them, as in vLLM's benchmark_serving.py and its derivatives.

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "sim/serve/workload.h"

namespace roofcast {

/// Draws from [low, high] as numpy.random.randint(low, high + 1) does (RandomState, masked rejection of 32-bit words).
int draw_as_numpy(std::mt19937& twister, int low, int high);

/// Draws all prompts, then all outputs, from seed 0. Prompt lengths are multiplied by `growth`.
std::shared_ptr<const std::vector<RequestLengths>> numpy_lengths(const LengthSpec::Uniform& prompts,
                                                                 const LengthSpec::Uniform& outputs,
                                                                 std::int64_t requests, double growth);

}  // namespace roofcast
