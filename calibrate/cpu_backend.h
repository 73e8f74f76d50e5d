#pragma once
// Real kernels on one CPU core, in a few plain lines each: the whole way from a point to a fit, where no GPU is.
// A self-test of the harness; its numbers say nothing about a GPU.

#include <memory>

#include "calibrate/backend.h"

namespace roofcast::calibrate {

/// Knows stream, gemm, attention_decode and attention_prefill, the last three in bf16.
std::unique_ptr<Backend> open_cpu_backend();

}  // namespace roofcast::calibrate
