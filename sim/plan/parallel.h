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

/// body(0) .. body(count - 1), in any order, on all cores, one at a time handed out; returns when all are done. Throws
/// Stopped where the caller's watch says so. The thread sanitizer cannot see how Debian's TBB, which is not
/// instrumented, hands work over; under it two plain threads do. In a browser's worker there is one core: in order.
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
  std::future<void> other = std::async(std::launch::async, work);  // waits for its end, and keeps what it throws
  work();
  other.get();
#else
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, count, 1), [&](const tbb::blocked_range<std::size_t>& range) {
    for (std::size_t i = range.begin(); i != range.end(); ++i) one(i);
  });
#endif
}

}  // namespace roofcast
