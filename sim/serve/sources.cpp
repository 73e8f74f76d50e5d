// Sources of requests: distributions or traces.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "base/error.h"
#include "sim/serve/arrivals.h"
#include "sim/serve/servegen.h"
#include "sim/serve/sessions.h"
#include "sim/serve/sim_time.h"
#include "sim/serve/traces.h"

namespace roofcast {
namespace {

using Process = ArrivalSpec::Process;

/// Random streams of one seed: changing the arrivals does not change the lengths.
enum Stream : std::uint64_t { kArrivals, kPrompts, kOutputs, kGroups, kPriorities, kSiblings, kThinking, kSends };

std::int64_t most_requests(const WorkloadSpec& workload) {
  if (workload.requests == 0) return std::numeric_limits<std::int64_t>::max();
  return workload.requests + workload.warmup_requests;
}

/// The priority of the next request.
int draw_priority(const std::vector<double>& shares, Random& random) {
  if (shares.empty()) return 0;
  double left = random.uniform();
  for (std::size_t i = 0; i + 1 < shares.size(); ++i) {
    if ((left -= shares[i]) < 0) return static_cast<int>(i);
  }
  return static_cast<int>(shares.size()) - 1;
}

/// Number of sessions open at once. A closed loop has one per user. In an open load of `rate` requests/s, all but the
/// first of a session's n requests arrive think_time after the previous one, so by Little's law rate * (n - 1) / n *
/// think_time sessions are pausing.
std::int64_t open_sessions(const WorkloadSpec& workload) {
  const ArrivalSpec& arrivals = workload.arrivals;
  if (arrivals.process == Process::kClosedLoop) return arrivals.concurrency;
  const double requests = mean_session_requests(workload), followed = (requests - 1.0) / requests;
  const double open = std::round(arrivals.rate.base() * followed * arrivals.think_time.base());
  return static_cast<std::int64_t>(std::clamp(open, 1.0, 1e8));
}

/// Requests drawn from distributions.
class DrawnSource final : public RequestSource {
 public:
  DrawnSource(const WorkloadSpec& workload, std::uint64_t seed)
      : workload_(workload),
        most_(most_requests(workload)),
        timed_(workload.arrivals.process != Process::kClosedLoop && workload.duration.has_value()),
        clock_(workload.arrivals, Random(seed).fork(kArrivals), workload.start),
        prompts_(Random(seed).fork(kPrompts)),
        outputs_(Random(seed).fork(kOutputs)),
        dealer_(workload, open_sessions(workload), workload.arrivals.process != Process::kClosedLoop,
                Random(seed).fork(kGroups)),
        priorities_(Random(seed).fork(kPriorities)),
        siblings_(Random(seed).fork(kSiblings)),
        thoughts_(Random(seed).fork(kThinking)) {
    if (workload.arrivals.process == Process::kAllAtOnce && workload.arrivals.send_delay > Seconds(0))
      delay_sends(Random(seed).fork(kSends));
  }

  bool next(Request& request) override {
    if (!begin(request)) return false;
    fill(request, dealer_.take());
    return true;
  }

  bool next_after(int session, Request& request) override {
    if (workload_.turns == 1) return next(request);
    if (!begin(request)) return false;
    fill(request, dealer_.take(session));
    return true;
  }

 private:
  bool begin(Request& request) {
    if (sent_ == most_) return false;
    request.arrival = delays_.empty() ? clock_.next() : delays_[static_cast<std::size_t>(sent_)];
    if (timed_ && request.arrival >= *workload_.duration) {
      sent_ = most_;
      return false;
    }
    request.id = sent_++;
    return true;
  }

  void delay_sends(Random random) {
    SIM_CHECK(workload_.requests > 0, "as many requests as are sent at once");
    delays_.resize(static_cast<std::size_t>(most_));
    for (Seconds& delay : delays_)
      delay = draw_pause(workload_.arrivals.send_delay, workload_.arrivals.send_delays, random);
    std::sort(delays_.begin(), delays_.end());
  }

  RequestLengths lengths_of(const Request& request) {
    if (workload_.listed) {
      const auto counted = std::max<std::int64_t>(0, request.id - workload_.warmup_requests);
      return (*workload_.listed)[static_cast<std::size_t>(counted) % workload_.listed->size()];
    }
    if (const auto& changing = workload_.by_time) {
      const std::size_t window = changing->at(workload_.start + request.arrival);
      return {changing->prompt[window].draw(prompts_), changing->output[window].draw(outputs_)};
    }
    return {workload_.prompt_tokens.draw(prompts_), workload_.output_tokens.draw(outputs_)};
  }

