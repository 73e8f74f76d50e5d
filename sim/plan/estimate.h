#pragma once
// One deployment in closed form: a batch of equal requests, prefilled and decoded.

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
  std::optional<int> context;  ///< context of the decode step; default: when half of the output has been generated
  int replicas = 1;
  SpeculationSpec speculation{};
  std::vector<EncoderWork> media{};  ///< of each prompt, whose tokens count among prompt_tokens
};

/// 90 % of what a run is expected to show.
struct Interval {
  Seconds low{}, high{};
};

struct EstimateMemory {
  Bytes weights{}, cache_per_token{}, state_per_sequence{}, cache{}, activations{}, capacity{};
  bool fits = false;
  double max_batch = 0, max_context = 0;
  std::string reason;  ///< why it does not fit
};

/// Tokens of the GPU whose experts get most in a decode step, over the mean of all.
struct ExpertBalance {
  double as_drawn = 1;  ///< every expert once, wherever it came to lie
  double placed = 1;    ///< with the copies and the placement of the deployment
};

/// A closed loop of as many users as the batch has sequences. Each sends such a request when the one before has ended,
/// so that prompts run between the decode steps of others, or beside them.
struct SteadyLoad {
  std::string left_out;            ///< why there is none; else empty
  Seconds tpot{};                  ///< mean
  double output_tokens_per_s = 0;  ///< of all replicas, while every user waits for an answer
  double front_end_share = 0;      ///< share of the time in which the front end sends tokens or receives prompts
};

struct EstimateCost {
  double usd_per_hour = 0;  ///< all GPUs
  /// The bill of whole requests, split as the steps' time is.
  double usd_per_million_input_tokens = 0, usd_per_million_cached_input_tokens = 0, usd_per_million_output_tokens = 0;
  double usd_per_million_total_tokens = 0;
  double joules_per_output_token = 0;
};

struct Estimate {
  EstimateRequest request;  ///< what is priced: its batch is at most what the engine runs at a time
  int waiting = 0;          ///< sequences of the batch asked for beyond that
  EstimateMemory memory;
  StepBreakdown prefill, decode;
  double prefill_steps = 1;
  Seconds ttft{}, tpot{}, request_latency{};
  Seconds front_end{};  ///< what it adds to the prefill in ttft
  Interval ttft_interval, tpot_interval;
  std::optional<SpeculationEstimate>
      speculation;                   ///< tpot and decode then hold its rounds: drafts and the verifying step
  std::optional<SteadyLoad> steady;  ///< not filled by `estimate`, as it takes longer: sim/plan/steady_load.h
  std::optional<ExpertBalance> expert_balance;  ///< of a model with experts on several GPUs
  double output_tokens_per_s = 0;               ///< of all replicas, while decoding at the step above
  double request_tokens_per_s = 0;              ///< output tokens over the whole latency, prefill included
  EstimateCost cost;
};

/// Prompts are prefilled together, in chunks of the engine's token budget (one pass when ideal); then every
/// sequence decodes to its end. Without a KV cache each step is a prefill of all tokens so far. Speculation is priced
/// at the context of the decode step, and its drafter reads the prompt too, unless it is part of the target. Of a batch
/// larger than the engine runs at a time, those that run first are priced; the others wait (Estimate::waiting).
Estimate estimate(const std::shared_ptr<const Deployment>& deployment, const EstimateRequest& request);
/// The same, with what the model priced before.
Estimate estimate(StepModel& model, const EstimateRequest& request);

/// Tokens that go through the layers in all: prompt + output with a cache; the sum of every prefix without.
double processed_tokens(double prompt_tokens, double output_tokens, bool kv_cache);

}  // namespace roofcast
