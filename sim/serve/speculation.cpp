#include "sim/serve/speculation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace roofcast {

std::string_view name_of(SpeculationSpec::Method method) {
  static constexpr std::array<std::string_view, 9> kNames{"none", "draft_model", "eagle",      "eagle3",   "medusa",
                                                          "mtp",  "ngram",       "self_draft", "diffusion"};
  return kNames[static_cast<std::size_t>(method)];
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
