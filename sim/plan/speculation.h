#pragma once
// Speculative decoding on one deployment: what drafts cost, what verifying costs, what comes out.

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
///   num_speculative_tokens   k, 4; of mtp as many as the checkpoint has layers, or the engine's; at least 1,
///                            `method: none` is no speculation
///   acceptance               of one draft: a number, a list by position, or {file, column} of accepted drafts a step
///   tree_width               candidates of a node, 1; k times as many nodes are verified, the likeliest ones
///   layers                   self_draft: the share of the layers that drafts, 0.25
///   min_probability          suffix: drafts end where the path's probability falls below it, 0.1 (vLLM's
///                            suffix_decoding_min_token_prob); num_speculative_tokens is the most, 24 (its tree's
///                            depth). SuffixDecoding, arXiv:2411.04975: more drafts where acceptance is likelier
///   window, ngram, guesses   lookahead: W 15, N 5 and G 15; a step computes (W + G)(N - 1) positions and N - 1 drafts
///                            of one of G guesses are kept at most (Fu et al., 2024, arXiv:2402.02057, section 3)
/// or, of a diffusion language model (LLaDA, arXiv:2502.09992; blocks with a cache of what stands before them: Block
/// Diffusion, arXiv:2503.09573, Fast-dLLM, arXiv:2505.22618),
///   method: diffusion, block_tokens (32), steps (half of them)   passes that refine a block
/// Throws ConfigError where method and model do not go together.
SpeculationSpec parse_speculation(ConfigReader in, const Deployment& target);

/// The part of the target that drafts when it drafts for itself, as a separate model:
///   eagle   one decoder layer behind a projection of 2 h (hidden state and embedding) to h, the target's head
///           (Li et al., 2024, arXiv:2401.15077); eagle3: 3 h to h and a head of 32,000 words (arXiv:2503.01840)
///   mtp     one more layer of the target's last kind behind a projection of 2 h to h (DeepSeek-V3, arXiv:2412.19437)
///   medusa  one head: a residual block of h x h and a head of its own (Cai et al., 2024, arXiv:2401.10774)
///   self_draft   the first layers of the target and its head (Elhoushi et al., 2024, arXiv:2404.16710)
ModelSpec draft_model(const ModelSpec& target, SpeculationSpec::Method method, double layer_share);

/// Bytes of one GPU that drafting adds to the weights: nothing for n-grams and self-drafts; embedding and head only
/// where they are not the target's.
Bytes draft_weight_bytes(const SpeculationSpec& spec);

/// Takes the drafter's weights and its cache out of the target's memory plan.
void reserve_draft(Deployment& target, const SpeculationSpec& spec);

/// Whether an engine that schedules asynchronously does not beside these drafts.
bool schedules_between(const EngineSpec& engine, const SpeculationSpec& spec);

/// a_i = P(at least i accepted) / P(at least i - 1), from the accepted drafts of measured steps.
std::vector<double> acceptance_by_position(std::span<const double> accepted, int drafts);

struct SpeculationEstimate {
  SpeculationSpec::Method method = SpeculationSpec::Method::kNone;
  int drafts = 0;
  double tokens_per_step = 1;  ///< a sequence
  double acceptance = 0;       ///< of the first draft
  double tokens_bound = 1;     ///< the lectures' k a + 1, a of the first draft or, in a tree, of one of its candidates
  Seconds plain_step{};        ///< without speculation
  Seconds draft_time{}, verify_time{};
  StepCost draft;                            ///< all drafts of a step
  double speedup = 1;                        ///< of decoding: E plain / (draft + verify)
  double speedup_low = 1, speedup_high = 1;  ///< 90 %, by what acceptance leaves open
  int best_drafts = 0;                       ///< 0: plain decoding is faster
  double best_speedup = 1;
  Seconds step() const { return draft_time + verify_time; }
};

/// One round at `context` tokens a sequence: k draft steps, then a decode step of 1 + k w positions a sequence.
/// `target` prices both the plain and the verifying step.
SpeculationEstimate speculate(StepModel& target, const SpeculationSpec& spec, int batch, double context);

}  // namespace roofcast
