// Trees of drafts against one that is drawn token by token: which candidate of a node is the target's token excludes
// all others of that node.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/scenarios.h"
#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

/// Of each position: how likely the candidate of each rank is the target's token.
using Ranks = std::vector<std::vector<double>>;
using Path = std::vector<int>;  ///< ranks from the root on

Ranks ranks_of(const SpeculationSpec& spec) {
  Ranks out;
  for (int i = 0; i < spec.num_speculative_tokens; ++i) {
    const double a = spec.acceptance[std::min(static_cast<std::size_t>(i), spec.acceptance.size() - 1)];
    std::vector<double> likely;
    for (int w = 1; w <= spec.tree_width; ++w) {
      const double before = w == 1 ? 0.0 : width_acceptance(a, w - 1);
      likely.push_back(width_acceptance(a, w) - before);
    }
    out.push_back(likely);
  }
  return out;
}

double likelihood(const Ranks& ranks, const Path& path) {
  double all = 1;
  for (std::size_t i = 0; i < path.size(); ++i) all *= ranks[i][static_cast<std::size_t>(path[i])];
  return all;
}

/// Every path of the whole tree, the likeliest first; parents before children.
std::vector<Path> all_paths(const Ranks& ranks) {
  std::vector<Path> paths, last{{}};
  for (const std::vector<double>& candidates : ranks) {
    std::vector<Path> next;
    for (const Path& before : last) {
      for (int r = 0; r < static_cast<int>(candidates.size()); ++r) {
        next.push_back(before);
        next.back().push_back(r);
      }
    }
    paths.insert(paths.end(), next.begin(), next.end());
    last = next;
  }
  std::stable_sort(paths.begin(), paths.end(),
                   [&](const Path& x, const Path& y) { return likelihood(ranks, x) > likelihood(ranks, y); });
  return paths;
}

/// Walks down as long as the target's token is a node that is verified.
int accepted_of(const Ranks& ranks, const std::set<Path>& verified, Random& random) {
  Path at;
  for (const std::vector<double>& candidates : ranks) {
    double u = random.uniform();
    int rank = -1;
    for (int r = 0; r < static_cast<int>(candidates.size()) && rank < 0; ++r) {
      u -= candidates[static_cast<std::size_t>(r)];
      if (u < 0) rank = r;
    }
    if (rank < 0) break;
    at.push_back(rank);
    if (!verified.contains(at)) break;
  }
  return static_cast<int>(verified.contains(at) ? at.size() : at.empty() ? 0 : at.size() - 1);
}

SpeculationSpec random_spec(Random& random) {
  SpeculationSpec spec;
  spec.method = SpeculationSpec::Method::kEagle;
  const int most = static_cast<int>(random.uniform_integer(0, 2)) == 0 ? 8 : 5;
  spec.num_speculative_tokens = static_cast<int>(random.uniform_integer(1, most));
  spec.tree_width = static_cast<int>(random.uniform_integer(1, most == 8 ? 2 : 4));
  const auto positions = random.uniform_integer(1, spec.num_speculative_tokens);
  for (std::int64_t i = 0; i < positions; ++i) {
    const double u = random.uniform();
    spec.acceptance.push_back(u < 0.1 ? 0.0 : u > 0.9 ? 1.0 : random.uniform());
  }
  return spec;
}

}  // namespace

TEST_CASE("trees of drafts: random ones equal the nodes of all paths, and those drawn token by token") {
  Random random(31);
  const int n = scenarios(300);
  constexpr int kRounds = 2000;
  for (int i = 0; i < n; ++i) {
    const SpeculationSpec spec = random_spec(random);
    const Ranks ranks = ranks_of(spec);
    const std::vector<Path> paths = all_paths(ranks);
    const std::size_t nodes =
        std::min(paths.size(), static_cast<std::size_t>(spec.num_speculative_tokens * spec.tree_width));
    std::set<Path> verified;
    double mean = 1;
    for (std::size_t at = 0; at < nodes; ++at) {
      verified.insert(paths[at]);
      mean += likelihood(ranks, paths[at]);
    }
    const AcceptanceLaw law(spec);
    INFO(i, " k ", spec.num_speculative_tokens, " width ", spec.tree_width, " a ", spec.acceptance.front());
    REQUIRE(law.mean_tokens() == doctest::Approx(mean).epsilon(1e-9));
    REQUIRE(mean <= spec.num_speculative_tokens + 1 + 1e-9);
    double ours = 0, theirs = 0, squares = 0;
    for (int round = 0; round < kRounds; ++round) {
      ours += 1 + law.draw(random);
      const double tokens = 1 + accepted_of(ranks, verified, random);
      theirs += tokens, squares += tokens * tokens;
    }
    const double deviation = std::sqrt(std::max(0.0, squares / kRounds - std::pow(theirs / kRounds, 2)) / kRounds);
    CHECK(std::abs(theirs / kRounds - mean) <= 6 * deviation + 0.01);  // rare tokens may not be drawn at all
    CHECK(std::abs(ours / kRounds - mean) <= 6 * deviation + 0.02);
  }
}

TEST_CASE("lookahead: parallel guesses are accepted if one of them is right") {
  Random random(5);
  const int n = scenarios(100);
  constexpr int kRounds = 4000;
  for (int i = 0; i < n; ++i) {
    SpeculationSpec spec;
    spec.method = SpeculationSpec::Method::kLookahead;
    spec.num_speculative_tokens = static_cast<int>(random.uniform_integer(1, 7));
    spec.guesses = static_cast<int>(random.uniform_integer(1, 20));
    spec.acceptance = {random.uniform()};
    double drawn = 0;
    for (int round = 0; round < kRounds; ++round) {
      int best = 0;  // of guesses that are judged each by itself
      for (int g = 0; g < spec.guesses; ++g) {
        int right = 0;
        while (right < spec.num_speculative_tokens && random.uniform() < spec.acceptance[0]) ++right;
        best = std::max(best, right);
      }
      drawn += 1 + best;
    }
    INFO(i, " k ", spec.num_speculative_tokens, " guesses ", spec.guesses, " a ", spec.acceptance[0]);
    CHECK(AcceptanceLaw(spec).mean_tokens() == doctest::Approx(drawn / kRounds).epsilon(0.04));
  }
}
