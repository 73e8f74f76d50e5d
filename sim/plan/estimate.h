#pragma once
// Closed-form estimate of one deployment: prefill and decode of a batch of equal requests.

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/speculation.h"
#include "sim/step/step_model.h"

namespace roofcast {

struct Deployment;

struct EstimateRequest {
  int batch = 1;  ///< concurrent sequences on one replica
  int prompt_tokens = 1024;
  int output_tokens = 128;
  std::optional<int> context;  ///< tokens of context in the decode step; default: prompt plus half of the output
  int replicas = 1;
  SpeculationSpec speculation{};
  std::vector<EncoderWork> media{};  ///< media of each prompt; prompt_tokens includes their tokens
};

/// 90 % prediction interval.
struct Interval {
  Seconds low{}, high{};
};

struct EstimateMemory {
  Bytes weights{}, cache_per_token{}, state_per_sequence{}, cache{}, activations{}, capacity{};
  bool fits = false;
  double max_batch = 0, max_context = 0;
  std::string reason;  ///< why it does not fit
};

/// Load imbalance of experts: tokens of the most loaded GPU in a decode step over the mean of all GPUs.
struct ExpertBalance {
  double as_drawn = 1;  ///< with one copy per expert, placed at random
  double placed = 1;    ///< with the redundant copies and the placement of the deployment
};

/// A closed loop with as many users as the batch has sequences. Each user sends the next request when the previous one
/// has ended, so that prefill runs between or together with decode steps of other users.
struct SteadyLoad {
  std::string left_out;            ///< why it was not simulated; else empty
  Seconds tpot{};                  ///< mean
  double output_tokens_per_s = 0;  ///< of all replicas, while every user has a request in flight
  double front_end_share = 0;      ///< fraction of the time that the front end is busy
};

struct EstimateCost {
  double usd_per_hour = 0;  ///< all GPUs
  /// The bill for whole requests, split in proportion to step time.
  double usd_per_million_input_tokens = 0, usd_per_million_cached_input_tokens = 0, usd_per_million_output_tokens = 0;
  double usd_per_million_total_tokens = 0;
  double joules_per_output_token = 0;
};

struct Estimate {
  EstimateRequest request;  ///< what is priced; its batch is at most max_num_seqs
  int waiting = 0;          ///< sequences of the requested batch beyond that
  EstimateMemory memory;
  StepBreakdown prefill, decode;
  double prefill_steps = 1;
  Seconds ttft{}, tpot{}, request_latency{};
  Seconds front_end{};  ///< front-end time in ttft
  Interval ttft_interval, tpot_interval;
  std::optional<SpeculationEstimate> speculation;  ///< tpot and decode then include drafting and verification
  std::optional<SteadyLoad> steady;             ///< not set by estimate(), because it takes longer: see steady_load.h
  std::optional<ExpertBalance> expert_balance;  ///< only for experts on several GPUs
  double output_tokens_per_s = 0;               ///< of all replicas, in the decode step above
  double request_tokens_per_s = 0;              ///< output tokens / request latency
  EstimateCost cost;
};

/// Prompts are prefilled together, in chunks of the engine's token budget (one pass if ideal); then every sequence
/// decodes to its end. Without a KV cache each step is a prefill of all tokens so far. Speculation is priced at the
/// context of the decode step; its drafter also prefills the prompt, unless it is part of the target. If the batch
/// exceeds max_num_seqs, the sequences that run first are priced and the others wait (Estimate::waiting).
Estimate estimate(const std::shared_ptr<const Deployment>& deployment, const EstimateRequest& request);
/// The same, reusing the cached prices of `model`.
Estimate estimate(StepModel& model, const EstimateRequest& request);

/// Total tokens processed: prompt + output with a KV cache; the sum over all prefixes without.
double processed_tokens(double prompt_tokens, double output_tokens, bool kv_cache);

}  // namespace roofcast
