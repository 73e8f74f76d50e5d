#pragma once
// An independent reference engine with continuous batching: it runs step by step, and visits every
// sequence in each.

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>
#include <vector>

#include "tests/sim/serve/fake.h"

namespace roofcast::reference {

struct Rules {
  bool prompts_first = false;   ///< prompts in steps of their own, ahead of the sequences that decode
  double reserved = 0;          ///< share of the output that must have room before a request starts
  bool fewest_outputs = false;  ///< of the decoding ones that with the fewest tokens is preempted, and waits last
  bool swap = false;            ///< caches of the preempted go to host memory; false: they are computed again
  bool chunks = true;           ///< prompts are cut to what is left of the budget
  bool whole_prompt = false;    ///< a prompt starts when all of it has room
  int budget = 64, places = 4, block = 16, slot = 0;
  int window = 0, window_bytes = 0;  ///< tokens, and bytes of each of them, of layers that see a window
  int drafts = 0;                    ///< of a decoding sequence in each step, all of them accepted or none
  bool accepted = false;
  double draft_time = 0;  ///< s, of all drafts of a step
  double capacity = 0, free_share = 0;
  fake::StepLaw law;
  bool hands_over = false;                        ///< prompts decode elsewhere, which fetches their caches
  double link_rate = 0, link_latency = 0;         ///< B/s and s, of caches that it fetches
  double copy_fixed = 10e-6, copy_rate = 0.85e6;  ///< s and B/s, of a copy to host memory or back
};

struct Sequence {
  double arrival = 0;
  int prompt = 0, output = 0;
  int computed = 0;  ///< tokens in its cache
  int taken = 0;     ///< tokens for which it has room
  int target = 0;    ///< tokens of its prompt, and of what it had before it was preempted
  int produced = 0, preempted = 0;
  double reserve = 0;
  bool decodes = false, away = false;    ///< away: its cache is in host memory
  bool remote = false, landing = false;  ///< its cache is where it was prefilled; is under way
  double started = -1, first = -1, end = -1, lands = 0;
};

/// Bytes that so many tokens need where nothing is rounded up.
inline double filled_of(const Rules& r, int tokens) { return tokens + r.window_bytes * std::min(tokens, r.window); }

inline double room_of(const Rules& r, int tokens) {
  if (r.block == 0) return filled_of(r, r.slot);
  int all = 0, windowed = 0;  // blocks; of a window those that it touches
  for (int at = 0; at < tokens; at += r.block) ++all;
  for (int at = 0; at < r.window; at += r.block) ++windowed;
  return r.block * (all + r.window_bytes * std::min(all, windowed + 1));
}

class Engine {
 public:
  explicit Engine(const Rules& rules) : rules_(rules) {}

  void submit(Sequence& s) { waiting_.push_back(&s); }
  bool busy() const { return busy_; }
  double due() const { return due_; }  ///< while busy: the end of the step
  /// Plans a step; it is busy where anybody runs.
  void start(double now) {
    now_ = now;
    plan();
    busy_ = !decoding_.empty() || !chunks_.empty();
    if (busy_) begin_step();
  }
  /// The step ends; returns the prompts that go elsewhere to decode.
  std::vector<Sequence*> finish() {
    busy_ = false;
    return end_step();
  }
  /// The cache of a prompt that decodes elsewhere was sent.
  void release(const Sequence& s) { sending_ -= room(s.prompt), sending_filled_ -= fills(s.prompt); }
  /// When the next cache lands; infinite without one.
  double next_landing() const {
    double first = INFINITY;
    for (const Sequence* s : running_) {
      if (s->landing) first = std::min(first, s->lands);
    }
    return first;
  }
  double held = 0, filled = 0;  ///< byte-seconds

 private:
  double room(int tokens) const { return room_of(rules_, tokens); }
  double fills(int tokens) const { return filled_of(rules_, tokens); }
  /// Tokens of a decoding sequence with those that its next step may write.
  int after_step(const Sequence& s) const { return std::min(s.computed + 1 + rules_.drafts, s.prompt + s.output); }
  /// Of all that run, with what each decoding sequence is about to write.
  double used() const {
    double sum = sending_;
    for (const Sequence* s : running_) sum += room(steps_ && s->decodes ? after_step(*s) : s->taken);
    return sum;
  }
  double margin() const { return running_.empty() ? 0 : std::floor(rules_.free_share * rules_.capacity); }

