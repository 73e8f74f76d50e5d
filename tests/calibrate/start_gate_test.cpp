#include "calibrate/start_gate.h"

#include <doctest/doctest.h>

#include "calibrate/grid.h"

using namespace roofcast;
using namespace roofcast::calibrate;

TEST_CASE("start gate: where the host queues for longer than the spin, the next spin is twice as long as that") {
  StartGate gate;
  CHECK(gate.nanoseconds() == 40'000);
  CHECK(gate.held(30e-6 * kSecond));
  CHECK(gate.nanoseconds() == 40'000);
  CHECK(!gate.held(900e-6 * kSecond));  // a graph of hundreds of nodes
  CHECK(gate.nanoseconds() == 1'800'000);
  CHECK(gate.held(900e-6 * kSecond));
  // a host that always takes longer than any spin ends, too
  int tries = 1;
  while (!gate.held(1.0 * kSecond)) REQUIRE(++tries < 10);
  CHECK(gate.nanoseconds() == 20'000'000);
}

TEST_CASE("rounds in L2: so many that a launch is a hundredth, and odd") {
  // 256 MiB of 1 MiB: 256 passes, 257 to be odd; of 16 MiB 17
  CHECK(rounds_in_l2(Bytes{1048576}) == 257);
  CHECK(rounds_in_l2(Bytes{16 * 1048576.0}) == 17);
  CHECK(rounds_in_l2(Bytes{1e12}) == 1);
  CHECK(rounds_in_l2(Bytes{1}) == 8193);
}
