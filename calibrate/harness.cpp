#include "calibrate/harness.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/error.h"
#include "calibrate/commit.h"

namespace roofcast::calibrate {
namespace {

std::string utc_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

/// Runs until `warm_up` is over; returns the number of calls per sample.
int warm(Backend& backend, Case& subject, Seconds warm_up, const HarnessOptions& options) {
  const Seconds start = backend.now();
  Seconds call = subject.time(1);
  int repeats = 1;
  constexpr int kMostRuns = 100'000;  // ends the loop even if the clock stands still
  for (int run = 0; run < kMostRuns; ++run) {
    const double wanted = std::ceil(options.sample_length / std::max(call, Seconds{1e-9}));
    repeats = static_cast<int>(std::clamp(wanted, 1.0, static_cast<double>(options.max_repeats)));
    if (run > 0 && backend.now() - start >= warm_up) break;
    if (options.interrupted()) break;
    call = std::min(call, subject.time(repeats));  // the fastest, because the first call also loads and allocates
  }
  return repeats;
}

/// Leaves the device idle until no limit reached by an earlier point is reported.
void settle(Backend& backend, const HarnessOptions& options) {
  if (!backend.sees_throttling()) return;
  const Seconds start = backend.now();
  const auto waits = [&] { return backend.now() - start < options.settle && !options.interrupted(); };
  bool limited = false;
  for (; backend.throttled() && waits(); limited = true) backend.wait(2.0 * kMillisecond);
  if (limited && waits()) backend.wait(options.flag_lag);  // just below the limit it would be reported again at once
}

/// Whether the median has reached the requested precision and is steady.
bool converged(const Record& record, Seconds sampled, const HarnessOptions& options) {
  if (sampled < options.least_sampled) return false;
  const Statistics s = statistics_of(record.samples_us);
  return s.standard_error < options.standard_error && !s.drifts;
}

/// Takes samples until the median is precise enough, the time is up, or the run is interrupted. Rests before each
/// sample but the first. `ends` receives the end of each sample.
void sample(Backend& backend, Case& subject, Seconds until, const HarnessOptions& options, Record& record,
            std::vector<Seconds>& ends) {
  Seconds sampled{}, rest{};
  while (true) {
    const int taken = static_cast<int>(record.samples_us.size());
    if (taken >= options.min_samples) {
      if (converged(record, sampled, options)) {
        record.stop = Stop::kConverged;
        return;
      }
      record.stop = Stop::kTime;
      if (backend.now() + rest >= until) return;
      record.stop = Stop::kSamples;
      if (taken >= options.max_samples) return;
    }
    if (options.interrupted()) {
      record.stop = Stop::kTime;
      return;
    }
    if (rest > Seconds{}) backend.wait(rest);
    record.samples_us.push_back(subject.time(record.repeats).in(kMicrosecond));
    const Seconds took = record.samples_us.back() * record.repeats * kMicrosecond;
    sampled += took;
    if (backend.sees_throttling()) rest = options.rest * took;
    ends.push_back(backend.now());
    if (backend.throttled()) record.throttled.push_back(taken);
  }
}

/// Marks the last samples if a limit that was reached during them is reported only now.
void mark_late(Backend& backend, const std::vector<Seconds>& ends, const HarnessOptions& options, Record& record) {
  if (!backend.sees_throttling() || ends.empty()) return;
  backend.wait(options.flag_lag);
  if (!backend.throttled()) return;
  const int known = record.throttled.empty() ? -1 : record.throttled.back();
  for (int i = known + 1; i < static_cast<int>(ends.size()); ++i) {
    if (ends[static_cast<std::size_t>(i)] >= ends.back() - options.flag_lag) record.throttled.push_back(i);
  }
}

void measure_cool(Backend& backend, Case& subject, Seconds until, const HarnessOptions& options, Record& record) {
  std::vector<Seconds> ends;
  sample(backend, subject, until, options, record, ends);
  record.during = backend.state();
  mark_late(backend, ends, options, record);
}

Seconds load_of(const Point& point) { return static_cast<double>(point.number("load_ms")) * kMillisecond; }

/// Measures without a pause for `load_ms`. Only samples of the second half count, after power and heat limits have set
/// in.
void measure_under_load(Backend& backend, Case& subject, const HarnessOptions& options, Record& record) {
  const Seconds call = subject.time(record.repeats), load = load_of(record.point);
  const double wanted = std::ceil(load / std::max(call * record.repeats, Seconds{1e-9}));
  const int count = static_cast<int>(std::clamp(wanted, 2.0, static_cast<double>(2 * options.max_samples)));
  const std::vector<Seconds> times =
      subject.series(record.repeats, count, call, [&] { record.during = backend.state(); });
  for (std::size_t i = times.size() / 2; i < times.size(); ++i) {
    if (record.during.throttled) record.throttled.push_back(static_cast<int>(record.samples_us.size()));
    record.samples_us.push_back(times[i].in(kMicrosecond));
  }
  const Statistics s = statistics_of(record.samples_us);
  record.stop = s.standard_error < options.standard_error && !s.drifts ? Stop::kConverged : Stop::kTime;
}

}  // namespace

std::optional<Record> measure_point(Backend& backend, const Point& point, Seconds allowance, Seconds warm_up,
                                    const HarnessOptions& options) {
  Record record;
  record.point = point;
  record.device = backend.device();
  record.commit = kCommit;
  record.time = utc_now();
  record.before = record.during = record.after = backend.state();
  const bool under_load = point.find("load_ms") != nullptr;
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
    settle(backend, options);
    record.before = backend.state();
    HarnessOptions mine = options;
    if (under_load) mine.sample_length = std::max(options.sample_length, load_of(point) / options.max_samples);
    record.repeats = warm(backend, *subject, warm_up, mine);
    if (under_load) {
      measure_under_load(backend, *subject, options, record);
    } else {
      measure_cool(backend, *subject, until, options, record);
    }
    record.after = backend.state();
  } catch (const OutOfMemory& error) {
    record.stop = Stop::kOutOfMemory;
    record.samples_us.clear();
    record.throttled.clear();
    record.note = error.what();
    return record;
  } catch (const Unsupported& error) {
    record.stop = Stop::kUnsupported;
    record.samples_us.clear();
    record.throttled.clear();
    record.note = error.what();
    return record;
  } catch (const Failed& error) {
    record.stop = Stop::kFailed;
    record.samples_us.clear();
    record.throttled.clear();
    record.note = error.what();
    return record;
  }
  if (under_load && !record.samples_us.empty()) return record;
  if (static_cast<int>(record.samples_us.size()) < options.min_samples) return std::nullopt;
  return record;
}

namespace {

/// The record of the point at which the device was lost, so that a resumed run skips it.
Record lost(const Backend& backend, const Point& point, const char* why) {
  Record record;
  record.point = point;
  record.device = backend.device();
  record.commit = kCommit;
  record.time = utc_now();
  record.stop = Stop::kFailed;
  record.note = why;
  return record;
}

void count(MeasureSummary& summary, const Record& record) {
  summary.measured += record.has_time() ? 1 : 0;
  summary.converged += record.stop == Stop::kConverged ? 1 : 0;
  summary.out_of_memory += record.stop == Stop::kOutOfMemory ? 1 : 0;
  summary.unsupported += record.stop == Stop::kUnsupported ? 1 : 0;
  summary.failed += record.stop == Stop::kFailed ? 1 : 0;
  summary.hot += record.has_time() && is_hot(record) ? 1 : 0;
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

}  // namespace roofcast::calibrate
