#include "calibrate/kernels/cuda_case.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "calibrate/kernels/launchers.h"

namespace roofcast::calibrate::cuda {

int CudaCase::rotate(std::size_t slot_bytes) {
  const std::size_t wanted = (4 * context_.l2_bytes() + slot_bytes - 1) / std::max<std::size_t>(slot_bytes, 1);
  slots_ = static_cast<int>(std::clamp<std::size_t>(wanted, 1, 300));
  return slots_;
}

void CudaCase::run_once() {
  enqueue(context_.stream, 0);
  context_.stream.wait();
}

void CudaCase::capture(int repeats) {
  if (repeats == captured_) return;
  captured_ = 0;
  graph_.capture(context_.stream, [&] {
    for (int i = 0; i < repeats; ++i) enqueue(context_.stream, i % slots_);
  });
  captured_ = repeats;
}

Seconds CudaCase::time(int repeats) {
  capture(repeats);
  while (true) {
    if (cold_) flush(context_);
    spin(context_.stream, gate_.nanoseconds());
    const auto begin = std::chrono::steady_clock::now();
    context_.start.record(context_.stream);
    graph_.launch(context_.stream);
    context_.stop.record(context_.stream);
    const std::chrono::duration<double> queueing = std::chrono::steady_clock::now() - begin;
    context_.stop.wait();
    if (gate_.held(Seconds{queueing.count()})) return context_.stop.since(context_.start) / repeats;
  }
}

std::vector<Seconds> CudaCase::series(int repeats, int count, Seconds call, const std::function<void()>& meanwhile) {
  capture(repeats);
  std::vector<Event> events(static_cast<std::size_t>(count) + 1);
  const auto begin = std::chrono::steady_clock::now();
  spin(context_.stream, gate_.nanoseconds());
  events[0].record(context_.stream);
  for (int i = 0; i < count; ++i) {
    graph_.launch(context_.stream);
    events[static_cast<std::size_t>(i) + 1].record(context_.stream);
  }
  // from the start, because a full queue has already made the host wait
  std::this_thread::sleep_until(begin + std::chrono::duration<double>(0.75 * count * repeats * call.base()));
  meanwhile();
  events.back().wait();
  std::vector<Seconds> out;
  for (std::size_t i = 1; i < events.size(); ++i) out.push_back(events[i].since(events[i - 1]) / repeats);
  return out;
}

void flush(const Context& context) {
  read(context.stream, kFlushBlocksPerSm * context.sms(), context.flush.as<void>(), context.flush.bytes(),
       context.flush_sums.as<std::uint32_t>());
}

int whole(const Point& point, std::string_view name) {
  const std::int64_t value = point.number(name);
  if (value < 1 || value > std::numeric_limits<int>::max()) throw Unsupported(std::string(name) + " is out of range");
  return static_cast<int>(value);
}

}  // namespace roofcast::calibrate::cuda
