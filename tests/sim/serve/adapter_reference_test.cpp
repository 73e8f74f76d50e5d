// Adapter slots against a linear search of a list.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "sim/serve/adapter_slots.h"
#include "tests/scenarios.h"
#include "tests/sim/serve/adapter_model.h"

using namespace roofcast;

namespace {

struct Shelf {
  std::vector<int> oldest_first;
  std::size_t room = 0;

  bool has(int adapter) const {
    return std::find(oldest_first.begin(), oldest_first.end(), adapter) != oldest_first.end();
  }
  /// It is used; where there is no room for it, the one leaves that was used longest ago and is not `held`.
  void use(int adapter, const std::map<int, int>& held) {
    std::erase(oldest_first, adapter);
    while (oldest_first.size() >= room) {
      std::size_t at = 0;
      while (at < oldest_first.size() && held.contains(oldest_first[at])) ++at;
      if (at == oldest_first.size()) break;
      oldest_first.erase(oldest_first.begin() + static_cast<std::ptrdiff_t>(at));
    }
    oldest_first.push_back(adapter);
  }
};

}  // namespace

TEST_CASE("adapter slots: random requests equal two lists") {
  Random random(77);
  const auto pick = [&](int low, int high) { return static_cast<int>(random.uniform_integer(low, high)); };
  const int n = scenarios(300);
  int loads = 0, reads = 0, refused = 0;
  for (int i = 0; i < n; ++i) {
    const int count = pick(1, 12), slots = pick(1, 6), in_host = std::max(pick(1, 12), std::min(slots, count));
    AdapterSlots ours(*with_adapters(count, slots, in_host));
    Shelf gpu{.oldest_first = {}, .room = static_cast<std::size_t>(slots)};
    Shelf host{.oldest_first = {}, .room = static_cast<std::size_t>(in_host)};
    for (int adapter = 1; adapter <= std::min(in_host, count); ++adapter) host.use(adapter, {});
    std::map<int, int> held;  // sequences that run, by adapter
    std::vector<int> running;
    for (int step = 0; step < 200; ++step) {
      INFO(i, " count ", count, " slots ", slots, " host ", in_host, " step ", step);
      if (!running.empty() && pick(0, 2) == 0) {
        const auto at = static_cast<std::size_t>(pick(0, static_cast<int>(running.size()) - 1));
        const int adapter = running[at];
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(at));
        if (adapter > 0 && --held[adapter] == 0) held.erase(adapter);
        ours.release(adapter);
        continue;
      }
      const int adapter = pick(0, count);
      const bool fits = adapter == 0 || held.contains(adapter) || held.size() < static_cast<std::size_t>(slots);
      REQUIRE(ours.can_hold(adapter) == fits);
      refused += fits ? 0 : 1;
      if (!fits) continue;
      const AdapterSlots::Load load = ours.hold(adapter);
      running.push_back(adapter);
      if (adapter == 0) {
        REQUIRE(load.copied == Bytes(0));
        continue;
      }
      ++held[adapter];
      const bool there = gpu.has(adapter), near = host.has(adapter);
      gpu.use(adapter, held);
      host.use(adapter, {});
      REQUIRE(load.copied.base() == (there ? 0.0 : 2000.0));
      REQUIRE(load.read.base() == doctest::Approx(there || near ? 0.0 : 2e-3));
      loads += there ? 0 : 1;
      reads += there || near ? 0 : 1;
      REQUIRE(ours.held() == static_cast<int>(held.size()));
    }
  }
  CHECK(loads > 10 * n);
  CHECK(reads > n);
  CHECK(refused > n);
}
