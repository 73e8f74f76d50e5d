#pragma once
// Lengths that a benchmark's client drew, told by its seed.

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "sim/serve/workload.h"

namespace roofcast {

/// NumPy's RandomState.randint(low, high + 1), high >= low, of a twister with RandomState's seed: 32 bits under the
/// smallest mask that holds the range, drawn again while above it.
int draw_as_numpy(std::mt19937& twister, int low, int high);

/// Lengths of the requests of an InferenceX run in the order of sending. Its client
/// (github.com/SemiAnalysisAI/InferenceX, utils/bench_serving/benchmark_serving.py, sample_random_requests) seeds NumPy
/// with 0 and draws all prompt lengths from [int(0.8 isl), isl], then all output lengths likewise: the same in every
/// run of that shape and so many requests, whatever the engine. `growth`: what the engine made of a prompt of so many
/// tokens. Shapes: isl, osl >= 1, requests >= 0; growth > 0.
std::shared_ptr<const std::vector<RequestLengths>> inferencex_lengths(int isl, int osl, std::int64_t requests,
                                                                      double growth = 1.0);

}  // namespace roofcast
