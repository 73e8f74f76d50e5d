#include "reports/perfetto.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

using namespace roofcast;
using namespace roofcast::reports;

TEST_CASE("perfetto: the events keep the format's rules") {
  Timeline t;
  t.tracks = {{.process = 1, .thread = 2, .process_name = "replica \"0\"", .thread_name = "GPU"}};
  t.slices = {{.process = 1,
               .thread = 2,
               .name = "step",
               .start = Seconds(0.002),
               .end = Seconds(0.003),
               .arguments = {{"batch", 8}}},
              {.process = 1, .thread = 2, .name = "step", .start = Seconds(0.001), .end = Seconds(0.002)}};
  t.spans = {{.process = 1, .id = 7, .name = "request", .start = Seconds(0), .end = Seconds(0.003)},
             {.process = 1, .id = 7, .name = "queue", .start = Seconds(0), .end = Seconds(0.001)},
             {.process = 1, .id = 7, .name = "decode", .start = Seconds(0.001), .end = Seconds(0.003)},
             {.process = 1, .id = 8, .name = "instant", .start = Seconds(0.001), .end = Seconds(0.001)}};
  t.counters = {{.process = 1, .name = "KV cache", .at = Seconds(0.001), .values = {{"usage", 0.5}}}};
  t.flows = {{.id = 1,
              .name = "KV",
              .from_process = 1,
              .from_thread = 2,
              .to_process = 2,
              .to_thread = 2,
              .start = Seconds(0.001),
              .end = Seconds(0.002)}};
  const auto json = nlohmann::json::parse(perfetto_json(t));
  const auto& events = json["traceEvents"];
  CHECK(events.size() == 2 + 2 + 8 + 1 + 2);
  double last = 0;
  std::map<std::string, std::vector<std::string>> open;  // spans of an id nest
  for (const auto& e : events) {
    const std::string kind = e["ph"];
    if (kind == "M") continue;
    CHECK(e["ts"].get<double>() >= last);
    last = e["ts"].get<double>();
    CHECK(e.contains("pid"));
    CHECK(e.contains("tid"));
    if (kind == "b") open[e["id"]].push_back(e["name"]);
    if (kind == "e") {
      REQUIRE_FALSE(open[e["id"]].empty());
      CHECK(open[e["id"]].back() == e["name"]);
      open[e["id"]].pop_back();
    }
  }
  for (const auto& [id, names] : open) CHECK(names.empty());
  // 1 ms = 1000 us
  for (const auto& e : events) {
    if (e["ph"] == "X") CHECK(e["dur"] == doctest::Approx(1000));
  }
}

TEST_CASE("perfetto: steps that follow one another never overlap by a nanosecond") {
  Timeline t;
  t.tracks = {{.process = 1, .thread = 2, .process_name = "replica", .thread_name = "GPU"}};
  double at = 0;
  for (int i = 1; i <= 500; ++i) {  // lengths that round up as often as down
    const double end = at + 1e-6 * (1 + 0.0137 * i);
    t.slices.push_back({.process = 1, .thread = 2, .name = "step", .start = Seconds(at), .end = Seconds(end)});
    at = end;
  }
  const auto json = nlohmann::json::parse(perfetto_json(t));
  std::int64_t last = 0;
  for (const auto& e : json["traceEvents"]) {
    if (e["ph"] != "X") continue;
    const auto from = std::llround(1e3 * e["ts"].get<double>()), length = std::llround(1e3 * e["dur"].get<double>());
    CHECK(from == last);
    last = from + length;
  }
}

TEST_CASE("perfetto: an empty timeline is a valid file") {
  CHECK(nlohmann::json::parse(perfetto_json({}))["traceEvents"].empty());
}
