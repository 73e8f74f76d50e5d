// Routing of tokens to experts against draws of every token's experts, one by one.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/normal.h"
#include "base/random.h"
#include "hw/kernels/expert_load.h"
#include "tests/scenarios.h"

using namespace roofcast;

namespace {

struct Drawn {
  double hit = 0;      ///< experts with a token, on average
  double fullest = 0;  ///< tokens of the fullest rank, on average
};

/// Tokens draw `top_k` different experts one after another, each in proportion to its popularity among those left.
/// Ranks hold as many experts each, in an order drawn anew.
Drawn draw_experts(Random& random, int tokens, int top_k, int experts, int ranks, double skew, int draws) {
  std::vector<double> popularity;
  for (int e = 0; e < experts; ++e)
    popularity.push_back(std::exp(skew * normal_quantile((e + 0.5) / static_cast<double>(experts))));
  std::vector<int> place(static_cast<std::size_t>(experts));
  std::iota(place.begin(), place.end(), 0);
  Drawn mean;
  for (int draw = 0; draw < draws; ++draw) {
    for (std::size_t i = place.size() - 1; i > 0; --i)
      std::swap(place[i], place[static_cast<std::size_t>(random.uniform_integer(0, static_cast<std::int64_t>(i)))]);
    std::vector<int> got(static_cast<std::size_t>(experts), 0);
    for (int t = 0; t < tokens; ++t) {
      std::vector<double> left = popularity;
      for (int k = 0; k < top_k; ++k) {
        double u = random.uniform() * std::accumulate(left.begin(), left.end(), 0.0);
        std::size_t chosen = 0;
        while (chosen + 1 < left.size() && (left[chosen] == 0 || (u -= left[chosen]) > 0)) ++chosen;
        left[chosen] = 0;
        ++got[chosen];
      }
    }
    std::vector<int> of_rank(static_cast<std::size_t>(ranks), 0);
    for (std::size_t e = 0; e < got.size(); ++e) {
      mean.hit += got[e] > 0 ? 1.0 / draws : 0.0;
      of_rank[static_cast<std::size_t>(place[e] * ranks / experts)] += got[e];
    }
    mean.fullest += *std::max_element(of_rank.begin(), of_rank.end()) / static_cast<double>(draws);
  }
  return mean;
}

}  // namespace

TEST_CASE("routing: experts hit and the most loaded rank equal those of drawn tokens") {
  Random random(31);
  const auto one_of = [&](std::initializer_list<int> values) {
    return values.begin()[random.uniform_integer(0, static_cast<std::int64_t>(values.size()) - 1)];
  };
  const int all = scenarios(30);
  double hits = 0, loads = 0;
  for (int n = 0; n < all; ++n) {
    const int experts = one_of({32, 64, 128}), top_k = one_of({2, 4, 8}), tokens = one_of({16, 48, 128});
    const int ranks = one_of({2, 4, 8}), skew = one_of({0, 1}), draws = 100;
    const Drawn drawn = draw_experts(random, tokens, top_k, experts, ranks, skew, draws);
    const Routing popular{.kind = Routing::Kind::kPopularity, .skew = static_cast<double>(skew)};
    INFO(n, " tokens ", tokens, " top_k ", top_k, " experts ", experts, " ranks ", ranks, " skew ", skew);
    // The law averages 16 placements of experts and takes tokens' choices as independent.
    const double hit = expert_load(tokens, top_k, experts, 1.0, popular).hits / drawn.hit;
    const double fullest = expert_load(tokens, top_k, experts, ranks, popular).assignments / drawn.fullest;
    CHECK(std::abs(hit - 1) < 0.04);
    CHECK(std::abs(fullest - 1) < 0.15);
    hits += std::abs(hit - 1), loads += std::abs(fullest - 1);
  }
  CHECK(hits / all < 0.01);
  CHECK(loads / all < 0.04);
}

TEST_CASE("routing: no rank gets more than its experts can take") {
  for (const double skew : {0.0, 1.0, 3.0}) {
    const Routing popular{.kind = Routing::Kind::kPopularity, .skew = skew};
    for (const int tokens : {1, 2, 5, 30}) {
      for (const int top_k : {1, 2, 8}) {
        for (const int ranks : {2, 8, 16}) {
          const double got = expert_load(tokens, top_k, 16, ranks, popular).assignments;
          CHECK(got <= tokens * std::min(top_k, 16 / ranks));
        }
      }
    }
  }
}
