#include "calibrate/kernels/cuda_case.h"

#include <algorithm>
#include <limits>

#include "calibrate/kernels/launchers.h"

namespace roofcast::cuda {

int CudaCase::rotate(std::size_t slot_bytes) {
  const std::size_t wanted = (4 * context_.l2_bytes() + slot_bytes - 1) / std::max<std::size_t>(slot_bytes, 1);
  slots_ = static_cast<int>(std::clamp<std::size_t>(wanted, 1, 300));
  return slots_;
}

void CudaCase::run_once() {
  enqueue(context_.stream, 0);
  context_.stream.wait();
}

Seconds CudaCase::time(int repeats) {
  if (repeats != captured_) {
    captured_ = 0;
    graph_.capture(context_.stream, [&] {
      for (int i = 0; i < repeats; ++i) enqueue(context_.stream, i % slots_);
    });
    captured_ = repeats;
  }
  if (cold_) {
    cuda::check(cudaMemsetAsync(context_.flush.as<void>(), 0, context_.flush.bytes(), context_.stream), "flushing L2");
  }
  spin(context_.stream, 40'000);
  context_.start.record(context_.stream);
  graph_.launch(context_.stream);
  context_.stop.record(context_.stream);
  context_.stop.wait();
  return context_.stop.since(context_.start) / repeats;
}

int whole(const Point& point, std::string_view name) {
  const std::int64_t value = point.number(name);
  if (value < 1 || value > std::numeric_limits<int>::max()) throw Unsupported(std::string(name) + " is out of range");
  return static_cast<int>(value);
}

}  // namespace roofcast::cuda
