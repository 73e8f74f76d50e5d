#include "sim/serve/router.h"

#include <doctest/doctest.h>

#include <set>

#include "base/error.h"

using namespace roofcast;

namespace {

struct View final : ReplicaView {
  std::vector<int> load;
  std::vector<std::int64_t> cached, tokens;
  int replicas() const override { return static_cast<int>(load.size()); }
  int outstanding(int i) const override { return load[static_cast<std::size_t>(i)]; }
  std::int64_t outstanding_tokens(int i) const override { return tokens[static_cast<std::size_t>(i)]; }
  std::int64_t cached_blocks(int i, const Request&) const override { return cached[static_cast<std::size_t>(i)]; }
};

View view(std::vector<int> load, std::vector<std::int64_t> cached) {
  View v;
  v.load = std::move(load);
  v.cached = std::move(cached);
  return v;
}

}  // namespace

TEST_CASE("routers: the choice of each") {
  const Request request;
  const View v = view({5, 2, 2}, {9, 0, 4});
  const auto round = make_router("round_robin");
  CHECK(round->pick(request, v) == 0);
  CHECK(round->pick(request, v) == 1);
  CHECK(round->pick(request, v) == 2);
  CHECK(round->pick(request, v) == 0);
  CHECK(make_router("least_loaded")->pick(request, v) == 1);
  CHECK(make_router("prefix_aware")->pick(request, v) == 0);
  CHECK(make_router("prefix_aware")->pick(request, view({500, 2, 2}, {9, 0, 4})) == 1);  // too far ahead of the idlest
}

TEST_CASE("routers: prefix_aware leaves the cache for the idlest beyond 64 requests and half as many more") {
  const auto pick = [](std::vector<int> load) {
    return make_router("prefix_aware")->pick(Request(), view(std::move(load), {9, 0}));
  };
  CHECK(pick({74, 10}) == 0);  // 64 more
  CHECK(pick({75, 10}) == 1);
  CHECK(pick({300, 200}) == 0);  // 1.5 times as many
  CHECK(pick({301, 200}) == 1);
  // Of replicas that cache as much the one with fewer requests, the first of equal ones.
  CHECK(make_router("prefix_aware")->pick(Request(), view({5, 3, 3, 1}, {9, 9, 9, 0})) == 1);
  CHECK(make_router("prefix_aware")->pick(Request(), view({4, 4, 4}, {0, 7, 7})) == 1);
}

TEST_CASE("routers: kv_aware weighs a replica's load against its cached part of the prompt") {
  Request request;
  request.prefix_block_tokens = 16;
  View v = view({1, 9, 1}, {0, 0, 40});  // requests do not count
  v.tokens = {5000, 900, 1500};
  CHECK(make_router("kv_aware")->pick(request, v) == 2);  // 1500 - 40 x 16 = 860
  v.cached[2] = 30;                                       // 1500 - 30 x 16 = 1020
  CHECK(make_router("kv_aware")->pick(request, v) == 1);
  v.tokens[0] = 900;  // as much as the second: the first of equal ones
  CHECK(make_router("kv_aware")->pick(request, v) == 0);
}

TEST_CASE("routers: adding a replica moves only its share of the sessions") {
  const auto router = make_router("consistent_hash");
  const View four = view({0, 0, 0, 0}, {0, 0, 0, 0}), five = view({0, 0, 0, 0, 0}, {0, 0, 0, 0, 0});
  int moved = 0;
  for (int session = 0; session < 1000; ++session) {
    Request request;
    request.session = session;
    const int before = router->pick(request, four), after = router->pick(request, five);
    CHECK((before == after || after == 4));
    moved += before != after ? 1 : 0;
  }
  CHECK(moved > 150);  // a fifth of them
  CHECK(moved < 250);
}

TEST_CASE("routers: consistent_hash keeps a session together, else what shares a first block, else spreads requests") {
  const auto router = make_router("consistent_hash");
  const View eight = view(std::vector<int>(8), std::vector<std::int64_t>(8));
  const auto replicas = [&](auto set) {
    std::set<int> seen;
    for (int i = 0; i < 100; ++i) {
      Request request;
      request.id = i;
      set(request, i);
      seen.insert(router->pick(request, eight));
    }
    return seen.size();
  };
  CHECK(replicas([](Request&, int) {}) == 8);
  CHECK(replicas([](Request& r, int i) { r.prefix_blocks = {7, static_cast<std::uint64_t>(i)}; }) == 1);
  CHECK(replicas([](Request& r, int i) { r.prefix_blocks = {static_cast<std::uint64_t>(i), 7}; }) == 8);
  CHECK(replicas([](Request& r, int i) {
          r.session = 0;
          r.prefix_blocks = {static_cast<std::uint64_t>(i)};
        }) == 1);
  CHECK(replicas([](Request& r, int i) {
          r.session = i;
          r.prefix_blocks = {7};
        }) == 8);
}

TEST_CASE("routers: an unknown name is a ConfigError") { CHECK_THROWS_AS(make_router("round_robbin"), ConfigError); }
