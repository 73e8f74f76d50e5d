#pragma once
// Lets another thread follow the progress of a long computation and stop it.

#include <atomic>
#include <cstdint>
#include <exception>

namespace roofcast {

struct Watch {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> simulations{0};  ///< finished so far
  std::atomic<std::uint64_t> requests{0};     ///< finished so far, over all simulations
};

/// Thrown by a computation after its watch asked it to stop.
class Stopped : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped"; }
};

/// The watch of this thread's computation; null if there is none.
Watch* current_watch();

/// Sets this thread's watch until the end of the scope. Parallel loops pass it on to their threads.
class WatchScope {
 public:
  explicit WatchScope(Watch* watch);
  ~WatchScope();
  WatchScope(const WatchScope&) = delete;
  WatchScope& operator=(const WatchScope&) = delete;

 private:
  Watch* before_;
};

/// Throws Stopped if this thread's watch asks it to stop.
void check_stopped();

}  // namespace roofcast
