#include "sim/plan/token_bill.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/plan/prices.h"

namespace roofcast {

TokenTimes token_times(const std::shared_ptr<const Deployment>& deployment, double prompt, double output,
                       double flight) {
  const Deployment& d = *deployment;
  const std::unique_ptr<StepPricer> pricer = make_model_pricer(deployment);
  const int chunk = std::max(1, std::min(d.engine.max_num_batched_tokens, static_cast<int>(std::lround(prompt))));
  const auto chunk_time = [&](int before) {
    const std::array<PrefillChunk, 1> chunks{{{chunk, before, true}}};
    return pricer->cost({.decodes = 0, .decode_context = 0, .prefills = chunks}).time.base();
  };
  const int batch = std::max(1, std::min(d.seats(), static_cast<int>(std::lround(flight))));
  const StepBatch step{.decodes = batch, .decode_context = batch * (prompt + output / 2), .prefills = {}};
  const double alone = chunk_time(0);
  return {.input = alone / chunk,
          .cached_input = std::max(0.0, chunk_time(chunk) - alone) / chunk,
          .output = pricer->cost(step).time.base() / batch};
}

TokenCounts token_counts(const ServingMetrics& m) {
  return {.input = std::max(0.0, m.input_tokens - m.cached_tokens),
          .cached_input = m.cached_tokens,
          .output = m.output_tokens};
}

TokenBill split_bill(double usd, const TokenCounts& tokens, const TokenTimes& times) {
  const double in = times.input * tokens.input + times.cached_input * tokens.cached_input,
               out = times.output * tokens.output;
  return split_bill(usd, tokens, times, in + out > 0 ? in / (in + out) : 0);
}

TokenBill split_bill(double usd, const TokenCounts& tokens, const TokenTimes& times, double input_share) {
  TokenBill bill{.input_share = input_share};
  const double in = times.input * tokens.input + times.cached_input * tokens.cached_input;
  const double usd_per_second = in > 0 ? usd * input_share / in : 0;
  bill.usd_per_million_input = usd_per_second * times.input * 1e6;
  bill.usd_per_million_cached_input = usd_per_second * times.cached_input * 1e6;
  if (tokens.output > 0) bill.usd_per_million_output = usd * (1 - input_share) / tokens.output * 1e6;
  if (tokens.all() > 0) bill.usd_per_million_total = usd / tokens.all() * 1e6;
  return bill;
}

TokenBill token_bill(double usd, const ServingMetrics& m, const std::shared_ptr<const Deployment>& deployment,
                     int replicas, const std::optional<Disaggregation>& apart) {
  if (m.completed == 0 || m.duration <= Seconds(0)) return {};
  const double requests = static_cast<double>(m.completed);
  const double flight = requests / m.duration.base() * m.e2el_ms.mean() / 1e3 / std::max(1, replicas);  // Little's law
  const TokenTimes times = token_times(deployment, m.input_tokens / requests, m.output_tokens / requests, flight);
  if (!apart) return split_bill(usd, token_counts(m), times);
  const double prefill = usd_per_hour(*apart->prefill, apart->prefill_replicas).value,
               decode = usd_per_hour(*deployment, replicas).value;
  return split_bill(usd, token_counts(m), times, prefill + decode > 0 ? prefill / (prefill + decode) : 0);
}

}  // namespace roofcast
