#pragma once
// Speculative decoding: k drafted tokens a step, verified in one pass.

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "sim/serve/step_pricer.h"

namespace roofcast {

struct SpeculationSpec {
  /// kDiffusion drafts nothing: a pass refines a whole block and settles a share of its tokens. It is priced as a
  /// verify step of the block that accepts that share.
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

/// What runs between two verify steps.
enum class Drafter {
  kNone,         ///< nothing
  kHost,         ///< a look-up on the host
  kModel,        ///< a model of its own
  kFirstLayers,  ///< the first layers of the target and its head
  kLayer,        ///< one layer more
  kHeads,        ///< one head a draft
};

/// No field has a default: a method that leaves one out does not compile.
struct MethodFacts {
  std::string_view name;  ///< in a scenario
  Drafter drafter;
  double usual_acceptance;  ///< published, of one draft: where a scenario names none
  bool own_format;          ///< the drafter's weights are published in 16 bit, whatever the target's format
  bool own_head;            ///< it has a head of its own
  bool own_cache;           ///< it keeps a cache of its own, hence reads the prompt, too
};
MethodFacts facts_of(SpeculationSpec::Method method);
inline std::string_view name_of(SpeculationSpec::Method method) { return facts_of(method).name; }
/// In the order of the enumeration.
inline constexpr std::array kSpeculationMethods{
    SpeculationSpec::Method::kNone,   SpeculationSpec::Method::kDraftModel, SpeculationSpec::Method::kEagle,
    SpeculationSpec::Method::kEagle3, SpeculationSpec::Method::kMedusa,     SpeculationSpec::Method::kMtp,
    SpeculationSpec::Method::kNgram,  SpeculationSpec::Method::kSelfDraft,  SpeculationSpec::Method::kDiffusion,
};

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
