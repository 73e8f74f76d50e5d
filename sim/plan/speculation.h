#pragma once
// Speculative decoding on one deployment: the costs of drafting and verification, and the speedup.

#include <memory>
#include <span>
#include <vector>

#include "base/config_reader.h"
#include "sim/serve/speculation.h"
#include "sim/step/step_model.h"

namespace roofcast {

struct Deployment;
struct EngineSpec;
struct ModelSpec;
class StepModel;

/// The scenario's `speculation:` block.
///   method                   draft_model | eagle | eagle3 | medusa | mtp | ngram | suffix | lookahead | self_draft |
///                            diffusion
///   model, precision, draft_tp   of a draft_model
///   num_speculative_tokens   k; default 4, for mtp the checkpoint's layers or the engine's default; at least 1
///                            (`method: none` disables speculation)
///   acceptance               per draft: a number, a list by position, or {file, column} of accepted drafts per step
///   tree_width               candidates per node, 1; the k * tree_width likeliest nodes are verified
///   layers                   self_draft: the fraction of the layers that drafts, 0.25
///   min_probability          suffix: drafting stops when the path's probability falls below it, 0.1 (vLLM's
///                            suffix_decoding_min_token_prob); num_speculative_tokens is the maximum, 24 (tree depth).
///                            SuffixDecoding, arXiv:2411.04975: drafts more where acceptance is likelier
///   window, ngram, guesses   lookahead: W 15, N 5 and G 15; a step computes (W + G)(N - 1) positions and N - 1 drafts
///                            of one of G guesses are kept at most (Fu et al., 2024, arXiv:2402.02057, section 3)
/// or, for a diffusion language model (LLaDA, arXiv:2502.09992; blocks with a cache of earlier blocks: Block Diffusion,
/// arXiv:2503.09573, Fast-dLLM, arXiv:2505.22618),
///   method: diffusion, block_tokens (32), steps (half of them)   passes that refine a block
/// Throws ConfigError if method and model do not match.
SpeculationSpec parse_speculation(ConfigReader in, const Deployment& target);

/// The part of the target that drafts, as a separate model, if the target drafts for itself:
///   eagle   one decoder layer after a projection of 2 h (hidden state and embedding) to h, and the target's head
///           (Li et al., 2024, arXiv:2401.15077); eagle3: 3 h to h and a head of 32,000 words (arXiv:2503.01840)
///   mtp     one more layer of the target's last kind after a projection of 2 h to h (DeepSeek-V3, arXiv:2412.19437)
///   medusa  one head: a residual block of h x h and an output head (Cai et al., 2024, arXiv:2401.10774)
///   self_draft   the first layers of the target and its head (Elhoushi et al., 2024, arXiv:2404.16710)
ModelSpec draft_model(const ModelSpec& target, SpeculationSpec::Method method, double layer_share);

/// Bytes per GPU that the drafter adds to the weights: none for n-grams and self-drafting; embedding and head only if
/// they are not the target's.
Bytes draft_weight_bytes(const SpeculationSpec& spec);

/// Subtracts the drafter's weights and cache from the target's memory plan.
void reserve_draft(Deployment& target, const SpeculationSpec& spec);

/// Whether these drafts stop asynchronous scheduling in this engine.
bool drafts_stop_async(const EngineSpec& engine, const SpeculationSpec& spec);

/// a_i = P(at least i accepted) / P(at least i - 1), from the accepted drafts of measured steps.
std::vector<double> acceptance_by_position(std::span<const double> accepted, int drafts);

/// All drafts of one step by a model; zero without one.
struct DraftRound {
  StepCost cost;
  Seconds gpu{}, meanwhile{};  ///< of `cost.time`: as in HostBound
};
DraftRound draft_round(StepModel& drafter, const SpeculationSpec& spec, const StepBatch& batch);

struct SpeculationEstimate {
  SpeculationSpec::Method method = SpeculationSpec::Method::kNone;
  int drafts = 0;
  double tokens_per_step = 1;  ///< per sequence
  double acceptance = 0;       ///< acceptance of the first draft
  double tokens_bound = 1;     ///< k a + 1 with a of the first draft or, in a tree, of one of its candidates
  Seconds plain_step{};        ///< without speculation
  Seconds draft_time{}, verify_time{};
  DraftRound draft;
  double speedup = 1;                        ///< decoding: E plain / (draft + verify)
  double speedup_low = 1, speedup_high = 1;  ///< 90 % interval due to acceptance
  int best_drafts = 0;                       ///< 0: plain decoding is faster
  double best_speedup = 1;
  Seconds step() const { return draft_time + verify_time; }
};

/// One round at `context` tokens per sequence: k draft steps, then a verification step of 1 + k w positions per
/// sequence. `target` prices both the plain and the verification step.
SpeculationEstimate speculate(StepModel& target, const SpeculationSpec& spec, int batch, double context);

/// Adds the drafts of a round to its verification step.
void add_drafts(StepBreakdown& verification, const SpeculationSpec& spec, const DraftRound& drafts);

}  // namespace roofcast