  /// Draws the other sequences of the prompt; beams have equal length.
  void draw_siblings(Request& request) {
    request.sibling_outputs.clear();
    const SampleSpec& samples = workload_.samples;
    for (int i = 1; i < samples.generated; ++i)
      request.sibling_outputs.push_back(samples.beams ? request.output_tokens
                                                      : workload_.output_tokens.draw(siblings_));
  }

  void fill(Request& request, Session session) {
    const RequestLengths added = lengths_of(request);
    request.thinking_tokens = workload_.thinking ? workload_.thinking->draw(thoughts_) : 0;
    const int answer = added.output_tokens - workload_.output_tokens.extra;
    request.output_tokens = answer + request.thinking_tokens;
    request.prompt_tokens = session.history + added.prompt_tokens;
    request.priority = draw_priority(workload_.priorities, priorities_);
    request.session = workload_.turns > 1 ? session.id : -1;
    request.root_session = workload_.turns > 1 ? session.root() : -1;
    draw_siblings(request);
    const int shared = workload_.shared_prefix_tokens;
    const int all_tokens = request.prompt_tokens + request.output_tokens;
    // The next turn sends the answer without the thinking tokens, so the cached answer cannot be reused.
    const int known = request.thinking_tokens > 0 ? request.prompt_tokens : all_tokens;
    write_prefix(session, shared, workload_.turns > 1 ? known : std::min(shared, request.prompt_tokens), request);
    session.history = request.prompt_tokens + answer;
    ++session.turns_done;
    --session.turns_left;
    dealer_.give_back(session);
  }

  WorkloadSpec workload_;
  std::int64_t most_;
  bool timed_;
  ArrivalClock clock_;
  Random prompts_, outputs_;
  SessionDealer dealer_;
  Random priorities_, siblings_, thoughts_;
  std::vector<Seconds> delays_;  ///< of requests that are sent at once, in order; empty: none
  std::int64_t sent_ = 0;
};

/// Requests of a trace. Prompts differ between the passes of a loop, so that no pass finds an earlier one in a prefix
/// cache.
class TraceSource final : public RequestSource {
 public:
  TraceSource(const WorkloadSpec& workload, std::uint64_t seed)
      : workload_(workload),
        most_(most_requests(workload)),
        kept_(workload.arrivals.trace ? workload.arrivals.trace
                                      : shared_trace(workload.arrivals.trace_file, workload.arrivals.trace_format)),
        trace_(*kept_),
        period_(trace_.period()),
        groups_(Random(seed).fork(kGroups)),
        priorities_(Random(seed).fork(kPriorities)) {
    if (workload.shared_prefix_tokens > 0 && trace_.block_tokens > 0) {
      throw ConfigError(SourceLocation{workload.arrivals.trace_file},
                        "has prefixes of its own (hash_ids): 'shared_prefix_tokens' must be 0");
    }
  }

  bool next(Request& request) override {
    if (sent_ == most_ || pass_ == workload_.arrivals.loop) return false;
    const Trace::Row& row = trace_.rows[at_];
    const Seconds in_trace = period_ * static_cast<double>(pass_) + Seconds(row.seconds);
    request.arrival = in_trace / workload_.arrivals.rate_scale;
    if (workload_.duration && request.arrival >= *workload_.duration) {
      sent_ = most_;
      return false;
    }
    request.id = sent_++;
    request.prompt_tokens = row.prompt_tokens;
    request.output_tokens = row.output_tokens;
    request.priority = draw_priority(workload_.priorities, priorities_);
    request.sibling_outputs.assign(static_cast<std::size_t>(workload_.samples.generated - 1), row.output_tokens);
    request.session = request.root_session = row.session < 0 ? -1 : row.session + pass_ * trace_.sessions;
    share(request, row);
    if (++at_ == trace_.rows.size()) {
      at_ = 0;
      ++pass_;
    }
    return true;
  }

 private:
  void share(Request& request, const Trace::Row& row) {
    if (workload_.shared_prefix_tokens > 0) {
      Session session;
      if (workload_.prefix_groups > 1) {
        session.group = static_cast<std::uint64_t>(groups_.uniform_integer(0, workload_.prefix_groups - 1));
      }
      const int shared = std::min(workload_.shared_prefix_tokens, row.prompt_tokens);
      return write_prefix(session, shared, shared, request);
    }
    const std::uint64_t salt = pass_ == 0 ? 0 : mix_bits(static_cast<std::uint64_t>(pass_));
    const auto first = trace_.block_hashes.begin() + static_cast<std::ptrdiff_t>(row.first_block);
    request.prefix_blocks.assign(first, first + row.blocks);
    for (std::uint64_t& hash : request.prefix_blocks) hash ^= salt;
    request.prefix_block_tokens = trace_.block_tokens;
    request.prefix_cut = request.prefix_branch = request.prefix_tokens = 0;
  }

