#pragma once
// Simple kernels on one CPU core. They allow the whole path from a point to a fit without a GPU, as a self-test of the
// harness. Their numbers say nothing about a GPU.

#include <memory>

#include "calibrate/backend.h"

namespace roofcast::calibrate {

/// Supports stream, gemm, attention_decode and attention_prefill, the last three in bf16.
std::unique_ptr<Backend> open_cpu_backend();

}  // namespace roofcast::calibrate
