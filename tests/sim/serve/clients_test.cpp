// Several kinds of clients in one workload.
#include <doctest/doctest.h>

#include <array>
#include <set>

#include "base/config_node.h"
#include "sim/step/deployment.h"
#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

WorkloadSpec parse(const std::string& text) {
  return parse_workload(ConfigReader(parse_config_text(text, "w"), "a workload"));
}

std::string error_of(const std::string& text) {
  try {
    (void)parse(text);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "no error";
}

constexpr const char* kTwo = R"({duration: 1000 s, clients: [
  {name: chat, arrivals: {process: poisson, rate: 3 /s}, prompt_tokens: 64, output_tokens: 20, turns: 3, priority: 1},
  {name: batch, arrivals: {process: constant, rate: 1 /s}, prompt_tokens: 100, output_tokens: 5,
   shared_prefix_tokens: 32}]})";

}  // namespace

TEST_CASE("clients: requests come in order of arrival, each kind at its rate") {
  const WorkloadSpec w = parse(kTwo);
  REQUIRE(w.clients.size() == 2);
  const auto source = make_source(w, 3);
  Request r;
  Seconds last{};
  std::array<int, 2> seen{};
  std::int64_t id = 0;
  std::array<std::set<int>, 2> sessions;
  std::set<std::uint64_t> chat, batch;
  while (source->next(r)) {
    REQUIRE(r.arrival >= last);
    REQUIRE(r.id == id++);
    last = r.arrival;
    ++seen[static_cast<std::size_t>(r.client)];
    REQUIRE(r.priority == (r.client == 0 ? 1 : 0));
    if (r.client == 1) REQUIRE(r.prompt_tokens == 100);
    sessions[static_cast<std::size_t>(r.client)].insert(r.session);
    (r.client == 0 ? chat : batch).insert(r.prefix_blocks.begin(), r.prefix_blocks.end());
  }
  CHECK(seen[0] == doctest::Approx(3000).epsilon(0.06));
  CHECK(seen[1] == 1000);
  CHECK(sessions[1] == std::set<int>{-1});
  CHECK(sessions[0].size() > 900);  // three turns each
  CHECK(batch.size() == 2);         // 32 shared tokens of 16 a block
  for (const std::uint64_t hash : batch) CHECK(chat.count(hash) == 0);
}

TEST_CASE("clients: the number of requests counts all kinds") {
  WorkloadSpec w = parse(kTwo);
  w.requests = 500;
  const auto source = make_source(w, 3);
  Request r;
  int count = 0;
  while (source->next(r)) ++count;
  CHECK(count == 500);
}

TEST_CASE("clients: results of the kinds add up to the total") {
  WorkloadSpec w = parse(kTwo);
  w.duration = Seconds(100);
  const auto d = fake::deployment(100000);
  d->engine.prefix_caching = true;
  const ServingMetrics m = simulate(d, w, fake::options());
  REQUIRE(m.clients.size() == 2);
  CHECK(m.clients[0].completed + m.clients[1].completed == m.completed);
  CHECK(m.clients[1].completed == 100);
  CHECK(m.clients[1].output_tokens == 500);
  CHECK(m.clients[0].input_tokens + m.clients[1].input_tokens == m.input_tokens);
  CHECK(m.clients[0].ttft_ms.count() + m.clients[1].ttft_ms.count() == m.ttft_ms.count());
  CHECK(m.cached_tokens > 0);
}

TEST_CASE("clients: invalid settings are refused") {
  CHECK(error_of("{clients: [], duration: 1 s}").find("'clients' must list 1 to 10000") != std::string::npos);
  CHECK(error_of("{clients: [{arrivals: {process: poisson, rate: 1 /s}, prompt_tokens: 1, output_tokens: 1}]}")
            .find("needs 'requests' or 'duration'") != std::string::npos);
  CHECK(error_of("{clients: [{arrivals: {process: closed_loop, concurrency: 2}, prompt_tokens: 1, output_tokens: 1}], "
                 "requests: 5}")
            .find("must be poisson, gamma or constant") != std::string::npos);
  CHECK(error_of("{clients: [{prompt_tokens: 1, output_tokens: 1}], requests: 5}").find("'arrivals'") !=
        std::string::npos);
  CHECK(error_of("{clients: [{arrivals: {process: poisson, rate: 1 /s}, prompt_tokens: 1, output_tokens: 1}], "
                 "prompt_tokens: 3, requests: 5}")
            .find("each of 'clients' has its own 'prompt_tokens'") != std::string::npos);
}
