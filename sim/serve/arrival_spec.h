#pragma once
// When requests arrive.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/units.h"
#include "sim/serve/length_spec.h"

namespace roofcast {

struct Trace;

struct ArrivalSpec {
  enum class Process { kPoisson, kGamma, kConstant, kClosedLoop, kAllAtOnce, kTrace };
  Process process = Process::kAllAtOnce;
  PerSecond rate{};
  std::vector<double> profile{};  ///< rate relative to `rate` in equal slices of a period, mean 1; empty: constant
  Seconds profile_period{86400};
  /// The distribution of the gaps, with mean 1 / rate; for gamma processes that change over time.
  struct Gaps {
    enum class Law { kExponential, kGamma, kWeibull };
    Law law = Law::kExponential;
    double shape = 1.0;
  };
  std::vector<Gaps> gaps{};  ///< per slice of the profile; empty: `cv` throughout
  double cv = 1.0;           ///< coefficient of variation of the gaps (gamma)
  int concurrency = 1;       ///< closed loop: maximum number of requests in flight
  Seconds think_time{};      ///< mean pause of a user before the next request (closed loop, sessions)
  /// The distribution of the pauses in ms, with mean think_time: for example tool calls of an agent. Null: exponential.
  std::optional<LengthSpec> pauses{};
  /// Closed loops and all at once: mean delay of every send, the first included, and its distribution in ms, as above.
  Seconds send_delay{};
  std::optional<LengthSpec> send_delays{};
  std::string trace_file;
  std::string trace_format;              ///< a name in trace_formats(); empty: recognised by its first line
  std::shared_ptr<const Trace> trace{};  ///< the file, if already read
  double rate_scale = 1.0;               ///< e.g. 2: the same pattern at twice the rate
  int loop = 1;                          ///< number of times the trace is played
  /// Mean time from an answer to the same user's next request.
  Seconds between_requests() const { return think_time + send_delay; }
};
/// A draw of times with this mean: exponential without a distribution (in ms).
Seconds draw_pause(Seconds mean, const std::optional<LengthSpec>& law, Random& random);

}  // namespace roofcast
