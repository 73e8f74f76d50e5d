#include "reports/chart.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace roofcast;
using namespace roofcast::reports;

TEST_CASE("chart: stacked bars are on top of each other, grouped ones side by side") {
  Chart c;
  c.x.categories = {"a", "b"};
  c.series = {Series{.name = "p", .shape = Shape::kBars, .x = {0, 1}, .y = {1, 2}},
              Series{.name = "q", .shape = Shape::kBars, .x = {0, 1}, .y = {3, 4}}};
  c.stacked = true;
  auto bars = bars_of(c);
  REQUIRE(bars.size() == 4);
  CHECK(bars[2].from == 1);  // q at a stands on p's 1
  CHECK(bars[2].to == 4);
  CHECK(bars[3].from == 2);
  CHECK(bars[3].to == 6);
  c.stacked = false;
  bars = bars_of(c);
  CHECK(bars[0].position < 0);  // left of the category's middle
  CHECK(bars[2].position > 0);
  CHECK(bars[0].position + bars[0].half_width <= bars[2].position - bars[2].half_width);
}

TEST_CASE("chart: a floating bar spans from its base and keeps the middle") {
  Chart c;
  c.x.categories = {"a"};
  c.series = {Series{.name = "p", .shape = Shape::kBars, .x = {0}, .y = {5}, .base = {3}},
              Series{.name = "q", .shape = Shape::kBars, .x = {0}, .y = {9}, .base = {5}}};
  for (const Bar& bar : bars_of(c)) CHECK(bar.position == 0);
  CHECK(bars_of(c)[1].from == 5);
}

TEST_CASE("chart: ranges take in reference lines and bands") {
  Chart c;
  c.series = {Series{.name = "s", .shape = Shape::kPoints, .x = {1, 2}, .y = {10, 20}}};
  c.lines = {{false, 100, "objective"}};
  CHECK(y_range(c).high > 100);
  CHECK(y_range(c).low == 0);
  c.y.log = true;
  CHECK(y_range(c).low < 10);
  CHECK(y_range(c).low > 0);
  c.bands = {{.name = "band", .x = {1, 2}, .low = {1, 1}, .high = {1000, 1000}}};
  CHECK(y_range(c).high > 1000);
  CHECK(y_range(c).low < 1);
}

TEST_CASE("chart: ticks are round numbers inside the range") {
  const auto linear = ticks_of({0, 100}, false, 5);
  REQUIRE(linear.size() == 6);  // 0 20 40 60 80 100
  CHECK(linear[1].at == doctest::Approx(20));
  const auto log = ticks_of({1, 10000}, true, 6);
  REQUIRE(log.size() == 5);
  CHECK(log[4].text == "10k");
  CHECK(tick_text(0.0001) == "0.0001");
  CHECK(tick_text(2500000) == "2.5M");
}

TEST_CASE("chart: thinning keeps the extremes of lines and records the number of points") {
  Chart c;
  Series s{.name = "s"};
  for (int i = 0; i < 1000000; ++i) s.x.push_back(i), s.y.push_back(i == 777777 ? 50.0 : std::sin(i));
  c.series = {s};
  thin(c);
  CHECK(c.thinned_from == 1000000);
  CHECK(c.series[0].x.size() <= kMaxPoints + 2);
  CHECK(*std::max_element(c.series[0].y.begin(), c.series[0].y.end()) == 50.0);
  CHECK(c.series[0].x.front() == 0);
  CHECK(c.series[0].x.back() == 999999);
  CHECK(std::is_sorted(c.series[0].x.begin(), c.series[0].x.end()));
}

TEST_CASE("chart: points that no axis can show are dropped") {
  Chart c;
  c.y.log = true;
  c.series = {
      Series{
          .name = "s", .shape = Shape::kPoints, .x = {1, 2, 3}, .y = {1, 0, std::nan("")}, .labels = {"a", "b", "c"}},
      Series{.name = "empty"}};
  c.lines = {{false, -1, "below zero"}};
  REQUIRE(clean(c));
  CHECK(c.series.size() == 1);
  CHECK(c.series[0].labels == std::vector<std::string>{"a"});
  CHECK(c.lines.empty());
  c.series[0].y[0] = std::numeric_limits<double>::infinity();
  CHECK_FALSE(clean(c));
}

TEST_CASE("chart: an axis is logarithmic where the largest value is over 20 times the smallest") {
  CHECK(wants_log(std::vector{1.0, 21.0}));
  CHECK_FALSE(wants_log(std::vector{1.0, 20.0}));
  CHECK_FALSE(wants_log(std::vector{0.0, 100.0}));
  CHECK_FALSE(wants_log(std::vector<double>{}));
}

TEST_CASE("chart: a label hides no point, of its own series or another") {
  Chart c;
  c.series = {
      Series{.name = "named", .shape = Shape::kPoints, .x = {0.5}, .y = {0.5}, .labels = {"abc"}, .write_labels = true},
      Series{.name = "other", .shape = Shape::kPoints, .x = {0.53, 0, 1}, .y = {0.5, 0, 1}}};
  const AxisRange x = x_range(c), y = y_range(c);
  const auto placed = place_labels(c, 0.01, 0.05);
  REQUIRE(placed.size() == 1);
  const double from = placed[0].left ? placed[0].x : placed[0].x - 0.03, other = fraction_of(0.53, x, false);
  const bool beside = other < from || other > from + 0.03;
  CHECK((beside || std::abs(placed[0].y - fraction_of(0.5, y, false)) > 0.025));
}

TEST_CASE("chart: lines of many series share the points that are drawn") {
  Chart c;
  for (int s = 0; s < 8; ++s) {
    Series line{.name = "s"};
    for (int i = 0; i < 1000; ++i) line.x.push_back(i), line.y.push_back(i);
    c.series.push_back(line);
  }
  thin(c);
  CHECK(c.thinned_from == 8000);
  for (const Series& s : c.series) CHECK(s.x.size() <= kMaxPoints / 4 + 2);
}

TEST_CASE("chart: labels never lie on one another") {
  Chart c;
  Series s{.name = "s", .shape = Shape::kPoints, .write_labels = true};
  for (int i = 0; i < 20; ++i) s.x.push_back(1 + 0.001 * i), s.y.push_back(1), s.labels.push_back("a long label");
  s.x.push_back(2), s.y.push_back(2), s.labels.push_back("far");
  c.series = {s};
  const auto placed = place_labels(c, 0.01, 0.05);
  CHECK(placed.size() < 21);
  for (std::size_t i = 0; i < placed.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) CHECK((placed[i].y != placed[k].y || placed[i].x != placed[k].x));
  }
}
