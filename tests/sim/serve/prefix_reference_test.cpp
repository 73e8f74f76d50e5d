// Prefix caching against a cache of whole token sequences: slow, obvious, and written apart from the simulator.
#include <doctest/doctest.h>

#include <algorithm>
#include <list>
#include <set>

#include "sim/serve/sessions.h"
#include "sim/step/deployment.h"
#include "tests/scenarios.h"
#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

using Tokens = std::vector<int>;

struct Case {
  int block = 16;
  std::vector<int> windows;  ///< of each group of layers; 0 keeps every token
  bool states = false, at_ends = false;
  int state_step = 0;
};

/// Remembers the text of every block of every group of layers, and of every state that was left behind.
class ReferenceCache {
 public:
  explicit ReferenceCache(const Case& c) : case_(c), blocks_(c.windows.size()) {}

  /// The longest head of whole blocks that leaves a token to compute and that every layer can go on from.
  int find(const Tokens& prompt) {
    const int most = (static_cast<int>(prompt.size()) - 1) / case_.block * case_.block;
    without_states_ = most;
    while (without_states_ > 0 && !layers_have(prompt, without_states_)) without_states_ -= case_.block;
    int found = without_states_;
    while (found > 0 && !(layers_have(prompt, found) && has_state(prompt, found))) found -= case_.block;
    return found;
  }

  /// A sequence of which `prompt` tokens were the prompt and whose first `found` were found.
  void keep(const Tokens& sequence, int prompt, int found) {
    const int computed = static_cast<int>(sequence.size()) - 1;  // the last token is never read
    for (std::size_t g = 0; g < blocks_.size(); ++g) {
      for (int end = case_.block; end <= computed; end += case_.block) blocks_[g].insert(head(sequence, end));
    }
    if (!case_.states) return;
    const int step = case_.state_step;
    if (!case_.at_ends) {
      for (int at = step; at <= computed; at += step) states_.insert(head(sequence, at));
      return;
    }
    states_.insert(head(sequence, prompt / step * step));
    states_.insert(head(sequence, computed / step * step));
    if (found < without_states_) states_.insert(head(sequence, without_states_ / step * step));
  }

 private:
  static Tokens head(const Tokens& all, int n) { return {all.begin(), all.begin() + n}; }
  bool layers_have(const Tokens& prompt, int tokens) const {
    for (std::size_t g = 0; g < blocks_.size(); ++g) {
      const int window = case_.windows[g];
      const int back = window == 0 ? tokens : (window - 1 + case_.block - 1) / case_.block * case_.block;
      for (int end = tokens; end > std::max(0, tokens - back); end -= case_.block) {
        if (!blocks_[g].contains(head(prompt, end))) return false;
      }
    }
    return true;
  }
  bool has_state(const Tokens& prompt, int tokens) const {
    return !case_.states || states_.contains(head(prompt, tokens));
  }

  Case case_;
  std::vector<std::set<Tokens>> blocks_;
  std::set<Tokens> states_;
  int without_states_ = 0;
};

/// Requests of groups that share a prefix, one at a time; some go on as conversations.
struct Load {
  std::vector<Request> requests;
  std::vector<Tokens> prompts, sequences;
};

Load random_load(Random& random, int requests) {
  Load load;
  const auto pick = [&](int low, int high) { return static_cast<int>(random.uniform_integer(low, high)); };
  const int shared = pick(1, 150), groups = pick(1, 3);
  const bool turns = random.uniform() < 0.5;
  int next_token = 1000;
  struct Conversation {
    Session session;
    Tokens text;
  };
  std::vector<Conversation> conversations;
  for (int i = 0; i < requests; ++i) {
    const auto group = static_cast<std::uint64_t>(pick(0, groups - 1));
    Conversation fresh{{.id = i, .group = group}, {}};
    for (int t = 0; t < shared; ++t) fresh.text.push_back(static_cast<int>(group) * 200 + t);
    Conversation* at = &fresh;
    if (turns && !conversations.empty() && random.uniform() < 0.6)
      at = &conversations[static_cast<std::size_t>(pick(0, static_cast<int>(conversations.size()) - 1))];
    if (at != &fresh && at->session.parent < 0 && random.uniform() < 0.5) {  // it goes on as two others
      at->session.history = static_cast<int>(at->text.size());
      const Conversation other{at->session.branch(1000 + i), at->text};
      at->session = at->session.branch(i);
      conversations.push_back(other);
      at = &conversations.back();
    }
    Tokens text = at->text;
    const int added = pick(turns ? 1 : -shared + 1, 100), output = pick(1, 60);
    if (added < 0) text.resize(static_cast<std::size_t>(shared + added));  // a prompt shorter than what is shared
    for (int t = 0; t < added; ++t) text.push_back(next_token++);
    const int prompt = static_cast<int>(text.size());
    load.prompts.push_back(text);
    for (int t = 0; t < output; ++t) text.push_back(next_token++);
    load.sequences.push_back(text);
    Request r;
    r.id = i;
    r.arrival = Seconds(10.0 * i);
    r.prompt_tokens = prompt;
    r.output_tokens = output;
    write_prefix(at->session, shared, turns ? prompt + output : std::min(shared, prompt), r);
    load.requests.push_back(r);
    at->text = text;
    if (turns && at == &fresh) conversations.push_back(fresh);
  }
  return load;
}

