#include "sim/plan/search/sweep_crew.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "base/error.h"
#include "sim/plan/parallel.h"

namespace roofcast {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kNap{200};
constexpr std::size_t kMostPoints = 256;  // handed out at once

// A message is a letter and its fields, each as its length, a colon and its text.
enum Letter : char { kGo = 'g', kReady = 'q', kWork = 'w', kResults = 'r', kAlive = 'a', kHome = 's' };

std::string packed(char letter, const std::vector<std::string>& fields) {
  std::string out(1, letter);
  for (const std::string& field : fields) out += fmt::format("{}:{}", field.size(), field);
  return out;
}

std::vector<std::string> unpacked(const std::string& text) {
  std::vector<std::string> fields;
  for (std::size_t at = 1; at < text.size();) {
    const std::size_t colon = text.find(':', at);
    SIM_CHECK(colon != std::string::npos, "a message between ranks is whole");
    const std::size_t size = std::stoull(text.substr(at, colon - at));
    fields.push_back(text.substr(colon + 1, size));
    at = colon + 1 + size;
  }
  return fields;
}

std::string results_message(const std::vector<PointResult>& results) {
  std::vector<std::string> fields;
  for (const PointResult& r : results) {
    for (std::string field : {std::to_string(r.point), r.result, r.error, fmt::format("{}", r.seconds)})
      fields.push_back(std::move(field));
  }
  return packed(kResults, fields);
}

std::vector<PointResult> results_of(const std::string& message) {
  std::vector<std::string> fields = unpacked(message);
  SIM_CHECK(fields.size() % 4 == 0, "a message between ranks is whole");
  std::vector<PointResult> out;
  for (std::size_t i = 0; i < fields.size(); i += 4)
    out.push_back({std::stoull(fields[i]), fields[i + 1], fields[i + 2], std::stod(fields[i + 3])});
  return out;
}

/// Computes chunks in a thread of its own, on all the cores it may use.
class Bench {
 public:
  explicit Bench(SweepCrew::Compute compute) : compute_(std::move(compute)) {}
  ~Bench() {
    if (thread_.joinable()) thread_.join();
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  bool idle() const { return !busy_; }
  void start(std::vector<std::uint64_t> points) {
    if (thread_.joinable()) thread_.join();
    results_.assign(points.size(), {});
    busy_ = true;
    thread_ = std::thread([this, points = std::move(points)] {
      parallel_for_each_index(points.size(), [&](std::size_t i) { results_[i] = compute_(points[i]); });
      done_ = true;
    });
  }
  /// What was started last, once.
  std::optional<std::vector<PointResult>> finished() {
    if (!busy_ || !done_) return std::nullopt;
    thread_.join();
    busy_ = done_ = false;
    return std::move(results_);
  }

 private:
  SweepCrew::Compute compute_;
  std::thread thread_;
  std::vector<PointResult> results_;
  bool busy_ = false;
  std::atomic<bool> done_{false};
};

}  // namespace

PointResult run_one_point(const SweepSpec& sweep, std::uint64_t point, Fidelity fidelity, SpecCache& specs) {
  PointResult out{.point = point, .result = {}, .error = {}, .seconds = 0};
  const auto start = Clock::now();
  try {
    out.result = to_text(run_point(point_scenario(sweep, point), sweep.simulate, fidelity, specs));
  } catch (const ConfigError& e) {
    out.error = e.what();
  }
  out.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return out;
}

/// Who has what.
struct SweepCrew::State {
  std::deque<std::uint64_t> waiting;
  std::set<std::uint64_t> open;  ///< without a result
  std::map<int, std::vector<std::uint64_t>> given;
  std::set<int> free;  ///< ranks that asked for work
  std::map<int, Clock::time_point> heard;
  double seconds = 0, results = 0;
  std::size_t workers = 1;

