#include "calibrate/harness.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/error.h"
#include "calibrate/commit.h"

namespace roofcast {
namespace {

std::string utc_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

/// Runs until `warm_up` is over; returns the calls that fill one sample.
int warm(Backend& backend, Case& subject, Seconds warm_up, const HarnessOptions& options) {
  const Seconds start = backend.now();
  Seconds call = subject.time(1);
  int repeats = 1;
  constexpr int kMostRuns = 100'000;  // a clock that stands still must not hold it here
  for (int run = 0; run < kMostRuns; ++run) {
    const double wanted = std::ceil(options.sample_length / std::max(call, Seconds{1e-9}));
    repeats = static_cast<int>(std::clamp(wanted, 1.0, static_cast<double>(options.max_repeats)));
    if (run > 0 && backend.now() - start >= warm_up) break;
    if (options.interrupted()) break;
    call = std::min(call, subject.time(repeats));  // the quickest: the first call also loads and allocates
  }
  return repeats;
}

/// Samples until the median is known, the time is up or Ctrl-C came.
void sample(Backend& backend, Case& subject, Seconds until, const HarnessOptions& options, Record& record) {
  while (true) {
    const int taken = static_cast<int>(record.samples_us.size());
    if (taken >= options.min_samples) {
      if (statistics_of(record.samples_us, record.throttled).standard_error < options.standard_error) {
        record.stop = Stop::kConverged;
        return;
      }
      record.stop = Stop::kTime;
      if (backend.now() >= until) return;
      record.stop = Stop::kSamples;
      if (taken >= options.max_samples) return;
    }
    if (options.interrupted()) {
      record.stop = Stop::kTime;
      return;
    }
    record.samples_us.push_back(subject.time(record.repeats).in(kMicrosecond));
    if (backend.throttled()) record.throttled.push_back(taken);
  }
}

}  // namespace

std::optional<Record> measure_point(Backend& backend, const Point& point, Seconds allowance, Seconds warm_up,
                                    const HarnessOptions& options) {
  Record record;
  record.point = point;
  record.device = backend.device();
  record.commit = kCommit;
  record.time = utc_now();
  record.before = record.after = backend.state();
  const Seconds until = backend.now() + allowance;
  try {
    const std::unique_ptr<Case> subject = backend.prepare(point);
    record.engine = subject->engine();
    record.kernel = subject->kernel();
    record.flops = subject->flops().base();
    record.bytes = subject->bytes().base();
    record.note = subject->check();
    if (!record.note.empty()) {
      record.stop = Stop::kWrongResult;
      return record;
    }
    record.repeats = warm(backend, *subject, warm_up, options);
    sample(backend, *subject, until, options, record);
    record.after = backend.state();
  } catch (const OutOfMemory& error) {
    record.stop = Stop::kOutOfMemory;
    record.samples_us.clear();
    record.note = error.what();
    return record;
  } catch (const Unsupported& error) {
    record.stop = Stop::kUnsupported;
    record.note = error.what();
    return record;
  }
  if (static_cast<int>(record.samples_us.size()) < options.min_samples) return std::nullopt;
  return record;
}

namespace {

/// The point at which the device was lost, so that a resumed run passes it over.
Record lost(const Backend& backend, const Point& point, const char* why) {
  Record record;
  record.point = point;
  record.device = backend.device();
  record.commit = kCommit;
  record.time = utc_now();
  record.stop = Stop::kWrongResult;
  record.note = why;
  return record;
}

void count(MeasureSummary& summary, const Record& record) {
  summary.measured += record.has_time() ? 1 : 0;
  summary.converged += record.stop == Stop::kConverged ? 1 : 0;
  summary.out_of_memory += record.stop == Stop::kOutOfMemory ? 1 : 0;
  summary.unsupported += record.stop == Stop::kUnsupported ? 1 : 0;
  summary.wrong += record.stop == Stop::kWrongResult ? 1 : 0;
}

}  // namespace

MeasureSummary measure(Backend& backend, std::span<const Point> points, const std::set<std::string>& found,
                       const HarnessOptions& options, const std::function<void(const Record&)>& sink,
                       const std::function<void(const MeasureProgress&)>& progress) {
  MeasureSummary summary;
  summary.points = points.size();
  const Seconds start = backend.now();
  bool first = true;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (found.contains(points[i].key())) {
      ++summary.found;
      continue;
    }
    const Seconds spent = backend.now() - start;
    if (spent >= options.budget) {
      ++summary.not_reached;
      continue;
    }
    if (options.interrupted()) {
      summary.interrupted = true;
      break;
    }
    if (progress) progress({.done = i, .of = points.size(), .point = points[i].key(), .spent = spent});
    const Seconds share = (options.budget - spent) / static_cast<double>(points.size() - i);
    const Seconds allowance = std::min(std::max(2.0 * share, options.least_per_point), options.budget - spent);
    std::optional<Record> record;
    try {
      record = measure_point(backend, points[i], allowance, first ? options.first_warm_up : options.warm_up, options);
    } catch (const Unavailable& error) {
      sink(lost(backend, points[i], error.what()));
      throw Unavailable(points[i].key() + ": " + error.what());
    }
    if (!record) {
      summary.interrupted = true;
      break;
    }
    first = first && !record->has_time();
    sink(*record);
    count(summary, *record);
  }
  if (progress) progress({.done = points.size(), .of = points.size(), .point = "", .spent = backend.now() - start});
  return summary;
}

}  // namespace roofcast