std::shared_ptr<Deployment> deployment_of(const Case& c, double tokens) {
  auto d = fake::deployment(tokens);
  d->engine.prefix_caching = true;
  d->engine.block_size = c.block;
  d->memory.layout.groups.clear();
  for (const int window : c.windows)
    d->memory.layout.groups.push_back({.bytes_per_token = Bytes(1), .window = static_cast<double>(window)});
  if (c.states) {
    d->memory.layout.state_per_sequence = Bytes(7);
    d->engine.state_checkpoints = c.at_ends ? "ends" : "blocks";
    d->memory.state_block = c.state_step;
  }
  return d;
}

}  // namespace

TEST_CASE("prefix caching: 1,000 random loads find what a cache of whole texts finds") {
  Random random(42);
  const auto pick = [&](std::initializer_list<int> values) {
    return values.begin()[random.uniform_integer(0, static_cast<std::int64_t>(values.size()) - 1)];
  };
  std::int64_t found_in_all = 0;
  for (int n = 0; n < scenarios(1000); ++n) {
    Case c{.block = pick({1, 1, 2, 5, 8, 16, 16, 32, 48, 64, 128}), .windows = {}};
    const int kind = pick({0, 1, 2, 3, 4});
    if (kind != 1) c.windows.push_back(0);
    if (kind == 1 || kind == 2) c.windows.push_back(static_cast<int>(random.uniform_integer(2, 160)));
    if (kind == 2) c.windows.push_back(static_cast<int>(random.uniform_integer(2, 160)));
    c.states = kind >= 3;
    c.at_ends = kind == 4;
    c.state_step = c.at_ends ? std::max(64, c.block) : c.block * pick({1, 2, 3});
    if (c.states && c.state_step % c.block != 0) continue;  // engines keep states at multiples of their blocks
    const Load load = random_load(random, 12);
    ReferenceCache reference(c);
    fake::Requests source(load.requests);
    fake::Recorder seen;
    simulate(deployment_of(c, 1e6), source, {}, fake::options(), &seen);
    for (std::size_t i = 0; i < load.requests.size(); ++i) {
      const int expected = reference.find(load.prompts[i]);
      reference.keep(load.sequences[i], static_cast<int>(load.prompts[i].size()), expected);
      found_in_all += expected;
      INFO(n, " request ", i, " block ", c.block, " kind ", kind, " step ", c.state_step);
      REQUIRE(seen.requests[static_cast<std::int64_t>(i)].cached_tokens == expected);
    }
  }
  CHECK(found_in_all > 100000);
}

namespace {

/// Blocks of the prompts alone, the least recently used out first, a tail before its head.
class SmallReference {
 public:
  SmallReference(int block, int room) : block_(block), room_(room) {}

  int find(const Tokens& prompt) const {
    int found = 0;
    const int most = (static_cast<int>(prompt.size()) - 1) / block_ * block_;
    while (found < most && at({prompt.begin(), prompt.begin() + found + block_}) != order_.end()) found += block_;
    return found;
  }
  /// While it runs the sequence holds all of its blocks; of these the first `known` tokens stay behind. A block that
  /// it has computed again is one with that which was there.
  void run(const Tokens& sequence, int prompt, int known, int found) {
    std::list<Tokens> held;
    for (int end = block_; end <= found; end += block_) {
      const auto there = at({sequence.begin(), sequence.begin() + end});
      held.splice(held.end(), order_, there);
    }
    make_room(prompt);
    for (int end = found + block_; end <= known; end += block_) {
      const auto there = at({sequence.begin(), sequence.begin() + end});
      if (there != order_.end()) order_.erase(there);
      held.push_back({sequence.begin(), sequence.begin() + end});
    }
    make_room(static_cast<int>(sequence.size()) - 1);
    order_.insert(order_.end(), held.rbegin(), held.rend());
  }

 private:
  void make_room(int tokens) {
    while (static_cast<int>(order_.size()) + (tokens + block_ - 1) / block_ > room_) order_.pop_front();
  }
  std::list<Tokens>::iterator at(const Tokens& text) { return std::find(order_.begin(), order_.end(), text); }
  std::list<Tokens>::const_iterator at(const Tokens& text) const {
    return std::find(order_.begin(), order_.end(), text);
  }
  int block_, room_;
  std::list<Tokens> order_;
};

}  // namespace

