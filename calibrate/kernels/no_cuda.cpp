// The stub for builds without nvcc.
#include "calibrate/kernels/cuda_backend.h"

#include "base/error.h"

namespace roofcast::calibrate {

std::unique_ptr<Backend> open_cuda_backend(int) {
  throw Unavailable(
      "calibrate measure: this roofcast was built without CUDA (nvcc was not found); --backend cpu works");
}

}  // namespace roofcast::calibrate
