#pragma once
// The CUDA side, behind plain C++: no CUDA header is needed to use it.

#include <memory>

#include "calibrate/backend.h"

namespace roofcast::calibrate {

/// Throws Unavailable, one line that says what is missing: a build with nvcc, a driver or a newer one, the device.
std::unique_ptr<Backend> open_cuda_backend(int device);

}  // namespace roofcast::calibrate
