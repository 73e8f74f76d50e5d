#pragma once
// Speculative decoding: k drafted tokens a step, verified in one pass.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "sim/serve/step_pricer.h"

namespace roofcast {

struct SpeculationSpec {
  /// kDiffusion drafts nothing: a pass refines a whole block and settles a share of it, so that it is a verify step of
  /// the block whose accepted tokens are that share.
  enum class Method { kNone, kDraftModel, kEagle, kEagle3, kMedusa, kMtp, kNgram, kSelfDraft, kDiffusion };
  Method method = Method::kNone;
  int num_speculative_tokens = 0;       ///< k
  std::vector<double> acceptance = {};  ///< of the i-th draft, the ones before it accepted; the last value goes on
  int tree_width = 1;                   ///< candidates a position; all of them are verified
  Seconds draft_time{};                 ///< of all drafts of a step, beside the draft model's
  std::shared_ptr<const Deployment> draft =
      nullptr;  ///< a draft model that runs k decode steps; null: draft_time alone

  bool active() const { return method != Method::kNone && num_speculative_tokens > 0; }
  /// Tokens a sequence brings to a verify step: the last one accepted, and every drafted node.
  int query_len() const { return active() ? 1 + num_speculative_tokens * std::max(tree_width, 1) : 1; }
};

std::string_view name_of(SpeculationSpec::Method method);

/// Draws how many drafts of a step are accepted. With acceptance a_i of the i-th draft after i - 1 accepted ones,
/// P(at least i) = a_1 ... a_i, so the tokens of a step are 1 + sum over i of that product: for constant a,
/// (1 - a^(k+1)) / (1 - a). A tree of w candidates a position accepts one of them with 1 - (1 - a_i)^w.
class AcceptanceLaw {
 public:
  explicit AcceptanceLaw(const SpeculationSpec& spec);
  int draw(Random& random) const;
  double mean_tokens() const;  ///< a step, the verified one included

 private:
  std::vector<double> at_least_;  ///< P(at least i + 1 drafts accepted)
};

}  // namespace roofcast
