#include "sim/plan/speculation_math.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace roofcast {

double expected_tokens(double acceptance, int drafts) {
  double tokens = 1.0, all_before = 1.0;
  for (int i = 0; i < drafts; ++i) {
    all_before *= acceptance;
    tokens += all_before;
  }
  return tokens;
}

double expected_tokens_bound(double acceptance, int drafts) { return drafts * acceptance + 1.0; }

double speculation_speedup(double acceptance, int drafts, double cost_ratio, double verify_ratio) {
  return expected_tokens(acceptance, drafts) / (drafts * cost_ratio + verify_ratio);
}

BestDrafts best_drafts(double acceptance, double cost_ratio, int most) {
  BestDrafts best;
  for (int k = 1; k <= most; ++k) {
    const double speedup = speculation_speedup(acceptance, k, cost_ratio);
    if (speedup > best.speedup) best = {k, speedup};
  }
  return best;
}

}  // namespace roofcast
