#pragma once
// Measures points within a budget: warm-up, samples until the median is known well enough, throttled ones marked. A
// point with `load_ms` in its shape is measured while the device works without a pause, from half of that time on.
// In the manner of NVIDIA's nvbench.

#include <functional>
#include <set>
#include <span>
#include <string>

#include "calibrate/backend.h"
#include "calibrate/record.h"

namespace roofcast::calibrate {

struct HarnessOptions {
  Seconds budget{180.0};
  double standard_error = 0.005;  ///< of the median, relative: good enough below it
  int min_samples = 10, max_samples = 300;
  Seconds warm_up{5e-3};         ///< of running a point before it is timed; clocks rise, caches and tables fill
  Seconds first_warm_up{0.3};    ///< the same for the first point: a GPU wakes slowly
  Seconds least_sampled{20e-3};  ///< of samples before a point may end: drift shows
  /// NVML's readings are as old as 100 ms (arXiv:2312.02741): a point begins when no limit of the one before shows any
  /// more, at the latest after `settle`, and what shows within `flag_lag` after it is its own. On an H200 the flag
  /// stays for up to 0.3 s.
  Seconds settle{0.5}, flag_lag{25e-3};
  /// The device idles so many sample lengths after each sample of a cool point: at a quarter of the time at work no
  /// kernel reaches the board's power.
  double rest = 3.0;
  Seconds sample_length{1e-3};  ///< a sample holds so many calls that it is at least this long
  int max_repeats = 300;
  Seconds least_per_point{0.05};  ///< a point may take this long even where its share of the budget is less
  std::function<bool()> interrupted = [] { return false; };
};

/// One point, in at most about `allowance`. Never throws OutOfMemory, Unsupported or Failed: the record says so.
/// Null when it was interrupted before `min_samples`.
std::optional<Record> measure_point(Backend& backend, const Point& point, Seconds allowance, Seconds warm_up,
                                    const HarnessOptions& options);

struct MeasureSummary {
  std::size_t points = 0, found = 0, measured = 0, converged = 0;
  std::size_t out_of_memory = 0, unsupported = 0, wrong = 0, failed = 0;
  std::size_t hot = 0;          ///< measured under load, or with clocks held down most of the time
  std::size_t not_reached = 0;  ///< the budget was spent before
  bool interrupted = false;
};

struct MeasureProgress {
  std::size_t done = 0, of = 0;
  std::string point;  ///< that comes next
  Seconds spent{};
};

/// All points whose keys are not in `found`, in their order. A point's allowance is twice its even share of what is
/// left, for most converge early; once the budget is spent no further point is begun. `sink` gets each record as soon
/// as it is there. Throws Unavailable when the device is lost, after a
/// record of kFailed that names the point and why: a resumed run passes it over.
MeasureSummary measure(Backend& backend, std::span<const Point> points, const std::set<std::string>& found,
                       const HarnessOptions& options, const std::function<void(const Record&)>& sink,
                       const std::function<void(const MeasureProgress&)>& progress);

}  // namespace roofcast::calibrate
