#include "sim/plan/measured/bench_lengths.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace roofcast;

TEST_CASE("bench lengths: integers are drawn as NumPy draws them") {
  std::mt19937 twister(0);
  // np.random.seed(0); np.random.randint(0, 10, size=5)
  for (const int expected : {5, 0, 3, 3, 7}) CHECK(draw_as_numpy(twister, 0, 9) == expected);
  CHECK(draw_as_numpy(twister, 4, 4) == 4);
}

TEST_CASE("bench lengths: prompts first, then outputs, from int(0.8 L) to L") {
  const auto lengths = *inferencex_lengths(1024, 8192, 4000);
  int shortest = 1 << 20, longest = 0, outputs = 1 << 20;
  for (const RequestLengths& r : lengths) {
    shortest = std::min(shortest, r.prompt_tokens), longest = std::max(longest, r.prompt_tokens);
    outputs = std::min(outputs, r.output_tokens);
  }
  CHECK(shortest == 819);
  CHECK(longest == 1024);
  CHECK(outputs >= 6553);
  // The prompts of a run do not depend on the length of its outputs, and grow as the engine saw them.
  const auto others = *inferencex_lengths(1024, 1024, 4000, 2.0);
  for (std::size_t i = 0; i < lengths.size(); ++i) CHECK(others[i].prompt_tokens == 2 * lengths[i].prompt_tokens);
  CHECK(inferencex_lengths(1, 1, 0)->empty());
}
