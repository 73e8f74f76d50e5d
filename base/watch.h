#pragma once
// Lets another thread watch a long computation and stop it.

#include <atomic>
#include <cstdint>
#include <exception>

namespace roofcast {

struct Watch {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> simulations{0};  ///< finished so far
  std::atomic<std::uint64_t> requests{0};     ///< finished so far, over all simulations
};

/// Thrown by a computation that its watch has stopped.
class Stopped : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped"; }
};

/// The watch of this thread's computation; null: none.
Watch* current_watch();

/// This thread works for `watch` until the end of the scope. Loops over all cores pass it on.
class Watched {
 public:
  explicit Watched(Watch* watch);
  ~Watched();
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  Watch* before_;
};

/// Throws Stopped if this thread's watch asks for it.
void check_stopped();

}  // namespace roofcast
