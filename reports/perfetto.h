#pragma once
// A timeline in the Trace Event format, which ui.perfetto.dev and chrome://tracing open.
// Source: "Trace Event Format", Google, docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"

namespace roofcast::reports {

using TimelineNumbers = std::vector<std::pair<std::string, double>>;

/// A row: `process` is a replica (or the front end), `thread` a GPU or a queue of it.
struct TimelineTrack {
  int process = 0, thread = 0;
  std::string process_name{}, thread_name{};
};

/// Work on a track; slices of one track nest or follow one another.
struct TimelineSlice {
  int process = 0, thread = 0;
  std::string name{};
  Seconds start{}, end{};
  TimelineNumbers arguments{};
};

/// A phase of a request: spans of one id nest under the first one, "request".
struct TimelineSpan {
  int process = 0;
  std::int64_t id = 0;
  std::string name{};
  Seconds start{}, end{};
  TimelineNumbers arguments{};
};

/// Values that change over time, drawn as areas.
struct TimelineCounter {
  int process = 0;
  std::string name{};
  Seconds at{};
  TimelineNumbers values{};
};

/// An arrow from one track's slice to another's: a KV transfer.
struct TimelineFlow {
  std::int64_t id = 0;
  std::string name{};
  int from_process = 0, from_thread = 0, to_process = 0, to_thread = 0;
  Seconds start{}, end{};
};

struct Timeline {
  std::vector<TimelineTrack> tracks{};
  std::vector<TimelineSlice> slices{};
  std::vector<TimelineSpan> spans{};
  std::vector<TimelineCounter> counters{};
  std::vector<TimelineFlow> flows{};
};

/// JSON object with `traceEvents`, in time order; times in microseconds since the start of the simulation.
std::string perfetto_json(const Timeline& timeline);

}  // namespace roofcast::reports
