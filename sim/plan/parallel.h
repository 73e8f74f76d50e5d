#pragma once
// Loops over all cores.

#include <cstddef>

#if !defined(__EMSCRIPTEN__)
#include <tbb/parallel_for.h>
#endif

#include "base/watch.h"

#if defined(__SANITIZE_THREAD__)
#include <atomic>
#include <future>
#endif

namespace roofcast {

/// Calls body(0) .. body(count - 1) in any order on all cores, with dynamic scheduling; returns when all are done.
/// Throws Stopped if the caller's watch requests it. Under the thread sanitizer two plain threads run, because Debian's
/// TBB is not instrumented. In a browser's worker there is one core: in order.
template <class Body>
void parallel_for_each_index(std::size_t count, const Body& body) {
  const auto one = [&, watch = current_watch()](std::size_t i) {
    const WatchScope watched(watch);
    check_stopped();
    body(i);
  };
#if defined(__EMSCRIPTEN__)
  for (std::size_t i = 0; i < count; ++i) one(i);
#elif defined(__SANITIZE_THREAD__)
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) one(i);
  };
  std::future<void> other = std::async(std::launch::async, work);  // joins on destruction and keeps exceptions
  work();
  other.get();
#else
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, count, 1), [&](const tbb::blocked_range<std::size_t>& range) {
    for (std::size_t i = range.begin(); i != range.end(); ++i) one(i);
  });
#endif
}

}  // namespace roofcast