  void plan() {
    decoding_.clear();
    chunks_.clear();
    moved_ = 0;
    someone_left_ = false;
    for (Sequence* s : running_) {
      if (s->landing && s->lands <= now_) s->landing = false, s->decodes = true;
    }
    steps_ = !rules_.prompts_first;
    if (steps_) make_room();
    int left = rules_.budget - (steps_ ? count_decoding() * (1 + rules_.drafts) : 0);
    if (go_on(left) && !someone_left_) start(left);
    if (rules_.prompts_first && chunks_.empty()) {
      steps_ = true;
      make_room();
    }
    for (Sequence* s : running_) {
      if (steps_ && s->decodes) decoding_.push_back(s);
    }
  }
  int count_decoding() const {
    return static_cast<int>(std::count_if(running_.begin(), running_.end(), [](Sequence* s) { return s->decodes; }));
  }
  void make_room() {
    while (used() > rules_.capacity) preempt();
  }
  /// The youngest whose cache is not under way, or of two or more that decode the one with the fewest tokens.
  std::size_t victim() const {
    std::size_t at = running_.size() - 1;
    while (running_[at]->landing) --at;
    if (!rules_.fewest_outputs || rules_.drafts > 0 || count_decoding() < 2) return at;
    const Sequence* last = nullptr;
    for (std::size_t i = 0; i < running_.size(); ++i) {
      const Sequence* s = running_[i];
      if (!s->decodes) continue;
      const bool fewer = last == nullptr || s->produced < last->produced ||
                         (s->produced == last->produced && s->prompt >= last->prompt);
      if (fewer) last = s, at = i;
    }
    return at;
  }
  void preempt() {
    const std::size_t at = victim();
    Sequence& s = *running_[at];
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(at));
    ++s.preempted;
    someone_left_ = true;
    if (rules_.swap) {
      s.away = true;
      moved_ += room(s.computed);
      if (s.decodes) s.target = s.computed;
    } else {
      s.computed = 0;
      s.target = s.prompt + s.produced;
    }
    s.decodes = false;
    s.taken = 0;
    rules_.fewest_outputs ? waiting_.push_back(&s) : waiting_.push_front(&s);
  }

  /// Prompts under way, the oldest first. False: one of them has to wait.
  bool go_on(int& left) {
    const std::vector<Sequence*> then = running_;
    for (Sequence* s : then) {
      if (left <= 0) return true;
      if (s->decodes || s->landing) continue;
      if (std::find(running_.begin(), running_.end(), s) == running_.end()) continue;
      const int tokens = rules_.chunks ? std::min(left, s->target - s->computed) : s->target - s->computed;
      while (used() - room(s->taken) + room(s->computed + tokens) > rules_.capacity) {
        if (rules_.prompts_first && count_decoding() > 0) return false;
        preempt();
        if (running_.empty() || std::find(running_.begin(), running_.end(), s) == running_.end()) return false;
      }
      s->taken = s->computed + tokens;
      chunks_.push_back({s, tokens});
      left -= tokens;
    }
    return true;
  }

  void start(int left) {
    while (!waiting_.empty() && static_cast<int>(running_.size()) < rules_.places && left > 0) {
      Sequence& s = *waiting_.front();
      const int missing = s.target - s.computed;
      const int tokens = rules_.chunks ? std::min(left, missing) : missing;
      if (tokens > left && !(chunks_.empty() && s.produced > 0)) return;
      double needed = room(rules_.whole_prompt ? s.target : s.computed + tokens);
      if ((s.away || s.remote) && missing == 0) needed = std::max(needed, room(after_step(s)));  // for its next step
      if (used() + needed + margin() > rules_.capacity) return;
      const double share = s.preempted > 0 && rules_.reserved > 0 ? 1.0 : rules_.reserved;
      if (share > 0) {
        // The last token is never read again, but it is verified.
        const int output = static_cast<int>(std::ceil(share * s.output)) - (rules_.drafts > 0 ? 0 : 1);
        double others = 0;
        for (const Sequence* r : running_) others += r->reserve;
        s.reserve = std::max(room(s.computed + tokens), room(std::max(s.target, s.prompt + std::max(0, output))));
        if (others + s.reserve + margin() > rules_.capacity) return;
      }
      waiting_.pop_front();
      running_.push_back(&s);
      if (s.started < 0) s.started = now_;
      if (s.away) moved_ += room(s.computed);
      s.away = false;
      s.taken = s.computed + tokens;
      left -= tokens;
      if (s.remote) {
        s.remote = false;
        s.landing = true;
        link_free_ = std::max(link_free_, now_) + room(s.computed) / rules_.link_rate;
        s.lands = link_free_ + rules_.link_latency;
        s.first = s.lands;
      } else if (missing == 0) {
        s.decodes = true;
      } else {
        chunks_.push_back({&s, tokens});
      }
    }
  }

