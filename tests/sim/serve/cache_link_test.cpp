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

TEST_CASE("cache link: after a failure nothing is in transfer, and the link is free") {
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

TEST_CASE("cache link: the part that is sent before the prefill ends") {
  const EarlyTransfer after{}, chunks{CacheTransfer::kByChunk, 1000, 10}, layers{CacheTransfer::kByLayer, 1000, 10};
  CHECK(after.lead(2500) == 1.0);
  CHECK(after.rest(2500) == 1.0);
  // Chunks of 1000, 1000 and 500 tokens: the first leaves after two fifths of the prefill, the last at its end.
  CHECK(chunks.lead(2500) == doctest::Approx(0.4));
  CHECK(chunks.rest(2500) == doctest::Approx(0.2));
  CHECK(chunks.rest(2000) == doctest::Approx(0.5));
  CHECK(chunks.rest(700) == doctest::Approx(1.0));
  CHECK(layers.lead(2500) == doctest::Approx(0.04));
  CHECK(layers.rest(700) == doctest::Approx(0.1));
}

TEST_CASE("cache link: a cache sent early arrives with its last part, or when the link has sent all of it") {
  CacheLink link(BytesPerSecond(1000), Seconds(0.5));
  // 1000 B from 1 s on, 100 B of them not before 4 s: 4.1 s
  CHECK(link.fetch(7, Bytes(1000), at(4), at(1), at(4), 0.1).landed == at(4.6));
  // 5000 B from when the link is free, 4.1 s
  CHECK(link.fetch(8, Bytes(5000), at(6), at(2), at(6), 0.1).end == at(9.1));
  // All of it was there when it was wanted.
  CHECK(link.fetch(9, Bytes(100), at(20), at(10), at(12), 0.1).landed == at(20.5));
}
