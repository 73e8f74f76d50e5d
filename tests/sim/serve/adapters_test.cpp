// Adapters of requests: slots, loads, and waiting.
#include <doctest/doctest.h>

#include <array>

#include "sim/serve/adapter_slots.h"
#include "sim/serve/adapter_source.h"
#include "tests/sim/serve/adapter_model.h"

using namespace roofcast;

namespace {

fake::Requests naming(std::vector<int> adapters, double gap) {
  fake::Requests source;
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    source.add(static_cast<double>(i) * gap, 10, 10);
    source.all().back().adapter = adapters[i];
  }
  return source;
}

}  // namespace

TEST_CASE("adapter slots: the least recently used unheld adapter leaves") {
  const auto d = with_adapters(4, 2, 3);
  AdapterSlots slots(*d);
  CHECK(slots.hold(1).copied.base() == 2000);
  CHECK(slots.hold(1).copied.base() == 0);
  slots.release(1);
  CHECK(slots.hold(2).copied.base() == 2000);
  CHECK_FALSE(slots.can_hold(3));  // 1 and 2 are held
  CHECK(slots.can_hold(2));
  CHECK(slots.can_hold(0));
  slots.release(1);
  CHECK(slots.can_hold(3));
  const AdapterSlots::Load third = slots.hold(3);  // in host memory from the start, as 1 and 2
  CHECK(third.copied.base() == 2000);
  CHECK(third.read.base() == 0);
  slots.release(2);
  slots.release(3);
  CHECK(slots.hold(2).copied.base() == 0);  // 1 had to go, 2 is still there
  slots.release(2);
  // 4 is on disk, 2 ms at 1 MB/s; 1, the one not used for longest, leaves host memory for it.
  CHECK(slots.hold(4).read.base() == doctest::Approx(2e-3));
  slots.release(4);
  CHECK(slots.hold(1).read.base() == doctest::Approx(2e-3));
}

TEST_CASE("an adapter that is not on the GPU is copied before the step, once") {
  fake::Recorder alone, loaded;
  fake::Requests source = naming({1, 1}, 1.0);
  simulate(fake::deployment(10000), source, {}, fake::options(), &alone);
  fake::Requests again = naming({1, 1}, 1.0);
  const ServingMetrics m = simulate(with_adapters(1, 1, 1), again, {}, fake::options(), &loaded);
  // 2000 B at 1 MB/s
  CHECK((loaded.requests[0].ttft - alone.requests[0].ttft).in(kMillisecond) == doctest::Approx(2.0));
  CHECK((loaded.requests[1].ttft - alone.requests[1].ttft).in(kMillisecond) == doctest::Approx(0.0));
  CHECK(m.adapters.starts == 2);
  CHECK(m.adapters.loads == 1);
  CHECK(m.adapters.loaded_bytes == 2000);
}

TEST_CASE("a request whose adapter has no slot waits, and later ones pass it") {
  // One slot: 1 runs with the third request, which names it, too; the second waits until both have ended.
  fake::Requests source = naming({1, 2, 1}, 0.0);
  fake::Recorder seen;
  simulate(with_adapters(2, 1, 2), source, {}, fake::options(), &seen);
  CHECK(seen.requests[2].queue.base() == 0);
  CHECK(seen.requests[1].queue.base() == doctest::Approx(seen.requests[0].e2el.base()));
  fake::Requests two = naming({1, 2, 1}, 0.0);
  simulate(with_adapters(2, 2, 2), two, {}, fake::options(), &seen);
  CHECK(seen.requests[1].queue.base() == 0);
}

TEST_CASE("a request that arrives later passes one that waits for a slot") {
  fake::Requests source = naming({1, 2, 1}, 0.0);
  source.all()[2].arrival = Seconds(5e-3);  // while the first decodes
  fake::Recorder seen;
  simulate(with_adapters(2, 1, 2), source, {}, fake::options(), &seen);
  CHECK(seen.requests[2].queue.in(kMillisecond) < 2.0);
  CHECK(seen.requests[1].queue > seen.requests[2].e2el);
}

TEST_CASE("requests name adapters by popularity, turns of a session the same one") {
  AdapterSpec a;
  a.count = 3;
  fake::Requests inner;
  for (int i = 0; i < 60000; ++i) inner.add(0, 10, 10);
  for (int i = 0; i < 100; ++i) {
    inner.add(0, 10, 10);
    inner.all().back().session = i / 10;
  }
  AdapterSource source(inner, a, 7);
  std::array<double, 4> seen{};
  Request r;
  for (int i = 0; i < 60000; ++i) {
    REQUIRE(source.next(r));
    seen[static_cast<std::size_t>(r.adapter)] += 1.0 / 60000;
  }
  // 1, 1/2, 1/3 of 11/6; three standard errors of 60,000 are 0.006
  CHECK(seen[1] == doctest::Approx(6.0 / 11).epsilon(0.012));
  CHECK(seen[2] == doctest::Approx(3.0 / 11).epsilon(0.022));
  CHECK(seen[3] == doctest::Approx(2.0 / 11).epsilon(0.033));
  for (int i = 0, of = 0; i < 100; ++i) {
    REQUIRE(source.next(r));
    if (i % 10 == 0) of = r.adapter;
    CHECK(r.adapter == of);
  }
}

TEST_CASE("prefixes are shared only by requests of the same adapter") {
  const auto cached = [](std::vector<int> adapters) {
    const auto d = with_adapters(2, 2, 2);
    d->engine.prefix_caching = true;
    fake::Requests source = naming(std::move(adapters), 1.0);
    for (Request& r : source.all()) {
      r.prompt_tokens = 40;
      r.prefix_blocks = {1, 2};
      r.prefix_block_tokens = 16;
    }
    fake::Recorder seen;
    simulate(d, source, {}, fake::options(), &seen);
    return seen.requests[1].cached_tokens;
  };
  CHECK(cached({1, 1}) == 32);
  CHECK(cached({1, 2}) == 0);
}
