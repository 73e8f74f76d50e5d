#pragma once
// The arriving requests: when they come, their lengths, and the prefixes that they share.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_reader.h"
#include "base/units.h"
#include "sim/serve/length_spec.h"
#include "sim/serve/media.h"
#include "sim/serve/samples.h"
#include "sim/serve/tenant.h"

namespace roofcast {

/// Tokens per hash of a generated prefix. A cache still works in the engine's own blocks (KvPool).
inline constexpr int kPrefixBlock = 16;

struct Trace;

/// When requests arrive.
struct ArrivalSpec {
  enum class Process { kPoisson, kGamma, kConstant, kClosedLoop, kAllAtOnce, kTrace };
  Process process = Process::kAllAtOnce;
  PerSecond rate{};
  std::vector<double>
      profile{};  ///< the rate over a period, relative to `rate`: equal slices with mean 1; empty: constant
  Seconds profile_period{86400};
  /// The law of the gaps, with mean 1 / rate; of a gamma process that changes over time.
  struct Gaps {
    enum class Law { kExponential, kGamma, kWeibull };
    Law law = Law::kExponential;
    double shape = 1.0;
  };
  std::vector<Gaps> gaps{};  ///< by slice of the profile; empty: `cv` throughout
  double cv = 1.0;           ///< coefficient of variation of the gaps (gamma)
  int concurrency = 1;       ///< closed loop: most requests in flight
  Seconds think_time{};      ///< mean pause of a user before the next request (closed loop, sessions)
  /// The law of the pauses in milliseconds, with that mean: the time of tools that an agent calls. Null: exponential.
  std::optional<LengthSpec> pauses{};
  std::string trace_file;
  std::string trace_format;              ///< a name in trace_formats(); empty: recognised by its first line
  std::shared_ptr<const Trace> trace{};  ///< the file, if already read
  double rate_scale = 1.0;               ///< 2: the same pattern at twice the rate
  int loop = 1;                          ///< number of times the trace is played
};

/// How long a client waits, counted from sending, before it gives up.
struct Patience {
  std::optional<Seconds> first_token, total;
  bool endless() const { return !first_token && !total; }
};

struct LengthsByTime;

struct RequestLengths {
  int prompt_tokens = 1, output_tokens = 1;
};

struct WorkloadSpec {
  std::string name;
  ArrivalSpec arrivals;
  LengthSpec prompt_tokens, output_tokens;
  std::optional<ThinkingSpec> thinking;  ///< before each answer; its mean is included in output_tokens.extra
  std::optional<RateLimit> rate_limit;
  double guided = 0;                 ///< share of requests whose answers follow a grammar
  SampleSpec samples;                ///< answers per prompt
  std::vector<MediaSpec> media;      ///< with each request, beside its prompt
  std::vector<EncoderWork> encoded;  ///< their work for the model's encoders; the tokens are in prompt_tokens then
  std::int64_t requests = 0;         ///< requests that count; 0: by duration, or the whole trace
  std::optional<Seconds> duration;   ///< of arrivals; with both given, the first limit ends the run
  Seconds start{};  ///< of a trace or of clients: earlier requests are left out, and this becomes time 0
  std::int64_t warmup_requests = 0;  ///< sent first (the lowest ids), in addition to `requests`, not counted
  double prompt_text = 1.0;          ///< front-end time per prompt token, relative to plain text
  bool pause_after_warmup = true;    ///< closed loop: users start afresh after the warm-up, as in a benchmark
  Patience patience;
  std::vector<double> priorities;                ///< shares of requests of priority 0, 1, ..; empty: all 0
  int shared_prefix_tokens = 0;                  ///< leading tokens that all requests of a prefix group share
  int prefix_groups = 1;                         ///< different shared prefixes, drawn uniformly
  int turns = 1;                                 ///< requests of a session: each sends the whole history again
  std::optional<LengthSpec> turn_law;            ///< where sessions differ in them; `turns` are most then
  int branches = 1, branch_after = 0;            ///< into how many a session parts, and after how many turns
  std::shared_ptr<const LengthsByTime> by_time;  ///< in place of the two, where lengths change over the day
  /// In place of both, if not empty: lengths of the counted requests in turn. The laws still tell the longest.
  std::shared_ptr<const std::vector<RequestLengths>> listed;
  /// Several kinds of clients, each with arrivals (open), lengths and sharing of its own. Those of the whole workload
  /// are then unused, and arrivals.process is kTrace, because no single law gives the arrival times.
  std::vector<WorkloadSpec> clients;
  std::string cites;      ///< source of the parameters (`source:`)
  Mark mark;              ///< its position in the file
  ConfigTree objectives;  ///< limits that belong to the workload, as written in a scenario; or null
};
/// Mean turns of a session along one branch, and requests in all of them (of a law of turns: of 10,000 draws).
inline double mean_turns(const WorkloadSpec& w) { return w.turn_law ? w.turn_law->mean() : w.turns; }
double mean_session_requests(const WorkloadSpec& w);
/// Reads the `workload:` block of a scenario. Files are relative to the YAML that names them. With one turn the shared
/// prefix is part of prompt_tokens; with more, prompt_tokens is what each turn adds, and the prefix opens the session.
WorkloadSpec parse_workload(ConfigReader in);

/// One request. Prefix blocks are chained hashes of prefix_block_tokens leading tokens each: equal hashes mean equal
/// tokens up to there. Empty if nothing is shared. In sessions they continue into the output. The last block may be
/// partly empty.
struct Request {
  std::int64_t id = 0;
  Seconds arrival{};
  int prompt_tokens = 0;
  int output_tokens = 0;
  int session = -1, root_session = -1;  ///< the root: from which it has branched; -1: it has not
  int client = 0;                       ///< in WorkloadSpec::clients
  int priority = 0;                     ///< smaller runs first under `policy: priority`
  int adapter = 0;                      ///< from 1 on; 0: none
  int thinking_tokens = 0;              ///< of output_tokens, at their beginning
  std::vector<int> sibling_outputs;     ///< tokens of the other sequences that answer the prompt
  std::vector<std::uint64_t> prefix_blocks;
  int prefix_block_tokens = 0;  ///< tokens of one hash (512 in Mooncake's traces)
  /// Where a shared prefix ends inside a block, which is then two, and where a session has branched in one; 0: nowhere.
  int prefix_cut = 0, prefix_branch = 0;
  int prefix_tokens = 0;  ///< that the hashes cover; 0: their blocks, as far as the prompt goes
  int root() const { return root_session >= 0 ? root_session : session; }
};

/// Produces requests one at a time, so that ten million need no memory. Arrivals never decrease. In a closed loop
/// `arrival` is 0: the simulation sends the next request think_time after one ends (and ends the run itself if it has a
/// duration and no number of requests, because the source has no clock).
class RequestSource {
 public:
  virtual ~RequestSource() = default;
  virtual bool next(Request& request) = 0;  ///< false at the end; reuses the request's storage
  /// Closed loop: the next request of the user whose request of `session` has ended: the next turn, or a new session.
  virtual bool next_after(int session, Request& request) {
    static_cast<void>(session);
    return next(request);
  }
};
/// Whether requests may carry blocks that a prefix cache can find.
bool brings_prefixes(const WorkloadSpec& workload);
std::unique_ptr<RequestSource> make_source(const WorkloadSpec& workload, std::uint64_t seed);

/// Trace formats by name, with one line of help.
struct TraceFormat {
  std::string_view name, help;
};
std::span<const TraceFormat> trace_formats();

}  // namespace roofcast
