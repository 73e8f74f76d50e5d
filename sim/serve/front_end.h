#pragma once
// The servers between clients and the engine: one for incoming requests, one for outgoing tokens.

#include <algorithm>
#include <optional>

#include "sim/serve/sim_time.h"
#include "sim/step/engine_spec.h"
#include "sim/step/streaming.h"

namespace roofcast {

/// The n front-end servers share the work evenly: n times the throughput, and the latency of one server per request.
class FrontEnd {
 public:
  /// `ranks`: attention-DP ranks behind the front end. `text`: front-end time per prompt token relative to plain text.
  explicit FrontEnd(const EngineSpec& engine, int ranks = 1, double text = 1.0)
      : servers_(engine.front_ends({.attention_dp = ranks})),
        request_(engine.host.request_time),
        prompt_token_(engine.host.prompt_token_time * text),
        latency_(SimTime::of(engine.host.request_latency)),
        token_(SimTime::of(streaming_time(engine) / servers_)) {}

  /// When the engine sees a request: requests are processed one after another, then wait a fixed time. `longer`: the
  /// processing time of this one relative to the mean.
  SimTime receive(SimTime sent, int prompt_tokens, double longer = 1.0) {
    const SimTime work = SimTime::of(request_ * longer) + SimTime::of(prompt_token_ * (prompt_tokens * longer));
    const SimTime share(work.picoseconds() / servers_);
    intake_free_ = std::max(intake_free_, sent) + share;
    return intake_free_ + (work - share) + latency_;
  }
  /// How long the servers are busy with this many tokens.
  SimTime busy(std::int64_t tokens) const { return tokens * token_; }

  bool delays_tokens() const { return token_ > SimTime(0); }

  /// Mean wait of the tokens of a step in addition to deliver(), which assumes constant service times. `gap` is the
  /// time since the previous tokens. At utilization u the wait is u / (1 - u) times the work of one step's tokens,
  /// times the mean squared coefficient of variation of work and arrivals, taken as 1 (Kingman 1961).
  Seconds wait(Seconds gap, std::int64_t tokens) const {
    constexpr double kBusiest = 0.95;  // a run of a few seconds builds up no longer queue
    const Seconds work = (tokens * token_).seconds();
    const double busy = std::min(kBusiest, work / gap);
    return work * (busy / (1 - busy));
  }
  /// When the last step with output tokens ended.
  std::optional<SimTime> last_output() const { return last_output_; }

  struct Delivery {
    SimTime first, last;
  };
  /// When the tokens of the first and the last of `steps` equal-sized steps reach their clients. A step counts as
  /// delivered when the server reaches its middle token. The steps end between first_end and last_end:
  ///   free(i) = max(free(i-1), end(i)) + tokens * token_time
  /// which unrolls to the maximum over j of end(j) + (n - j + 1) tokens token_time. Steps never get shorter within a
  /// run, so end(j) is convex in j and the maximum is at j = 1 or j = n.
  Delivery deliver(SimTime first_end, SimTime last_end, std::int64_t steps, std::int64_t tokens) {
    if (!delays_tokens() || tokens == 0) return {first_end, last_end};
    last_output_ = last_end;
    const SimTime step = tokens * token_, half((tokens - 1) * token_.picoseconds() / 2);
    const SimTime first_free = std::max(output_free_, first_end) + step;
    output_free_ = steps == 1 ? first_free : std::max(first_free + (steps - 1) * step, last_end + step);
    return {first_free - half, output_free_ - half};
  }

 private:
  int servers_;
  Seconds request_, prompt_token_;
  SimTime latency_, token_;
  SimTime intake_free_, output_free_;
  std::optional<SimTime> last_output_;
};

}  // namespace roofcast
