// Lectures of speculative decoding.
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "sim/plan/lectures/published.h"
#include "sim/plan/lectures/rejection_sampling.h"
#include "sim/plan/lectures/topics.h"
#include "sim/plan/speculation_math.h"
#include "sim/serve/speculation.h"

namespace roofcast {
namespace {

SpeculationSpec spec_of(double acceptance, int drafts, int width) {
  SpeculationSpec spec;
  spec.method = SpeculationSpec::Method::kDraftModel;
  spec.num_speculative_tokens = drafts;
  spec.acceptance = {acceptance};
  spec.tree_width = width;
  return spec;
}

void check_distribution(std::string_view name, const std::vector<double>& p) {
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  if (std::abs(sum - 1) > 1e-6)
    throw ConfigError(fmt::format("--set {}: probabilities add up to {:g}, not 1", name, sum));
}

}  // namespace

LectureTables rejection_tables(const LectureInputs& in) {
  const std::vector<double>&target = in.list("target"), &draft = in.list("draft");
  if (target.size() != draft.size())
    throw ConfigError(fmt::format("--set draft: {} words for the target's {}", draft.size(), target.size()));
  check_distribution("target", target);
  check_distribution("draft", draft);
  const std::vector<double> residual = residual_distribution(target, draft), out = output_distribution(target, draft);
  const auto draws = static_cast<std::int64_t>(in.one("draws"));
  std::vector<double> drawn(target.size(), 0.0);
  double kept = 0;
  Random random(1);
  for (std::int64_t i = 0; i < draws; ++i) {
    const SpeculativeSample sample = sample_speculatively(target, draft, random);
    drawn[static_cast<std::size_t>(sample.token)] += 1.0 / static_cast<double>(draws);
    kept += sample.accepted ? 1.0 / static_cast<double>(draws) : 0.0;
  }
  LectureTable table{"a drafted token x is kept with min(1, q / p), else one is drawn from the residual",
                     {"token", "q", "p", "kept", "residual", "output", fmt::format("of {} draws", draws)},
                     {}};
  for (std::size_t x = 0; x < target.size(); ++x) {
    const double keep = draft[x] > 0 ? std::min(1.0, target[x] / draft[x]) : 1.0;
    table.rows.push_back({static_cast<double>(x), target[x], draft[x], keep, residual[x], out[x], drawn[x]});
  }
  LectureTable rate{"drafts that are kept", {"exact", "drawn"}, {{acceptance_rate(target, draft), kept}}};
  return {table, rate};
}

LectureTables speculation_tables(const LectureInputs& in) {
  const double a = in.one("acceptance"), r = in.one("cost_ratio");
  LectureTable chain{
      fmt::format("a chain, a {:g}, r {:g}", a, r), {"k", "tokens per step", "k a + 1", "speed-up", "of k a + 1"}, {}};
  for (const double drafts : in.list("drafts")) {
    const int k = static_cast<int>(drafts);
    const double bound = expected_tokens_bound(a, k);
    chain.rows.push_back({drafts, expected_tokens(a, k), bound, speculation_speedup(a, k, r), bound / (k * r + 1)});
  }
  const BestDrafts best = best_drafts(a, r, 64);
  LectureTable most{"fastest", {"k", "speed-up"}, {{static_cast<double>(best.drafts), best.speedup}}};
  LectureTable tree{"trees: the k w likeliest nodes are verified", {"k"}, {}};
  for (const double width : in.list("widths")) tree.columns.push_back(fmt::format("width {:g}", width));
  for (const double drafts : in.list("drafts")) {
    tree.rows.push_back({drafts});
    for (const double width : in.list("widths"))
      tree.rows.back().push_back(
          AcceptanceLaw(spec_of(a, static_cast<int>(drafts), static_cast<int>(width))).mean_tokens());
  }
  return {chain, most, tree};
}

LectureTables draft_tables(const LectureInputs& in) {
  const int k = in.whole("drafts");
  LectureTable methods{fmt::format("methods of a scenario, k {}", k),
                       {"method", "usual acceptance", "tokens per step", "drafted by"},
                       {}};
  for (const SpeculationSpec::Method method : kSpeculationMethods) {
    const MethodFacts facts = facts_of(method);
    if (facts.drafter == Drafter::kNone) continue;
    const auto who = [&]() -> std::string {
      switch (facts.drafter) {
        case Drafter::kHost:
          return "n-grams looked up on the host";
        case Drafter::kModel:
          return "a smaller model";
        case Drafter::kFirstLayers:
          return "the model's own first layers";
        case Drafter::kLayer:
          return "one more layer";
        case Drafter::kHeads:
          return "a head a draft";
        case Drafter::kNone:
          break;
      }
      return "";
    };
    methods.rows.push_back(
        {std::string(facts.name), facts.usual_acceptance, expected_tokens(facts.usual_acceptance, k), who()});
  }
  SpeculationSpec spec{.method = SpeculationSpec::Method::kLookahead};
  const int w = in.whole("window"), n = in.whole("ngram");
  spec.guesses = in.whole("guesses");
  spec.num_speculative_tokens = n - 1;
  spec.window_positions = w * (n - 1);
  spec.acceptance = {facts_of(spec.method).usual_acceptance};
  LectureTable lookahead{
      fmt::format("lookahead decoding: (W + G)(N - 1) positions per step, a {:g} of one guess", spec.acceptance[0]),
      {"W", "N", "G", "positions", "tokens at most", "tokens per step"},
      {{static_cast<double>(w), static_cast<double>(n), static_cast<double>(spec.guesses),
        static_cast<double>(spec.query_len()), static_cast<double>(n), AcceptanceLaw(spec).mean_tokens()}}};
  LectureTable others{"published", {"method", "speed-up", "what", "source"}, {}};
  for (const Published& row : published("speeds")) {
    if (row.of == "drafts") others.rows.push_back({row.format, row.changed, row.measure, row.source});
  }
  return {methods, lookahead, others};
}

}  // namespace roofcast
