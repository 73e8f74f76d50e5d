#include "tests/sim/plan/random_scenario.h"

#include <cstdlib>

#include <doctest/doctest.h>

#include "sim/plan/spec_cache.h"

using namespace roofcast::testing;

TEST_CASE(
    "random scenarios: requests and tokens are conserved, nothing beats the machine, one request is the estimate") {
  const char* many = std::getenv("ROOFCAST_RANDOM_SCENARIOS");  // 10000 in a long run
  const char* first = std::getenv("ROOFCAST_RANDOM_FIRST");
  const int count = many == nullptr ? 60 : std::atoi(many), begin = first == nullptr ? 0 : std::atoi(first);
  roofcast::SpecCache specs;
  for (int seed = begin; seed < begin + count; ++seed) {
    INFO("seed " << seed);
    CHECK(broken_invariant(random_scenario(static_cast<std::uint64_t>(seed)), specs) == "");
  }
}