  void begin_step() {
    double tokens = static_cast<double>(decoding_.size()) * (1 + rules_.drafts), context = 0;
    for (const auto& chunk : chunks_) tokens += chunk.second;
    for (const Sequence* s : decoding_) context += s->computed;
    double time = rules_.law.fixed + rules_.law.token * tokens + rules_.law.context * context;
    if (moved_ > 0) time += rules_.copy_fixed + moved_ / rules_.copy_rate;
    if (!decoding_.empty()) time += rules_.draft_time;
    due_ = now_ + time;
    time_ = time;
  }

  std::vector<Sequence*> end_step() {
    now_ = due_;
    for (Sequence* s : decoding_) {
      const int more = std::min(1 + (rules_.accepted ? rules_.drafts : 0), s->output - s->produced);
      s->computed += more, s->produced += more, s->taken += more;
    }
    for (const auto& [s, n] : chunks_) s->computed += n;
    held += time_ * sending_, filled += time_ * sending_filled_;
    for (const Sequence* s : running_) held += time_ * room(s->taken), filled += time_ * fills(s->computed);
    for (const auto& [s, n] : chunks_) {
      if (s->computed < s->target) continue;
      ++s->produced;
      s->decodes = true;
      if (s->first < 0) s->first = now_;
    }
    std::vector<Sequence*> elsewhere;
    std::erase_if(running_, [&](Sequence* s) {
      const bool done = s->produced >= s->output, leaves = rules_.hands_over && s->produced == 1;
      if (done) s->end = now_;
      if (leaves && !done) {
        elsewhere.push_back(s);
        sending_ += room(s->prompt);
        sending_filled_ += fills(s->prompt);
        s->decodes = false;
        s->remote = true;
      }
      return done || leaves;
    });
    return elsewhere;
  }

  Rules rules_;
  std::deque<Sequence*> waiting_;
  std::vector<Sequence*> running_;  ///< by admission
  std::vector<Sequence*> decoding_;
  std::vector<std::pair<Sequence*, int>> chunks_;
  bool steps_ = false, someone_left_ = false, busy_ = false;
  double now_ = 0, moved_ = 0, time_ = 0, due_ = 0, link_free_ = 0;
  double sending_ = 0, sending_filled_ = 0;  ///< bytes and tokens of caches that wait to be fetched
};

/// Requests in the order of their arrival, to the last answer.
inline void run_alone(Engine& engine, std::vector<Sequence>& all) {
  double now = 0;
  for (std::size_t next = 0;;) {
    for (; next < all.size() && all[next].arrival <= now; ++next) engine.submit(all[next]);
    engine.start(now);
    if (engine.busy()) {
      now = engine.due();
      (void)engine.finish();
    } else if (next < all.size()) {
      now = std::max(now, all[next].arrival);
    } else {
      return;
    }
  }
}

/// One engine prefills, the other fetches the caches and decodes. False: two of their events were less than a
/// nanosecond apart, so that rounding of the times decides which is first.
inline bool run_apart(Engine& prefill, Engine& decode, std::vector<Sequence>& all) {
  std::deque<Sequence*> sent;  // in the order of their landing
  std::size_t next = 0;
  bool ordered = true;
  for (;;) {
    double now = INFINITY;
    if (next < all.size()) now = all[next].arrival;
    if (prefill.busy()) now = std::min(now, prefill.due());
    if (decode.busy()) now = std::min(now, decode.due());
    if (!decode.busy()) now = std::min(now, decode.next_landing());
    for (const Sequence* s : sent) {
      if (s->lands > 0) now = std::min(now, s->lands);
    }
    if (now == INFINITY) return ordered;
    const double ends[] = {prefill.busy() ? prefill.due() : -1, decode.busy() ? decode.due() : -2,
                           decode.next_landing()};
    for (std::size_t i = 0; i < 3; ++i) ordered = ordered && !(std::abs(ends[i] - ends[(i + 1) % 3]) < 1e-9);
    bool wake_prefill = false, wake_decode = decode.next_landing() <= now;
    for (; next < all.size() && all[next].arrival <= now; ++next) prefill.submit(all[next]), wake_prefill = true;
    std::erase_if(sent, [&](const Sequence* s) {
      const bool landed = s->lands > 0 && s->lands <= now;
      if (landed) prefill.release(*s), wake_prefill = true;
      return landed;
    });
    if (prefill.busy() && prefill.due() <= now) {
      for (Sequence* s : prefill.finish()) decode.submit(*s), sent.push_back(s), wake_decode = true;
      wake_prefill = true;
    }
    if (decode.busy() && decode.due() <= now) {
      (void)decode.finish();
      wake_decode = true;
    }
    if (wake_decode && !decode.busy()) decode.start(now);
    if (wake_prefill && !prefill.busy()) prefill.start(now);
  }
}

}  // namespace roofcast::reference
