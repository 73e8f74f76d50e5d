#pragma once
// Speculative decoding in closed form: the value of k drafts per step.

namespace roofcast {

/// Tokens per verification step. Draft i counts only if all earlier ones were accepted, each with probability a, and
/// the verification pass adds one token, so
///   E = 1 + a + a^2 + ... + a^k = (1 - a^(k+1)) / (1 - a),   k + 1 at a = 1.
/// Source: Leviathan, Kalman, Matias, 2023, arXiv:2211.17192, equation 1.
double expected_tokens(double acceptance, int drafts);

/// k a + 1: the same if every draft were judged independently. Never below expected_tokens, and equal for one draft,
/// for a = 0 and for a = 1.
double expected_tokens_bound(double acceptance, int drafts);

/// Decoding time without speculation / with speculation, if a draft costs `cost_ratio` of a step of the target and the
/// verification pass `verify_ratio` of it (1 if bound by weight traffic):  E / (k r + v).
double speculation_speedup(double acceptance, int drafts, double cost_ratio, double verify_ratio = 1.0);

struct BestDrafts {
  int drafts = 0;  ///< 0: not speculating is faster
  double speedup = 1.0;
};
/// The number of drafts up to `most` that decodes fastest.
BestDrafts best_drafts(double acceptance, double cost_ratio, int most);

}  // namespace roofcast
