#pragma once
// Splits the bill of a fleet over the kinds of tokens.

#include <memory>

#include "sim/plan/fleet_cost.h"
#include "sim/plan/scenario.h"
#include "sim/step/step_model.h"

namespace roofcast {

/// Step time per token of each kind: a prompt token in a full prefill chunk on each rank, a prompt token found in the
/// prefix cache (`cached_token_seconds`), and an output token in a decode step of all decoding sequences. With
/// speculation that step drafts, verifies, and yields the mean number of accepted tokens.
struct TokenTimes {
  double input = 0, cached_input = 0, output = 0;
};
/// The GPU time that one more cached token per rank adds to a following prefill chunk: attention to its keys and
/// values, and at least one read of these or of the saved state. Host time belongs to the chunk and is excluded.
double cached_token_seconds(StepModel& model, int chunk);
/// For prompts and sequences of these mean lengths, with `decoding` decoding sequences per replica.
TokenTimes token_times(const std::shared_ptr<const Deployment>& deployment, const SpeculationSpec& speculation,
                       double prompt, double output, double decoding);

struct TokenCounts {
  double input = 0;  ///< prompt tokens not found in the cache
  double cached_input = 0, output = 0;
  double dropped_output = 0;  ///< computed for sequences that are not returned (`samples`)
  double all() const { return input + cached_input + output; }
};
/// Token counts of a whole run.
TokenCounts token_counts(const ServingMetrics& metrics);

/// USD per million tokens of each kind: the bill is split in proportion to step time. Returned output tokens pay for
/// dropped ones.
struct TokenBill {
  double usd_per_million_input = 0, usd_per_million_cached_input = 0, usd_per_million_output = 0,
         usd_per_million_total = 0;
  double input_share = 0;  ///< input fraction of the bill, including cached tokens
};
TokenBill split_bill(double usd, const TokenCounts& tokens, const TokenTimes& times);
/// With disaggregation, the bill of the prefill workers is the input's.
TokenBill split_bill(double usd, const TokenCounts& tokens, const TokenTimes& times, double input_share);

/// Token prices of a run that cost `usd` on `replicas` replicas (and prefill workers).
TokenBill token_bill(double usd, const ServingMetrics& metrics, const Scenario& scenario, int replicas,
                     int prefill_replicas);

}  // namespace roofcast
