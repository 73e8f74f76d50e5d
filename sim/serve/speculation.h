#pragma once
// Speculative decoding: k drafted tokens per step, verified in one pass.

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
  /// kDiffusion (block diffusion) drafts nothing: each pass refines a whole block and finalizes a fraction of its
  /// tokens. It is priced as a verify step of the block that accepts that fraction.
  enum class Method {
    kNone,
    kDraftModel,
    kEagle,
    kEagle3,
    kMedusa,
    kMtp,
    kNgram,
    kSuffix,
    kLookahead,
    kSelfDraft,
    kDiffusion
  };
  Method method = Method::kNone;
  int num_speculative_tokens = 0;       ///< k
  std::vector<double> acceptance = {};  ///< of the i-th draft if all earlier ones were accepted; the last value repeats
  int tree_width = 1;                   ///< maximum candidates per node; k * tree_width nodes are verified
  int guesses = 1;                      ///< n-grams of k drafts each, verified in parallel (lookahead)
  int window_positions = 0;             ///< extra positions computed per step to find the next n-grams (lookahead)
  Seconds draft_time{};                 ///< for all drafts of a step, in addition to the draft model
  std::shared_ptr<const Deployment> draft =
      nullptr;  ///< a draft model that runs k decode steps; null: draft_time alone

  bool active() const { return method != Method::kNone && num_speculative_tokens > 0; }
  bool diffuses() const { return method == Method::kDiffusion; }
  /// Tokens per sequence in a verify step: the last accepted one and every drafted node.
  int query_len() const {
    if (!active()) return 1;
    if (method == Method::kLookahead) return window_positions + num_speculative_tokens * guesses;
    return 1 + num_speculative_tokens * std::max(tree_width, 1);
  }
};

/// What runs between two verification steps.
enum class Drafter {
  kNone,         ///< nothing
  kHost,         ///< a lookup on the host
  kModel,        ///< a separate model
  kFirstLayers,  ///< the first layers of the target and its head
  kLayer,        ///< one extra layer
  kHeads,        ///< one head per draft
};

/// No field has a default, so a method that omits one does not compile.
struct MethodFacts {
  std::string_view name;  ///< in a scenario
  Drafter drafter;
  double usual_acceptance;  ///< per draft, from publications; used if a scenario gives none
  bool own_format;          ///< the drafter's weights are published in 16 bit, whatever the target's format
  bool own_head;            ///< it has a head of its own
  bool own_cache;           ///< it keeps a cache of its own, so it also reads the prompt
};
MethodFacts facts_of(SpeculationSpec::Method method);
inline std::string_view name_of(SpeculationSpec::Method method) { return facts_of(method).name; }
/// In the order of SpeculationSpec::Method.
inline constexpr std::array kSpeculationMethods{
    SpeculationSpec::Method::kNone,      SpeculationSpec::Method::kDraftModel, SpeculationSpec::Method::kEagle,
    SpeculationSpec::Method::kEagle3,    SpeculationSpec::Method::kMedusa,     SpeculationSpec::Method::kMtp,
    SpeculationSpec::Method::kNgram,     SpeculationSpec::Method::kSuffix,     SpeculationSpec::Method::kLookahead,
    SpeculationSpec::Method::kSelfDraft, SpeculationSpec::Method::kDiffusion,
};

/// The probability that one of the `width` most likely candidates of a position is the target's token, where the most
/// likely one alone has `acceptance` a: 1 - (1 - a) width^-0.54, capped so that no candidate is likelier than the one
/// before it. The rejection probability follows a power law (Sequoia, arXiv:2402.12374, section 4). The exponent is the
/// least-squares slope in log space of SpecInfer's success rates for one to five candidates (arXiv:2305.09781, table 1,
/// greedy decoding, five data sets; the test lists them).
double width_acceptance(double acceptance, int width);

/// Draws how many drafts of a step are accepted. With acceptance a_i of the i-th draft after i - 1 accepted ones,
/// P(at least i) = a_1 ... a_i, and a step yields 1 + sum over i of that product: (1 - a^(k+1)) / (1 - a) for constant
/// a.
///   Tree: the k w likeliest nodes are verified (EAGLE-2, arXiv:2406.16858, section 4.2). A node is accepted if it and
///   its ancestors are the target's tokens; siblings exclude each other, so P(at least i) sums over the nodes at depth
///   i. Lookahead: g n-grams are verified in parallel, each correct in its first i tokens with probability a_1 ... a_i:
///   P(at least i) = 1 - (1 - a_1 ... a_i)^g (arXiv:2402.02057, section 4).
class AcceptanceLaw {
 public:
  explicit AcceptanceLaw(const SpeculationSpec& spec);
  int draw(Random& random) const;
  double mean_tokens() const;  ///< per step, including the token from the target

 private:
  std::vector<double> at_least_;  ///< P(at least i + 1 drafts accepted)
};

/// Time of the draft model for the drafts of one step. The first pass processes one token, later passes the
/// `tree_width` nodes that continue; heads draft all candidates of a position at once. `Pricer` needs decode_run as in
/// StepPricer.
template <class Pricer>
StepCost draft_cost(Pricer& pricer, const SpeculationSpec& spec, StepBatch batch) {
  const int k = spec.num_speculative_tokens;
  batch.query_len = 1;
  if (spec.tree_width <= 1 || k == 1 || facts_of(spec.method).drafter == Drafter::kHeads)
    return pricer.decode_run(batch, k);
  StepCost cost = pricer.decode_run(batch, 1);
  if (batch.ranks.empty()) batch.decode_context += batch.decodes;  // with attention-DP ranks this token is negligible
  batch.query_len = spec.tree_width;
  const StepCost wide = pricer.decode_run(batch, k - 1);
  cost.time += wide.time;
  cost.flops += wide.flops;
  cost.bytes += wide.bytes;
  return cost;
}

}  // namespace roofcast
