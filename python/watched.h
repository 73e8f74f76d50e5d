#pragma once
// Runs a computation without holding the GIL. Reports progress; Ctrl-C stops it.

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <pybind11/pybind11.h>

#include "base/watch.h"

namespace roofcast::python {

namespace py = pybind11;

/// Progress of a computation; `of` 0: unknown.
struct Done {
  std::uint64_t done = 0, of = 0;
  bool operator==(const Done&) const = default;
};

/// Calls the caller's progress(done, of) whenever it has changed; `of` is None if unknown.
class Progress {
 public:
  explicit Progress(py::object call) : call_(std::move(call)) {}
  void tell(Done now) {
    if (call_.is_none() || (told_ && *told_ == now)) return;
    told_ = now;
    call_(now.done, now.of > 0 ? py::object(py::int_(now.of)) : py::object(py::none()));
  }

 private:
  py::object call_;
  std::optional<Done> told_;
};

/// Returns or throws what work() returns or throws. work() runs on its own thread under a watch. Every 50 ms this
/// thread checks for signals and reports progress. A KeyboardInterrupt, or any exception raised by progress, stops the
/// work.
template <class Work>
auto run_watched(const py::object& progress, const std::function<Done(const Watch&)>& how_far, const Work& work) {
  Watch watch;
  std::optional<decltype(work())> result;
  std::exception_ptr error, raised;
  bool ended = false;
  std::mutex mutex;
  std::condition_variable changed;
  Progress told(progress);
  {
    const py::gil_scoped_release release;
    std::thread worker([&] {
      const WatchScope watched(&watch);
      try {
        result.emplace(work());
      } catch (...) {
        error = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      ended = true;
      changed.notify_one();
    });
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, std::chrono::milliseconds(50), [&] { return ended; })) {
      lock.unlock();
      if (!raised) {
        const py::gil_scoped_acquire acquire;
        try {
          if (PyErr_CheckSignals() != 0) throw py::error_already_set();
          told.tell(how_far(watch));
        } catch (...) {
          raised = std::current_exception();
          watch.stop = true;
        }
      }
      lock.lock();
    }
    lock.unlock();
    worker.join();
  }
  if (raised) std::rethrow_exception(raised);
  if (error) std::rethrow_exception(error);
  told.tell(how_far(watch));
  return std::move(*result);
}

}  // namespace roofcast::python
