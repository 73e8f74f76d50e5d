// What decoding sequences fill of windows, added up, against a look at each.
#include "sim/serve/window_fill.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

/// Layers that keep every token (1 B), some that see 40 (2 B) and some that see 100 (3 B); 30 B of state.
KvLayout layout() {
  CacheLayout cache;
  cache.groups = {{Bytes(1), 0}, {Bytes(2), 40}, {Bytes(3), 100}};
  cache.state_per_sequence = Bytes(30);
  return {cache, 16, 0};
}

}  // namespace

TEST_CASE("windows: a sequence fills its tokens up to the window, on average over the steps of a run") {
  const KvLayout all = layout();
  const KvLayout::Window& small = all.windows()[0];
  CHECK(small.tokens == 40);
  CHECK(small.held(10, 1) == 10);
  CHECK(small.held(10, 5) == 8);      // 6 7 8 9 10
  CHECK(small.held(42, 4) == 39.75);  // 39 40 40 40
  CHECK(small.held(90, 9) == 40);
  // 30 + 1 * 42 + 2 * 40 + 3 * 42
  CHECK(all.filled_by_one(42, 1) == 30 + 42 + 80 + 126);
}

TEST_CASE("windows: what all fill is the sum over each, whoever comes, leaves or fills a window on the way") {
  const KvLayout all = layout();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    RequestTable requests;
    WindowFill fill(all);
    std::vector<Slot> running;
    std::int64_t counter = 0;
    for (int run = 0; run < 60; ++run) {
      if (random.uniform() < 0.6) {
        const Slot slot = fake::add(requests, 1, 1);
        requests[slot].base = random.uniform_integer(1, 130) - counter;
        fill.add(slot, requests[slot].epoch, requests[slot].base, counter);
        running.push_back(slot);
      }
      const std::int64_t steps = random.uniform_integer(1, 50);
      counter += steps;
      fill.advance(requests, counter);
      double each = 0;
      std::int64_t tokens = 0;
      for (const Slot slot : running) {
        tokens += requests[slot].base + counter;
        each += all.filled_by_one(requests[slot].base + counter, steps);
      }
      CHECK(fill.bytes(counter, steps, static_cast<int>(running.size()), tokens) ==
            doctest::Approx(each).epsilon(1e-12));
      if (!running.empty() && random.uniform() < 0.4) {
        const auto gone = running.begin() + random.uniform_integer(0, static_cast<std::int64_t>(running.size()) - 1);
        ++requests[*gone].epoch;
        fill.remove(requests[*gone].base, counter);
        requests.remove(*gone);
        running.erase(gone);
      }
      fill.settle();
    }
  }
}
