#pragma once
// A fleet's bill over the kinds of tokens it serves.

#include <memory>

#include "sim/plan/fleet_cost.h"
#include "sim/plan/scenario.h"
#include "sim/step/step_model.h"

namespace roofcast {

/// Step time of one token of each kind: a prompt token in a full prefill chunk of each rank, a prompt token that is
/// found cached (`cached_token_seconds`), an output token in a decode step of all sequences that decode. With
/// speculation that step drafts and verifies, and makes the mean number of accepted tokens.
struct TokenTimes {
  double input = 0, cached_input = 0, output = 0;
};
/// What a cached token adds to the GPU's time of a prefill chunk of as many tokens behind it, on each rank: the
/// attention of its keys and values, at least that they, or the state that they left, are read once. The host's time is
/// no part of it: it is the chunk's, cached tokens or not.
double cached_token_seconds(StepModel& model, int chunk);
/// Of prompts and sequences of these mean lengths, `decoding` sequences at a time on a replica.
TokenTimes token_times(const std::shared_ptr<const Deployment>& deployment, const SpeculationSpec& speculation,
                       double prompt, double output, double decoding);

struct TokenCounts {
  double input = 0;  ///< not found cached
  double cached_input = 0, output = 0;
  double dropped_output = 0;  ///< computed for sequences that are not returned (`samples`)
  double all() const { return input + cached_input + output; }
};
/// Of a whole run.
TokenCounts token_counts(const ServingMetrics& metrics);

/// Dollars of a million tokens of each kind: the bill is split as the steps' time is. Output tokens that are returned
/// pay for those that are dropped.
struct TokenBill {
  double usd_per_million_input = 0, usd_per_million_cached_input = 0, usd_per_million_output = 0,
         usd_per_million_total = 0;
  double input_share = 0;  ///< of the bill, cached tokens included
};
TokenBill split_bill(double usd, const TokenCounts& tokens, const TokenTimes& times);
/// Where prompts have workers of their own, their bill is the input's.
TokenBill split_bill(double usd, const TokenCounts& tokens, const TokenTimes& times, double input_share);

/// Of a run of the scenario that cost so many dollars, on so many replicas (and prefill workers).
TokenBill token_bill(double usd, const ServingMetrics& metrics, const Scenario& scenario, int replicas,
                     int prefill_replicas);

}  // namespace roofcast