  /// The next chunk: about so many seconds of work, and never so much that others run dry.
  std::vector<std::uint64_t> take(double chunk_seconds) {
    const double each = results > 0 ? std::max(seconds / results, 1e-6) : chunk_seconds / 4;
    const auto fair = std::max<std::size_t>(1, waiting.size() / (2 * workers));
    const auto wanted = static_cast<std::size_t>(std::clamp(chunk_seconds / each, 1.0, double{kMostPoints}));
    std::vector<std::uint64_t> out;
    while (!waiting.empty() && out.size() < std::min(fair, wanted)) {
      if (open.count(waiting.front()) > 0) out.push_back(waiting.front());
      waiting.pop_front();
    }
    return out;
  }
  /// Each result once, though two ranks may have been given the point.
  void accept(std::vector<PointResult> all, const OnResult& on_result) {
    for (PointResult& r : all) {
      if (open.erase(r.point) == 0) continue;
      seconds += r.seconds, ++results;
      on_result(std::move(r));
    }
  }
};

SweepCrew::SweepCrew(Ranks& ranks, CrewOptions options) : ranks_(ranks), options_(options) {}

SweepCrew::~SweepCrew() {
  for (int r = 1; r < ranks_.size(); ++r) ranks_.send(r, packed(kHome, {}));
  ranks_.leave(lost_ == 0);
}

int SweepCrew::lost() const { return lost_; }

void SweepCrew::call(State& state) {
  for (int r = 1; r < ranks_.size(); ++r) {
    ranks_.send(r, packed(kGo, {}));
    state.heard[r] = Clock::now();
  }
}

/// What the ranks have said since. True when nobody said anything.
bool SweepCrew::listen(State& state, const OnResult& on_result) {
  bool quiet = true;
  while (const std::optional<RankMessage> m = ranks_.poll()) {
    quiet = false;
    if (state.heard.count(m->from) == 0) continue;  // given up
    state.heard[m->from] = Clock::now();
    if (m->text[0] == kAlive) continue;
    if (m->text[0] == kResults) state.accept(results_of(m->text), on_result);
    state.given.erase(m->from);
    state.free.insert(m->from);
  }
  return quiet;
}

void SweepCrew::hand_out(State& state, int rank) {
  const std::vector<std::uint64_t> chunk = state.take(options_.chunk_seconds);
  if (chunk.empty()) return;
  std::vector<std::string> fields;
  for (std::uint64_t point : chunk) fields.push_back(std::to_string(point));
  ranks_.send(rank, packed(kWork, fields));
  state.given[rank] = chunk;
  state.free.erase(rank);
}

/// Points of ranks that were silent for too long wait again.
void SweepCrew::give_up_silent(State& state) {
  const auto now = Clock::now();
  for (auto at = state.heard.begin(); at != state.heard.end();) {
    if (now - at->second <= options_.silence) {
      ++at;
      continue;
    }
    for (std::uint64_t point : state.given[at->first]) state.waiting.push_back(point);
    state.given.erase(at->first);
    state.free.erase(at->first);
    at = state.heard.erase(at);
    ++lost_;
  }
}

void SweepCrew::run(const std::vector<std::uint64_t>& points, const Compute& compute, const OnResult& on_result,
                    const std::atomic<bool>& stop) {
  State state;
  state.waiting.assign(points.begin(), points.end());
  state.open.insert(points.begin(), points.end());
  state.workers = static_cast<std::size_t>(ranks_.size());
  if (!points.empty()) call(state);
  Bench bench(compute);
  while (!state.open.empty() && !(stop && bench.idle())) {
    const bool quiet = listen(state, on_result);
    if (auto results = bench.finished()) state.accept(std::move(*results), on_result);
    give_up_silent(state);
    const std::vector<int> free(state.free.begin(), state.free.end());
    for (const int rank : free) {
      if (!stop) hand_out(state, rank);
    }
    if (bench.idle() && !stop) {
      if (std::vector<std::uint64_t> chunk = state.take(options_.chunk_seconds); !chunk.empty())
        bench.start(std::move(chunk));
    }
    if (quiet) std::this_thread::sleep_for(kNap);
  }
}

void serve_sweep(Ranks& ranks, const std::function<SweepSpec()>& read, Fidelity fidelity, const CrewOptions& options) {
  std::optional<SweepSpec> sweep;
  SpecCache specs;
  Bench bench([&](std::uint64_t point) { return run_one_point(*sweep, point, fidelity, specs); });
  auto spoke = Clock::now();
  const auto say = [&](const std::string& text) {
    ranks.send(0, text);
    spoke = Clock::now();
  };
  for (;;) {
    const std::optional<RankMessage> m = ranks.poll();
    if (m && m->text[0] == kHome) break;
    if (m && m->text[0] == kGo) {
      sweep = read();
      say(packed(kReady, {}));
    }
    if (m && m->text[0] == kWork) {
      std::vector<std::uint64_t> points;
      for (const std::string& field : unpacked(m->text)) points.push_back(std::stoull(field));
      bench.start(std::move(points));
    }
    if (auto results = bench.finished()) say(results_message(*results));
    if (sweep && Clock::now() - spoke > options.heartbeat) say(packed(kAlive, {}));
    if (!m) std::this_thread::sleep_for(kNap);
  }
  ranks.leave(true);
}

}  // namespace roofcast
