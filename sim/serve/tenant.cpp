#include "sim/serve/tenant.h"

namespace roofcast {

RateLimit parse_rate_limit(ConfigReader in) {
  RateLimit limit;
  const auto rate = [&](const char* key) -> std::optional<PerSecond> {
    if (!in.has(key)) return std::nullopt;
    const PerSecond value = in.rate(key);
    if (value <= PerSecond(0)) in.fail(key, "must be more than 0");
    return value;
  };
  limit.requests = rate("requests");
  limit.tokens = rate("tokens");
  if (!limit.requests && !limit.tokens) in.fail("", "a rate limit needs 'requests', 'tokens' or both");
  limit.burst = in.time("burst", limit.burst);
  if (limit.burst < Seconds(0)) in.fail("burst", "must be at least 0 s");
  in.finish();
  return limit;
}

}  // namespace roofcast
