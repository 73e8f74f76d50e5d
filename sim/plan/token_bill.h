#pragma once
// Splits a fleet's bill over the kinds of tokens it serves.

#include <memory>

#include "sim/plan/fleet_cost.h"
#include "sim/plan/scenario.h"
#include "sim/step/step_model.h"

namespace roofcast {

/// Step time per token of each kind: a prompt token in a full prefill chunk on each rank, a prompt token found in the
/// cache (`cached_token_seconds`), and an output token in a decode step of all decoding sequences. With speculation
/// that step drafts, verifies, and makes the mean number of accepted tokens.
struct TokenTimes {
  double input = 0, cached_input = 0, output = 0;
};
/// The GPU time that one cached token adds to a prefill chunk after it, with as many cached tokens per rank more:
/// attention to its keys and values, and at least one read of these or of the saved state. Host time belongs to the
/// chunk, cached or not, and is left out.
double cached_token_seconds(StepModel& model, int chunk);
/// For prompts and sequences of these mean lengths, with `decoding` sequences at a time per replica.
TokenTimes token_times(const std::shared_ptr<const Deployment>& deployment, const SpeculationSpec& speculation,
                       double prompt, double output, double decoding);

struct TokenCounts {
  double input = 0;  ///< not found in the cache
  double cached_input = 0, output = 0;
  double dropped_output = 0;  ///< computed for sequences that are not returned (`samples`)
  double all() const { return input + cached_input + output; }
};
/// Token counts of a whole run.
TokenCounts token_counts(const ServingMetrics& metrics);

/// USD per million tokens of each kind: the bill is split like the steps' time. Returned output tokens pay for the
/// dropped ones.
struct TokenBill {
  double usd_per_million_input = 0, usd_per_million_cached_input = 0, usd_per_million_output = 0,
         usd_per_million_total = 0;
  double input_share = 0;  ///< share of the bill, including cached tokens
};
TokenBill split_bill(double usd, const TokenCounts& tokens, const TokenTimes& times);
/// Where prompts have workers of their own, the bill of these workers is the input's.
TokenBill split_bill(double usd, const TokenCounts& tokens, const TokenTimes& times, double input_share);

/// Prices of a run that cost this many dollars on this many replicas (and prefill workers).
TokenBill token_bill(double usd, const ServingMetrics& metrics, const Scenario& scenario, int replicas,
                     int prefill_replicas);

}  // namespace roofcast
