#include "reports/perfetto.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace roofcast::reports {
namespace {

/// One event and its sort key: time, then ends before starts so that neighbours do not overlap, then the longer of two
/// that start together.
struct Event {
  double at = 0;
  int rank = 0;
  double minus_length = 0;
  std::string text{};
};

std::string text_of(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

/// Trace resolution: times are whole nanoseconds, written as microseconds.
std::int64_t nanoseconds(Seconds t) { return std::llround(1e3 * t.in(kMicrosecond)); }
std::string text_of_time(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }
std::string time_of(Seconds t) { return text_of_time(nanoseconds(t)); }
/// The difference of rounded ends; a separately rounded length could overlap the next slice.
std::string length_of(Seconds start, Seconds end) { return text_of_time(nanoseconds(end) - nanoseconds(start)); }

std::string object_of(const TimelineNumbers& numbers) {
  std::string out = "{";
  for (const auto& [name, value] : numbers)
    out += fmt::format("{}{}:{:.6g}", out.size() > 1 ? "," : "", text_of(name), value);
  return out + "}";
}

void add_tracks(const Timeline& t, std::vector<Event>& out) {
  for (const TimelineTrack& track : t.tracks) {
    out.push_back({-1, 0, 0,
                   fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":{}}}}})",
                               track.process, text_of(track.process_name))});
    if (track.thread_name.empty()) continue;
    out.push_back({-1, 0, 0,
                   fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})",
                               track.process, track.thread, text_of(track.thread_name))});
  }
}

void add_slices(const Timeline& t, std::vector<Event>& out) {
  for (const TimelineSlice& s : t.slices) {
    SIM_CHECK(s.start <= s.end, "a slice ends before it begins");
    out.push_back({s.start.base(), 2, -(s.end - s.start).base(),
                   fmt::format(R"({{"ph":"X","cat":"step","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{}}})",
                               text_of(s.name), s.process, s.thread, time_of(s.start), length_of(s.start, s.end),
                               object_of(s.arguments))});
  }
}

void add_spans(const Timeline& t, std::vector<Event>& out) {
  for (const TimelineSpan& s : t.spans) {
    SIM_CHECK(s.start <= s.end, "a span ends before it begins");
    const double length = (s.end - s.start).base();
    out.push_back(
        {s.start.base(), 2, -length,
         fmt::format(R"({{"ph":"b","cat":"request","name":{},"id":"0x{:x}","pid":{},"tid":0,"ts":{},"args":{}}})",
                     text_of(s.name), s.id, s.process, time_of(s.start), object_of(s.arguments))});
    // A span without length ends after its beginning; others end first, the inner before the outer.
    out.push_back({s.end.base(), length > 0 ? 1 : 3, length,
                   fmt::format(R"({{"ph":"e","cat":"request","name":{},"id":"0x{:x}","pid":{},"tid":0,"ts":{}}})",
                               text_of(s.name), s.id, s.process, time_of(s.end))});
  }
}

void add_counters_and_flows(const Timeline& t, std::vector<Event>& out) {
  for (const TimelineCounter& c : t.counters) {
    out.push_back({c.at.base(), 2, 0,
                   fmt::format(R"({{"ph":"C","name":{},"pid":{},"tid":0,"ts":{},"args":{}}})", text_of(c.name),
                               c.process, time_of(c.at), object_of(c.values))});
  }
  for (const TimelineFlow& f : t.flows) {
    SIM_CHECK(f.start <= f.end, "a flow ends before it begins");
    out.push_back({f.start.base(), 3, 0,
                   fmt::format(R"({{"ph":"s","cat":"kv transfer","name":{},"id":{},"pid":{},"tid":{},"ts":{}}})",
                               text_of(f.name), f.id, f.from_process, f.from_thread, time_of(f.start))});
    out.push_back(
        {f.end.base(), 4, 0,
         fmt::format(R"({{"ph":"f","bp":"e","cat":"kv transfer","name":{},"id":{},"pid":{},"tid":{},"ts":{}}})",
                     text_of(f.name), f.id, f.to_process, f.to_thread, time_of(f.end))});
  }
}

}  // namespace

std::string perfetto_json(const Timeline& timeline) {
  std::vector<Event> events;
  add_tracks(timeline, events);
  add_slices(timeline, events);
  add_spans(timeline, events);
  add_counters_and_flows(timeline, events);
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tuple(a.at, a.rank, a.minus_length) < std::tuple(b.at, b.rank, b.minus_length);
  });
  std::string out =
      "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"generator\":\"roofcast " ROOFCAST_VERSION "\"},\"traceEvents\":[\n";
  for (std::size_t i = 0; i < events.size(); ++i) out += events[i].text + (i + 1 < events.size() ? ",\n" : "\n");
  return out + "]}\n";
}

}  // namespace roofcast::reports
