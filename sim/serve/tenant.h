#pragma once
// Settings of one kind of client: its rate limit, and the thinking tokens before its answers.

#include <algorithm>
#include <optional>

#include "base/config_reader.h"
#include "sim/serve/length_spec.h"

namespace roofcast {

/// Requests beyond the limit are refused at once, like HTTP 429 from a gateway.
struct RateLimit {
  std::optional<PerSecond> requests, tokens;  ///< prompt plus output tokens
  Seconds burst{60};                          ///< allowance of this period may be used at once
};
/// `rate_limit: {requests: 60 /min, tokens: 100000 /min, burst: 60 s}`.
RateLimit parse_rate_limit(ConfigReader in);

/// Two token buckets, initially full, that refill at the limits' rates.
class TokenBuckets {
 public:
  explicit TokenBuckets(const RateLimit& limit)
      : limit_(limit), requests_(most(limit.requests)), tokens_(most(limit.tokens)) {}
  /// Takes one request of `tokens` tokens if both buckets hold enough.
  bool take(Seconds now, double tokens) {
    fill(requests_, limit_.requests, now);
    fill(tokens_, limit_.tokens, now);
    last_ = now;
    if ((limit_.requests && requests_ < 1.0) || (limit_.tokens && tokens_ < tokens)) return false;
    requests_ -= 1.0;
    tokens_ -= tokens;
    return true;
  }

 private:
  double most(const std::optional<PerSecond>& rate) const {
    return rate ? std::max(1.0, rate->base() * limit_.burst.base()) : 0.0;
  }
  void fill(double& level, const std::optional<PerSecond>& rate, Seconds now) const {
    if (rate) level = std::min(most(rate), level + rate->base() * (now - last_).base());
  }

  RateLimit limit_;
  double requests_, tokens_;
  Seconds last_{};
};

/// Thinking tokens are generated before an answer and paid for, but later turns do not send them again.
struct ThinkingSpec {
  LengthSpec tokens;
  int budget = 0;  ///< at most this many; 0: no limit
  int draw(Random& random) const { return held(tokens.draw(random)); }
  int held(int thought) const { return budget > 0 ? std::min(budget, thought) : thought; }
};

}  // namespace roofcast
