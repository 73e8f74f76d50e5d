#include "sim/serve/cache_link.h"

#include <doctest/doctest.h>

using namespace roofcast;

namespace {

SimTime at(double seconds) { return SimTime::of(Seconds(seconds)); }

}  // namespace

TEST_CASE("cache link: caches come one after another, and land after the latency") {
  CacheLink link(BytesPerSecond(1000), Seconds(0.5));
  const CacheLink::Transfer first = link.fetch(7, Bytes(100), at(1));
  CHECK(first.begin == at(1));
  CHECK(first.end == at(1.1));
  CHECK(first.landed == at(1.6));
  const CacheLink::Transfer second = link.fetch(8, Bytes(200), at(1));
  CHECK(second.begin == at(1.1));
  CHECK(second.end == at(1.3));
  CHECK(link.take_fetches().size() == 2);
  CHECK(link.take_fetches().empty());
  CHECK_FALSE(link.landed(at(1.59)));
  REQUIRE(link.landed(at(1.6)));
  CHECK(link.pop().slot == 7);
  CHECK_FALSE(link.landed(at(1.6)));
}

TEST_CASE("cache link: after a failure nothing is under way, and the link is free") {
  CacheLink link(BytesPerSecond(1000), Seconds(0));
  link.fetch(7, Bytes(5000), at(1));
  link.clear(at(2));
  CHECK(link.landings().empty());
  CHECK(link.fetch(8, Bytes(100), at(2)).end == at(2.1));
}

TEST_CASE("cache link: a cache is held until it is released") {
  CacheLink link(BytesPerSecond(1000), Seconds(0));
  LiveRequest request;
  link.hold(request, 3, 640);
  CHECK(request.source == 3);
  CHECK(link.held() == 1);
  CHECK(link.release(request) == 640);
  CHECK(link.held() == 0);
}