TEST_CASE("prefix caching: with little memory the least recently used blocks leave first") {
  Random random(7);
  for (int n = 0; n < scenarios(300); ++n) {
    const Case c{.block = n % 2 == 0 ? 16 : 32, .windows = {0}};
    Load load = random_load(random, 25);
    // Blocks of the shared prefixes alone stay; nothing is known of what follows.
    int longest = 0, shared = 1 << 30;
    for (const Tokens& s : load.sequences) longest = std::max(longest, static_cast<int>(s.size()));
    for (Request& r : load.requests) {
      r.session = -1;
      shared = std::min(shared, r.prefix_tokens);
    }
    const int room = (longest + c.block - 1) / c.block + static_cast<int>(random.uniform_integer(0, 6));
    SmallReference reference(c.block, room);
    fake::Requests source(load.requests);
    fake::Recorder seen;
    simulate(deployment_of(c, room * c.block), source, {}, fake::options(), &seen);
    for (std::size_t i = 0; i < load.requests.size(); ++i) {
      const int expected = reference.find(load.prompts[i]);
      const int known = std::min(load.requests[i].prefix_tokens, static_cast<int>(load.sequences[i].size()) - 1);
      reference.run(load.sequences[i], load.requests[i].prompt_tokens, known / c.block * c.block, expected);
      INFO(n, " request ", i, " block ", c.block, " room ", room);
      REQUIRE(seen.requests[static_cast<std::int64_t>(i)].cached_tokens == expected);
    }
  }
}

TEST_CASE("host memory: if large enough, a small GPU cache finds what an unlimited one finds") {
  Random random(17);
  std::int64_t copied = 0;
  for (int n = 0; n < scenarios(200); ++n) {
    Case c{.block = std::vector{1, 5, 16, 32, 48, 64}[static_cast<std::size_t>(random.uniform_integer(0, 5))],
           .windows = {0}};
    if (random.uniform() < 0.3) c.windows.push_back(33);
    const Load load = random_load(random, 20);
    int longest = 0;
    for (const Tokens& s : load.sequences) longest = std::max(longest, static_cast<int>(s.size()));
    const auto layers = static_cast<double>(c.windows.size());
    const auto found_in = [&](double memory, double host, ServingMetrics* metrics) {
      const auto d = deployment_of(c, memory);
      d->engine.kv_offload = Bytes(host);
      fake::Requests source(load.requests);
      fake::Recorder seen;
      const ServingMetrics m = simulate(d, source, {}, fake::options(), &seen);
      if (metrics != nullptr) *metrics = m;
      std::vector<int> found;
      for (const auto& [id, r] : seen.requests) found.push_back(r.cached_tokens);
      return found;
    };
    ServingMetrics m;
    const std::vector<int> endless = found_in(1e7, 0, nullptr),
                           little = found_in(layers * (longest + 2.0 * c.block), 1e7, &m);
    copied += static_cast<std::int64_t>(m.offload_loaded_tokens);
    for (std::size_t i = 0; i < endless.size(); ++i) {
      INFO(n, " request ", i, " block ", c.block, " windows ", c.windows.size());
      REQUIRE(little[i] % c.block == 0);
      REQUIRE(little[i] == endless[i]);
    }
  }
  CHECK(copied > 10000);
}

TEST_CASE("tiers: if large enough, a small GPU cache finds what an unlimited one finds, in whole blocks") {
  Random random(23);
  std::int64_t loaded = 0;
  for (int n = 0; n < scenarios(200); ++n) {
    const Case c{.block = std::vector{1, 5, 16, 32, 48, 64}[static_cast<std::size_t>(random.uniform_integer(0, 5))],
                 .windows = {0}};
    const bool beside_host = random.uniform() < 0.3;
    const Load load = random_load(random, 20);
    int longest = 0;
    for (const Tokens& s : load.sequences) longest = std::max(longest, static_cast<int>(s.size()));
    const auto d = deployment_of(c, longest + 2.0 * c.block);
    if (beside_host) d->engine.kv_offload = Bytes(200);
    d->engine.kv_tiers = {{.name = "near", .capacity = Bytes(300), .bandwidth = BytesPerSecond(1e6)},
                          {.name = "far", .capacity = Bytes(1e7), .bandwidth = BytesPerSecond(1e6)}};
    fake::Requests source(load.requests);
    fake::Recorder seen;
    loaded += static_cast<std::int64_t>(simulate(d, source, {}, fake::options(), &seen).tier_tokens);
    ReferenceCache reference(c);
    for (std::size_t i = 0; i < load.requests.size(); ++i) {
      const int expected = reference.find(load.prompts[i]);
      reference.keep(load.sequences[i], static_cast<int>(load.prompts[i].size()), expected);
      INFO(n, " request ", i, " block ", c.block, " host ", beside_host);
      REQUIRE(seen.requests[static_cast<std::int64_t>(i)].cached_tokens == expected);
    }
  }
  CHECK(loaded > 10000);
}
