#include "sim/serve/speculation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

SpeculationSpec chain(int k, std::vector<double> acceptance, int width = 1) {
  return {.method = SpeculationSpec::Method::kEagle,
          .num_speculative_tokens = k,
          .acceptance = std::move(acceptance),
          .tree_width = width};
}

}  // namespace

TEST_CASE("speculation: tokens of a step are (1 - a^(k+1)) / (1 - a)") {
  CHECK(AcceptanceLaw(chain(4, {0.7})).mean_tokens() == doctest::Approx((1 - std::pow(0.7, 5)) / 0.3));
  CHECK(AcceptanceLaw(chain(3, {0.8, 0.5})).mean_tokens() == doctest::Approx(1 + 0.8 + 0.8 * 0.5 + 0.8 * 0.5 * 0.5));
  CHECK(AcceptanceLaw(chain(4, {0.0})).mean_tokens() == doctest::Approx(1));
  CHECK(AcceptanceLaw(chain(4, {1.0})).mean_tokens() == doctest::Approx(5));
  CHECK(AcceptanceLaw({}).mean_tokens() == doctest::Approx(1));
  // Two candidates: one of them is accepted with 1 - 0.5 x 2^-0.54.
  CHECK(AcceptanceLaw(chain(1, {0.5}, 2)).mean_tokens() == doctest::Approx(2 - 0.5 * std::pow(2, -0.54)));
}

TEST_CASE("speculation: the draws have the law's mean") {
  const AcceptanceLaw law(chain(4, {0.7}));
  Random random(1);
  double sum = 0;
  for (int i = 0; i < 100000; ++i) sum += 1 + law.draw(random);
  CHECK(sum / 100000 == doctest::Approx(law.mean_tokens()).epsilon(0.01));
}

TEST_CASE("speculation: with all drafts accepted a request takes a fifth of the steps") {
  const auto d = fake::deployment(10000);
  fake::Requests source;
  source.add(0, 100, 101);
  ServingOptions options = fake::options({.fixed = 1e-3, .token = 0, .context = 0});
  options.speculation = chain(4, {1.0});
  options.speculation.draft_time = Seconds(0.5e-3);
  const ServingMetrics m = simulate(d, source, {}, options);
  // The prompt's step gives the first token, 20 steps of 1.5 ms the other hundred.
  CHECK(m.iterations == 21);
  CHECK(m.duration.in(kMillisecond) == doctest::Approx(1 + 20 * 1.5));
  CHECK(m.drafted_tokens == 80);
  CHECK(m.accepted_tokens == 80);
  CHECK(m.itl_ms.count() == 20);
}

TEST_CASE("speculation: with none accepted every step gives one token") {
  const auto d = fake::deployment(10000);
  fake::Requests source;
  source.add(0, 100, 11);
  ServingOptions options = fake::options();
  options.speculation = chain(4, {0.0});
  CHECK(simulate(d, source, {}, options).iterations == 11);
}

TEST_CASE("trees: candidates are accepted as SpecInfer's table has it, and never more than one") {
  // arXiv:2305.09781, table 1, greedy decoding, one to five candidates: Alpaca, CP, WebQA, CIP, PIQA.
  const std::vector<std::vector<double>> published{{0.68, 0.77, 0.81, 0.84, 0.85},
                                                   {0.69, 0.79, 0.83, 0.86, 0.87},
                                                   {0.62, 0.72, 0.77, 0.80, 0.82},
                                                   {0.70, 0.81, 0.85, 0.88, 0.89},
                                                   {0.63, 0.75, 0.79, 0.83, 0.85}};
  // ln((1 - p_w) / (1 - p_1)) = -b ln w
  double products = 0, squares = 0;
  for (const std::vector<double>& row : published) {
    for (int w = 2; w <= 5; ++w) {
      const double missed = (1 - row[static_cast<std::size_t>(w - 1)]) / (1 - row[0]);
      products -= std::log(w) * std::log(missed), squares += std::log(w) * std::log(w);
      CHECK(std::abs(width_acceptance(row[0], w) - row[static_cast<std::size_t>(w - 1)]) < 0.025);
    }
  }
  CHECK(products / squares == doctest::Approx(0.54).epsilon(0.01));
  CHECK(width_acceptance(0.7, 2) == doctest::Approx(1 - 0.3 * std::pow(2, -0.54)));
  for (double a = 0; a <= 1.0; a += 0.05) {
    double last = 0;
    for (int w = 1; w <= 64; ++w) {
      const double now = width_acceptance(a, w);
      CHECK(now >= last);
      CHECK(now <= std::min(1.0, w * a + 1e-12));
      last = now;
    }
  }
  CHECK(width_acceptance(0, 64) == 0);
  CHECK(width_acceptance(1, 64) == 1);
}

TEST_CASE("trees: drawing the target's path through every node gives the law's tokens") {
  // The reference lists all paths of ranks down to depth k, takes the k w likeliest, then walks a random path: at each
  // depth the target's token is the candidate of rank r with p_r, or none of them.
  Random random(5);
  for (int n = 0; n < 60; ++n) {
    const int k = static_cast<int>(random.uniform_integer(1, 4)), w = static_cast<int>(random.uniform_integer(2, 4));
    std::vector<double> a;
    for (int i = 0; i < k; ++i) a.push_back(0.2 + 0.79 * random.uniform());
    const auto p = [&](int depth, int rank) {
      const double at = a[static_cast<std::size_t>(depth)];
      return width_acceptance(at, rank) - (rank > 1 ? width_acceptance(at, rank - 1) : 0.0);
    };
    std::vector<std::pair<double, std::vector<int>>> paths, level{{1.0, {}}};
    for (int depth = 0; depth < k; ++depth) {
      std::vector<std::pair<double, std::vector<int>>> next;
      for (const auto& [likely, ranks] : level) {
        for (int rank = 1; rank <= w; ++rank) {
          std::vector<int> longer = ranks;
          longer.push_back(rank);
          next.emplace_back(likely * p(depth, rank), longer);
        }
      }
      paths.insert(paths.end(), next.begin(), next.end());
      level = next;
    }
    std::stable_sort(paths.begin(), paths.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
    paths.resize(std::min(paths.size(), static_cast<std::size_t>(k * w)));
    std::set<std::vector<int>> tree;
    for (const auto& [likely, ranks] : paths) tree.insert(ranks);
    const int rounds = 20000;
    double tokens = 0;
    for (int round = 0; round < rounds; ++round) {
      std::vector<int> walked;
      for (int depth = 0; depth < k; ++depth) {
        double u = random.uniform();
        int rank = 1;
        while (rank <= w && (u -= p(depth, rank)) >= 0) ++rank;
        walked.push_back(rank);
        if (!tree.contains(walked)) break;
        tokens += 1;
      }
      tokens += 1;  // the target's own
    }
    const AcceptanceLaw law(chain(k, a, w));
    CHECK(std::abs(tokens / rounds - law.mean_tokens()) < 5 * k / std::sqrt(rounds));
    CHECK(law.mean_tokens() <= 1 + k * width_acceptance(a[0], w) + 1e-12);
  }
}
