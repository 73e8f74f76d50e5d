#include "sim/serve/load_watch.h"

#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

#include "base/random.h"

using namespace roofcast;

namespace {

/// One server that takes 1/capacity s for each of so many requests.
LoadVerdict served(double rate, double capacity, int requests, double first = 0) {
  Random random(5);
  LoadWatch watch;
  double at = first, free = first;
  for (int i = 0; i < requests; ++i) {
    const double start = std::max(at, free);
    free = start + 1 / capacity;
    watch.served(Seconds(at), Seconds(start - at), Seconds(free));
    at += random.exponential(1 / rate);
  }
  return watch.verdict(1.0, 0.0);
}

}  // namespace

TEST_CASE("load watch: a rate above the capacity is detected") {
  const LoadVerdict v = served(120, 100, 5000);
  CHECK(v.saturated);
  CHECK(v.offered.base() == doctest::Approx(120).epsilon(0.03));
  CHECK(served(1.2, 1, 5000).saturated);  // of slow requests, too
}

TEST_CASE("load watch: a rate below the capacity is not, however close and however long") {
  for (const int requests : {100, 1000, 100000}) {
    CHECK_FALSE(served(50, 100, requests).saturated);
    CHECK_FALSE(served(90, 100, requests).saturated);
  }
  CHECK_FALSE(served(120, 100, 40).saturated);  // too few to tell
}

TEST_CASE("load watch: refused requests mean overload") {
  LoadWatch some, few;
  for (int i = 0; i < 3000; ++i) {  // 10 requests/s
    const Seconds at(0.1 * i);
    i % 4 == 0 ? some.dropped(at) : some.served(at, Seconds(0.01), at + Seconds(1));
    i % 100 == 0 ? few.dropped(at) : few.served(at, Seconds(0.01), at + Seconds(1));
  }
  CHECK(some.verdict(1, 0).saturated);
  CHECK_FALSE(few.verdict(1, 0).saturated);
}

TEST_CASE("load watch: a load that varies by itself may end behind by its slack") {
  LoadWatch watch;
  for (int i = 0; i < 10000; ++i) {  // 400 of the last 500 end only when all have come: 4 of 67 hundred
    const Seconds at(0.1 * i);
    const bool late = i >= 9500 && i < 9900;
    watch.served(at, late ? Seconds(60) : Seconds(0), late ? Seconds(1060) : at + Seconds(0.1));
  }
  CHECK(watch.verdict(1, 0).saturated);
  CHECK_FALSE(watch.verdict(1, 0.1).saturated);
}

TEST_CASE("load watch: a growing queue is detected even if late requests overtake early ones") {
  // Two come a second, one is served, always the one that came last: half of them wait until all have come.
  constexpr int kRequests = 600;
  LoadWatch watch;
  std::vector<double> waiting;
  double free = 0;
  int come = 0;
  for (int i = 0; i < kRequests; ++i) {
    while (come < kRequests && (come / 2.0 <= free || waiting.empty())) waiting.push_back(come++ / 2.0);
    const double arrival = waiting.back(), start = std::max(free, arrival);
    waiting.pop_back();
    free = start + 1;
    watch.served(Seconds(arrival), Seconds(start - arrival), Seconds(free));
  }
  CHECK(watch.verdict(1.0, 0.0).saturated);
}
