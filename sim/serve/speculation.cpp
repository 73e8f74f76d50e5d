#include "sim/serve/speculation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace roofcast {

/// Acceptance: 0.7 for a model of the same family and 0.6 for early exit (Leviathan et al., 2023; Elhoushi et al.,
/// 2024), EAGLE 0.75 and EAGLE-3 0.8 (arXiv:2503.01840, table 1: 4 to 6 tokens a step), Medusa 0.6 (arXiv:2401.10774),
/// MTP 0.85 (arXiv:2412.19437, section 5.4.3), n-grams 0.4.
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
    case Method::kSelfDraft:
      return {"self_draft", Drafter::kFirstLayers, 0.6, false, false, false};
    case Method::kDiffusion:
      return {"diffusion", Drafter::kNone, 1, false, false, false};
  }
  SIM_CHECK(false, "a speculation method");
  return facts_of(Method::kNone);
}

AcceptanceLaw::AcceptanceLaw(const SpeculationSpec& spec) {
  double product = 1.0;
  for (int i = 0; i < (spec.active() ? spec.num_speculative_tokens : 0); ++i) {
    const auto n = static_cast<int>(spec.acceptance.size());
    const double one = n == 0 ? 0.0 : spec.acceptance[static_cast<std::size_t>(std::min(i, n - 1))];
    product *= 1.0 - std::pow(1.0 - std::clamp(one, 0.0, 1.0), std::max(spec.tree_width, 1));
    at_least_.push_back(product);
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
