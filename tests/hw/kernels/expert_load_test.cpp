#include "hw/kernels/expert_load.h"

#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "hw/kernels/group_limit.h"

namespace roofcast {
namespace {

/// What one token gets of 256 experts when it wants these.
std::vector<double> routed(const std::vector<std::size_t>& wants, std::size_t experts = 256) {
  std::vector<char> wanted(experts);
  for (const std::size_t e : wants) wanted[e] = 1;
  std::vector<double> counts(experts);
  GroupLimit(experts, wants.size()).add_token(wanted, 1.0, counts);
  return counts;
}

}  // namespace

TEST_CASE("group limit: four of eight groups stay, and what a token loses goes to their first experts") {
  // One expert in each group of 32: all score alike, groups 0 to 3 stay, and 0, 1, 2, 3 stand in for the other four.
  const std::vector<double> spread = routed({5, 37, 69, 101, 133, 165, 197, 229});
  for (const std::size_t e : {0, 1, 2, 3, 5, 37, 69, 101}) CHECK(spread[e] == 1.0);
  CHECK(std::accumulate(spread.begin(), spread.end(), 0.0) == 8.0);
  // Groups that hold two count more: 4 to 7 stay.
  const std::vector<double> paired = routed({128, 129, 160, 161, 192, 193, 224, 225});
  for (const std::size_t e : {128, 129, 160, 161, 192, 193, 224, 225}) CHECK(paired[e] == 1.0);
  // Eight experts: a group of one has no two best, so the first four stay, whoever is wanted.
  const std::vector<double> eight = routed({2, 6}, 8);
  CHECK(eight[2] == 1.0);
  CHECK(eight[0] == 1.0);
  CHECK(eight[6] == 0.0);
  // Ten experts do not divide: no limit.
  CHECK(routed({8, 9}, 10)[9] == 1.0);
}

TEST_CASE("expert load: a balanced draw behind the group limit crowds on the first ranks") {
  const Routing limited{.kind = Routing::Kind::kBalanced, .exponent = 0.0, .grouped = true};
  const auto load = [&](double ep) { return expert_load(4096, 8, 256, ep, limited); };
  CHECK(load(1).assignments == doctest::Approx(4096 * 8));
  CHECK(load(1).hits == doctest::Approx(128));  // of groups 0 to 3
  CHECK(load(2).assignments == doctest::Approx(4096 * 8));
  CHECK(load(8).assignments == doctest::Approx(4096 * 5));  // group 0: its own expert, and the four that stand in
  CHECK(load(64).assignments == doctest::Approx(4096 * 4));
  CHECK(load(64).hits == doctest::Approx(4));
  CHECK(load(64).tiles[5] == doctest::Approx(4 * 4096 / 256));
}

TEST_CASE("expert load: a skewed draw behind the group limit loses experts, not assignments") {
  const Routing skewed{.kind = Routing::Kind::kPowerLaw, .exponent = 1.2};
  Routing limited = skewed;
  limited.grouped = true;
  const ExpertLoad free = expert_load(2048, 8, 256, 1, skewed), kept = expert_load(2048, 8, 256, 1, limited);
  CHECK(kept.assignments == doctest::Approx(2048 * 8));
  CHECK(kept.hits < free.hits);
  CHECK(kept.hits > 100);
}

}  // namespace roofcast
