#pragma once
// Whoever starts a long computation may watch it from another thread: see that it moves, and stop it.

#include <atomic>
#include <cstdint>
#include <exception>

namespace roofcast {

struct Watch {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> simulations{0};  ///< ended so far
  std::atomic<std::uint64_t> requests{0};     ///< ended so far, of all simulations
};

/// Thrown by a computation whose watch said stop.
class Stopped : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped"; }
};

/// Of the computation that this thread works for; null: nobody watches.
Watch* current_watch();

/// This thread works for `watch` until the end of the scope. Loops over all cores hand it on.
class Watched {
 public:
  explicit Watched(Watch* watch);
  ~Watched();
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  Watch* before_;
};

/// Throws Stopped where the watch of this thread says so.
void check_stopped();

}  // namespace roofcast
