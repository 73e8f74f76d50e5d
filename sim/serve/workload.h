#pragma once
// The workload: arrival times, lengths, and shared prefixes.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_reader.h"
#include "base/units.h"
#include "sim/serve/arrival_spec.h"
#include "sim/serve/length_spec.h"
#include "sim/serve/media.h"
#include "sim/serve/samples.h"
#include "sim/serve/tenant.h"

namespace roofcast {

/// Tokens per hash of a generated prefix. The KV cache still uses the engine's own block size (KvPool).
inline constexpr int kPrefixBlock = 16;

/// How long a client waits after sending before it gives up.
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
  std::optional<ThinkingSpec> thinking;  ///< tokens before each answer; output_tokens.extra includes their mean
  std::optional<RateLimit> rate_limit;
  double guided = 0;                 ///< fraction of requests with guided decoding (a grammar)
  SampleSpec samples;                ///< answers per prompt
  std::vector<MediaSpec> media;      ///< media of each request, in addition to its prompt
  std::vector<EncoderWork> encoded;  ///< `media` as encoder work; prompt_tokens then includes their tokens
  std::int64_t requests = 0;         ///< counted requests; 0: limited by duration or the trace
  std::optional<Seconds> duration;   ///< of arrivals; with both given, the first limit ends the run
  Seconds start{};                   ///< traces and clients: earlier requests are dropped; this becomes time 0
  std::int64_t warmup_requests = 0;  ///< sent first (the lowest ids), in addition to `requests`, not counted
  double prompt_text = 1.0;          ///< front-end time per prompt token, relative to plain text
  bool pause_after_warmup = true;    ///< closed loop: users restart after the warm-up, as in a benchmark
  Patience patience;
  std::vector<double> priorities;                ///< fractions of requests with priority 0, 1, ..; empty: all 0
  int shared_prefix_tokens = 0;                  ///< leading tokens that all requests of a prefix group share
  int prefix_groups = 1;                         ///< number of distinct shared prefixes, drawn uniformly
  int turns = 1;                                 ///< requests per session; each sends the whole history again
  std::optional<LengthSpec> turn_distribution;   ///< distribution of turns per session; `turns` is then the maximum
  int branches = 1, branch_after = 0;            ///< a session splits into `branches` after `branch_after` turns
  std::shared_ptr<const LengthsByTime> by_time;  ///< replaces the two length distributions if they change over the day
  /// If not empty, the lengths of the counted requests in order. The distributions still give the maximum lengths.
  std::shared_ptr<const std::vector<RequestLengths>> listed;
  /// Several kinds of clients, each with its own (open) arrivals, lengths and sharing. Those of the whole workload are
  /// then unused, and arrivals.process is kTrace, because no single process gives the arrival times.
  std::vector<WorkloadSpec> clients;
  std::string cites;        ///< source of the parameters (`source:`)
  SourceLocation location;  ///< its position in the file
  ConfigTree objectives;    ///< objectives that belong to the workload, as in a scenario; or null
};
/// Mean turns per branch of a session. mean_session_requests: mean requests over all branches (by 10,000 draws).
inline double mean_turns(const WorkloadSpec& w) { return w.turn_distribution ? w.turn_distribution->mean() : w.turns; }
double mean_session_requests(const WorkloadSpec& w);
/// Reads the `workload:` block of a scenario. File paths are relative to the YAML that names them. With one turn,
/// prompt_tokens includes the shared prefix. With several, each turn adds prompt_tokens to that prefix.
WorkloadSpec parse_workload(ConfigReader in);

/// One request. `prefix_blocks` are chained hashes of prefix_block_tokens tokens each: equal hashes mean equal tokens
/// up to there. Empty if nothing is shared. In sessions the hashes continue into the output. The last block may be
/// partly filled.
struct Request {
  std::int64_t id = 0;
  Seconds arrival{};
  int prompt_tokens = 0;
  int output_tokens = 0;
  int session = -1, root_session = -1;  ///< root_session: the session from which it branched; -1: none
  int client = 0;                       ///< in WorkloadSpec::clients
  int priority = 0;                     ///< smaller runs first under `policy: priority`
  int adapter = 0;                      ///< from 1 on; 0: none
  int thinking_tokens = 0;              ///< part of output_tokens, at the start
  std::vector<int> sibling_outputs;     ///< tokens of the other sequences that answer the prompt
  std::vector<std::uint64_t> prefix_blocks;
  int prefix_block_tokens = 0;  ///< tokens per hash (512 in Mooncake's traces)
  /// Token position at which a shared prefix ends inside a block (which is then split), and at which the session
  /// branched inside a block; 0: none.
  int prefix_cut = 0, prefix_branch = 0;
  int prefix_tokens = 0;  ///< tokens that the hashes cover; 0: their blocks, limited by the prompt
  int root() const { return root_session >= 0 ? root_session : session; }
};

/// Produces requests one at a time, so that memory does not grow with their number. Arrival times never decrease. In a
/// closed loop `arrival` is 0: the simulation sends the next request think_time after one ends, and ends the run itself
/// if it is limited by duration.
class RequestSource {
 public:
  virtual ~RequestSource() = default;
  virtual bool next(Request& request) = 0;  ///< false at the end; reuses the request's storage
  /// Closed loop: the next request of the user whose request of `session` has ended (next turn, or a new session).
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
