#include "sim/serve/speculation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>

namespace roofcast {

/// Acceptance: 0.7 for a model of the same family and 0.6 for early exit (Leviathan et al., 2023; Elhoushi et al.,
/// 2024), EAGLE 0.75 and EAGLE-3 0.8 (arXiv:2503.01840, table 1: 4 to 6 tokens a step), Medusa 0.6 (arXiv:2401.10774),
/// MTP 0.85 (arXiv:2412.19437, section 5.4.3), n-grams 0.4. Lookahead 0.1: 15 guesses of 4 tokens then make 1.95
/// tokens per step, near the 1.8x of MT-bench on one GPU (arXiv:2402.02057, abstract). Suffix trees 0.7, assumed: it
/// depends on how much outputs repeat.
MethodFacts facts_of(SpeculationSpec::Method method) {
  using Method = SpeculationSpec::Method;
  switch (method) {  // name, drafter, usual_acceptance, own_format, own_head, own_cache
    case Method::kNone:
      return {"none", Drafter::kNone, 0, false, false, false};
    case Method::kDraftModel:
      return {"draft_model", Drafter::kModel, 0.7, true, true, true};
    case Method::kEagle:
      return {"eagle", Drafter::kLayer, 0.75, true, false, true};
    case Method::kEagle3:
      return {"eagle3", Drafter::kLayer, 0.8, true, true, true};
    case Method::kMedusa:
      return {"medusa", Drafter::kHeads, 0.6, true, true, false};
    case Method::kMtp:
      return {"mtp", Drafter::kLayer, 0.85, false, false, true};
    case Method::kNgram:
      return {"ngram", Drafter::kHost, 0.4, false, false, false};
    case Method::kSuffix:
      return {"suffix", Drafter::kHost, 0.7, false, false, false};
    case Method::kLookahead:
      return {"lookahead", Drafter::kNone, 0.1, false, false, false};
    case Method::kSelfDraft:
      return {"self_draft", Drafter::kFirstLayers, 0.6, false, false, false};
    case Method::kDiffusion:
      return {"diffusion", Drafter::kNone, 1, false, false, false};
  }
  SIM_CHECK(false, "a speculation method");
  return facts_of(Method::kNone);
}

double width_acceptance(double acceptance, int width) {
  constexpr double kExponent = 0.54;
  double one_of = acceptance, last = acceptance;
  for (int rank = 2; rank <= width; ++rank) {
    const double missed = (1 - acceptance) * (std::pow(rank - 1, -kExponent) - std::pow(rank, -kExponent));
    last = std::min(last, missed);
    one_of += last;
  }
  return std::min(one_of, 1.0);
}

namespace {

/// The acceptance of draft `i`, given that the earlier ones were accepted.
double acceptance_of(const SpeculationSpec& spec, int i) {
  const auto n = static_cast<int>(spec.acceptance.size());
  return n == 0 ? 0.0 : std::clamp(spec.acceptance[static_cast<std::size_t>(std::min(i, n - 1))], 0.0, 1.0);
}

/// P(at least i + 1 drafts accepted) of the likeliest nodes of a tree. A node's next sibling and its first child are
/// never likelier than the node, so repeatedly taking the likeliest node gives a tree.
std::vector<double> tree_law(const SpeculationSpec& spec) {
  struct Node {
    double all, before;  ///< likelihood of the path to it, and to its parent
    int depth, rank;
    bool operator<(const Node& other) const { return all < other.all; }
  };
  const int k = spec.num_speculative_tokens;
  std::vector<double> at_least(static_cast<std::size_t>(k), 0.0);
  std::vector<std::vector<double>> one_of;  ///< by depth and width
  for (int i = 0; i < k; ++i) {
    one_of.push_back({0.0});
    for (int w = 1; w <= spec.tree_width; ++w) one_of.back().push_back(width_acceptance(acceptance_of(spec, i), w));
  }
  const auto node = [&](double before, int depth, int rank) {
    const std::vector<double>& by_width = one_of[static_cast<std::size_t>(depth)];
    const auto r = static_cast<std::size_t>(rank);
    return Node{before * (by_width[r] - by_width[r - 1]), before, depth, rank};
  };
  std::priority_queue<Node> next;
  next.push(node(1.0, 0, 1));
  for (int left = k * spec.tree_width; left > 0 && !next.empty(); --left) {
    const Node taken = next.top();
    next.pop();
    at_least[static_cast<std::size_t>(taken.depth)] += taken.all;
    if (taken.rank < spec.tree_width) next.push(node(taken.before, taken.depth, taken.rank + 1));
    if (taken.depth + 1 < k) next.push(node(taken.all, taken.depth + 1, 1));
  }
  return at_least;
}

}  // namespace

AcceptanceLaw::AcceptanceLaw(const SpeculationSpec& spec) {
  if (spec.active() && spec.tree_width > 1) {
    at_least_ = tree_law(spec);
    return;
  }
  double product = 1.0;
  for (int i = 0; i < (spec.active() ? spec.num_speculative_tokens : 0); ++i) {
    product *= acceptance_of(spec, i);
    at_least_.push_back(spec.guesses > 1 ? 1 - std::pow(1 - product, spec.guesses) : product);
  }
}

int AcceptanceLaw::draw(Random& random) const {
  const double u = random.uniform();
  int accepted = 0;
  for (const double p : at_least_) accepted += u < p ? 1 : 0;
  return accepted;
}

double AcceptanceLaw::mean_tokens() const { return std::accumulate(at_least_.begin(), at_least_.end(), 1.0); }

}  // namespace roofcast
