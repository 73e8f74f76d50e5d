#pragma once
// Measures points within a time budget, similar to NVIDIA's nvbench: warm-up, then samples until the median is precise
// enough. Throttled samples are marked. A point with `load_ms` in its shape is measured while the device works without
// a pause, in the second half of that time.

#include <functional>
#include <set>
#include <span>
#include <string>

#include "calibrate/backend.h"
#include "calibrate/record.h"

namespace roofcast::calibrate {

struct HarnessOptions {
  Seconds budget{180.0};
  double standard_error = 0.005;  ///< target for the relative standard error of the median
  int min_samples = 10, max_samples = 300;
  Seconds warm_up{5e-3};  ///< time that a point runs before it is timed, so that clocks rise and caches and tables fill
  Seconds first_warm_up{0.3};    ///< the same for the first point, because a GPU wakes slowly
  Seconds least_sampled{20e-3};  ///< minimum total time of a point's samples, so that drift becomes visible
  /// NVML's readings are up to 100 ms old (arXiv:2312.02741). A point begins once no limit of the previous one is
  /// reported any more, at the latest after `settle`. Limits reported within `flag_lag` after a point belong to that
  /// point. On an H200 the flag stays for up to 0.3 s.
  Seconds settle{0.5}, flag_lag{25e-3};
  /// Idle time after each sample of a cool point, in sample lengths. At a quarter duty cycle no kernel reaches the
  /// board's power limit.
  double rest = 3.0;
  Seconds sample_length{1e-3};  ///< minimum length of a sample, which sets the number of calls per sample
  int max_repeats = 300;
  Seconds least_per_point{0.05};  ///< minimum time for a point, even if its share of the budget is less
  std::function<bool()> interrupted = [] { return false; };
};

/// Measures one point in about `allowance` at most. Never throws OutOfMemory, Unsupported or Failed; the record says so
/// instead. Null if interrupted before `min_samples`.
std::optional<Record> measure_point(Backend& backend, const Point& point, Seconds allowance, Seconds warm_up,
                                    const HarnessOptions& options);

struct MeasureSummary {
  std::size_t points = 0, found = 0, measured = 0, converged = 0;
  std::size_t out_of_memory = 0, unsupported = 0, wrong = 0, failed = 0;
  std::size_t hot = 0;          ///< measured under load, or throttled most of the time
  std::size_t not_reached = 0;  ///< the budget was spent before these
  bool interrupted = false;
};

struct MeasureProgress {
  std::size_t done = 0, of = 0;
  std::string point;  ///< the next one
  Seconds spent{};
};

/// Measures all points whose keys are not in `found`, in order. A point's allowance is twice its even share of the rest
/// of the budget, because most points converge early. No point begins after the budget is spent. `sink` receives each
/// record as soon as it is complete. Throws Unavailable if the device is lost, after a record of kFailed with the point
/// and the reason, so that a resumed run skips it.
MeasureSummary measure(Backend& backend, std::span<const Point> points, const std::set<std::string>& found,
                       const HarnessOptions& options, const std::function<void(const Record&)>& sink,
                       const std::function<void(const MeasureProgress&)>& progress);

}  // namespace roofcast::calibrate
