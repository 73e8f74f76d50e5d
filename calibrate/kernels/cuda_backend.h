#pragma once
// The CUDA backend behind a plain C++ interface, without CUDA headers.

#include <memory>

#include "calibrate/backend.h"

namespace roofcast::calibrate {

/// Throws Unavailable, in one line, if something is missing: a build with nvcc, a driver that is new enough, the
/// device.
std::unique_ptr<Backend> open_cuda_backend(int device);

}  // namespace roofcast::calibrate