  WorkloadSpec workload_;
  std::int64_t most_;
  std::shared_ptr<const Trace> kept_;
  const Trace& trace_;
  Seconds period_;
  Random groups_, priorities_;
  std::size_t at_ = 0;
  int pass_ = 0;
  std::int64_t sent_ = 0;
};

/// The requests of several kinds of clients in order of arrival.
class MixSource final : public RequestSource {
 public:
  MixSource(const WorkloadSpec& workload, std::uint64_t seed) : most_(most_requests(workload)) {
    for (std::size_t i = 0; i < workload.clients.size(); ++i) {
      WorkloadSpec client = workload.clients[i];
      client.duration = workload.duration;
      client.start = workload.start;
      Kind kind{std::make_unique<DrawnSource>(client, seed + 0x9e3779b97f4a7c15U * i), {}};
      if (kind.source->next(kind.head)) order_.emplace(kind.head.arrival, i);
      kinds_.push_back(std::move(kind));
    }
  }

  bool next(Request& request) override {
    if (sent_ == most_) return false;
    if (order_.empty()) return false;
    const std::size_t first = order_.top().second;
    order_.pop();
    Kind& kind = kinds_[first];
    std::swap(request, kind.head);
    if (kind.source->next(kind.head)) order_.emplace(kind.head.arrival, first);
    const auto client = static_cast<int>(first), kinds = static_cast<int>(kinds_.size());
    request.id = sent_++;
    request.client = client;
    for (int* session : {&request.session, &request.root_session})
      if (*session >= 0) *session = *session % (1 << 22) * kinds + client;
    for (std::uint64_t& hash : request.prefix_blocks) hash ^= mix_bits(first);  // nothing is shared between kinds
    return true;
  }

 private:
  struct Kind {
    std::unique_ptr<DrawnSource> source;
    Request head;
  };
  using Next = std::pair<Seconds, std::size_t>;  ///< next arrival of each kind; ties go to the first listed
  std::int64_t most_;
  std::vector<Kind> kinds_;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> order_;
  std::int64_t sent_ = 0;
};

/// A trace from `start` on, with renumbered requests and times from 0.
class CutSource final : public RequestSource {
 public:
  CutSource(const WorkloadSpec& workload, std::uint64_t seed) : start_(workload.start), most_(most_requests(workload)) {
    WorkloadSpec whole = workload;
    whole.start = Seconds(0);
    whole.requests = whole.warmup_requests = 0;
    if (whole.duration) whole.duration = *whole.duration + start_;
    source_ = std::make_unique<TraceSource>(whole, seed);
  }

  bool next(Request& request) override {
    if (sent_ == most_) return false;
    do {
      if (!source_->next(request)) return false;
    } while (request.arrival < start_);
    request.arrival -= start_;
    request.id = sent_++;
    return true;
  }

 private:
  std::unique_ptr<TraceSource> source_;
  Seconds start_;
  std::int64_t most_, sent_ = 0;
};

/// Rejects early what a simulation would only find at the end of its 100 days. Traces and mixes of clients check while
/// running.
void check_span(const WorkloadSpec& w) {
  const bool paced = w.arrivals.process == Process::kPoisson || w.arrivals.process == Process::kGamma ||
                     w.arrivals.process == Process::kConstant;
  if (!paced || !w.clients.empty() || w.requests == 0) return;
  const Seconds mean_span(static_cast<double>(most_requests(w)) / w.arrivals.rate.base());
  const Seconds span = w.duration ? std::min(mean_span, *w.duration) : mean_span;
  if (span.base() > 1.5 * SimTime::kLongest) static_cast<void>(SimTime::of(span));  // throws
}

}  // namespace

bool brings_prefixes(const WorkloadSpec& w) {
  if (!w.clients.empty()) return std::any_of(w.clients.begin(), w.clients.end(), brings_prefixes);
  if (w.shared_prefix_tokens > 0 || w.turns > 1) return true;
  if (w.arrivals.process != Process::kTrace) return false;
  const auto trace = w.arrivals.trace ? w.arrivals.trace : shared_trace(w.arrivals.trace_file, w.arrivals.trace_format);
  return !trace->block_hashes.empty();
}

std::unique_ptr<RequestSource> make_source(const WorkloadSpec& workload, std::uint64_t seed) {
  check_span(workload);
  if (!workload.clients.empty()) return std::make_unique<MixSource>(workload, seed);
  if (workload.start > Seconds(0)) return std::make_unique<CutSource>(workload, seed);
  if (workload.arrivals.process == Process::kTrace) return std::make_unique<TraceSource>(workload, seed);
  return std::make_unique<DrawnSource>(workload, seed);
}

}  // namespace roofcast
