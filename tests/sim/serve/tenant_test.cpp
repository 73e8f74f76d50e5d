// Kinds of clients: limits, fair turns, thoughts.
#include "sim/serve/tenant.h"

#include <doctest/doctest.h>

#include "sim/step/deployment.h"
#include "tests/base/messages.h"
#include "tests/sim/serve/fake.h"

using namespace roofcast;

TEST_CASE("a rate limit lets a burst through, then its rate") {
  RateLimit limit;
  limit.requests = PerSecond(2);
  limit.burst = Seconds(2);
  TokenBuckets buckets(limit);
  int taken = 0;
  for (int i = 0; i < 10; ++i) taken += buckets.take(Seconds(0), 100) ? 1 : 0;
  CHECK(taken == 4);
  CHECK_FALSE(buckets.take(Seconds(0.4), 100));
  CHECK(buckets.take(Seconds(0.5), 100));  // one every half second
  CHECK_FALSE(buckets.take(Seconds(0.6), 100));
}

TEST_CASE("a limit of tokens counts prompts and answers") {
  RateLimit limit;
  limit.tokens = PerSecond(100);
  limit.burst = Seconds(10);
  TokenBuckets buckets(limit);
  CHECK(buckets.take(Seconds(0), 900));
  CHECK_FALSE(buckets.take(Seconds(0), 200));
  CHECK(buckets.take(Seconds(1), 200));
}

TEST_CASE("what is beyond the limit is rejected") {
  fake::Requests source;
  for (int i = 0; i < 10; ++i) source.add(0, 10, 2);
  WorkloadSpec workload;
  workload.rate_limit.emplace();
  workload.rate_limit->requests = PerSecond(1);
  workload.rate_limit->burst = Seconds(3);
  const ServingMetrics m = simulate(fake::deployment(10000), source, workload, fake::options());
  CHECK(m.completed == 3);
  CHECK(m.rejected == 7);
}

namespace {

/// Ten requests of client 0, then one of client 1; one runs at a time. When client 1's was answered, in requests.
double turn_of_second(const char* policy) {
  const auto d = fake::deployment(10000);
  d->engine.max_num_seqs = 1;
  fake::Requests source;
  for (int i = 0; i < 11; ++i) {
    source.add(i == 0 ? 0.0 : 1e-4, 10, 5);
    source.all().back().client = i == 10 ? 1 : 0;
  }
  WorkloadSpec workload;
  workload.clients.resize(2);
  ServingOptions options = fake::options();
  options.policy = policy;
  fake::Recorder seen;
  simulate(d, source, workload, options, &seen);
  int before = 0;
  for (const auto& [id, r] : seen.requests) {
    const auto& mine = seen.requests.at(10);
    before += id != 10 && r.arrival + r.e2el < mine.arrival + mine.e2el ? 1 : 0;
  }
  return before;
}

}  // namespace

TEST_CASE("fair: one request of another client does not wait for ten") {
  CHECK(turn_of_second("fcfs") == 10);
  // The first runs; then client 1 has had nothing, and client 0 its first.
  CHECK(turn_of_second("fair") == 1);
}

TEST_CASE("fair with one client is first come, first served") {
  for (const char* policy : {"fcfs", "fair"}) {
    fake::Requests source;
    for (int i = 0; i < 20; ++i) source.add(1e-4 * i, 10 + i, 5);
    const auto d = fake::deployment(10000);
    d->engine.max_num_seqs = 2;
    ServingOptions options = fake::options();
    options.policy = policy;
    fake::Recorder seen;
    simulate(d, source, {}, options, &seen);
    for (int i = 1; i < 20; ++i)
      CHECK(seen.requests.at(i).arrival + seen.requests.at(i).queue >=
            seen.requests.at(i - 1).arrival + seen.requests.at(i - 1).queue);
  }
}

TEST_CASE("limits of one kind of clients are counted for it alone") {
  fake::Requests source;
  source.add(0, 10, 5).add(1, 1000, 5);
  source.all()[1].client = 1;
  WorkloadSpec workload;
  workload.clients.resize(2);
  ServingOptions options = fake::options();
  options.client_objectives.resize(2);
  options.client_objectives[0].ttft = Seconds(5e-3);
  options.client_objectives[1].ttft = Seconds(5e-3);
  const ServingMetrics m = simulate(fake::deployment(10000), source, workload, options);
  CHECK(m.clients[0].good_requests == 1);  // 1 ms and 10 us for each of 10 tokens
  CHECK(m.clients[1].good_requests == 0);  // 11 ms
}

TEST_CASE("thoughts are generated, held to a budget, and not sent again") {
  WorkloadSpec w;
  w.arrivals.process = ArrivalSpec::Process::kClosedLoop;
  w.prompt_tokens.law = LengthSpec::Fixed{100};
  w.output_tokens.law = LengthSpec::Fixed{20};
  w.output_tokens.extra = 50;
  w.thinking.emplace();
  w.thinking->tokens.law = LengthSpec::Fixed{80};
  w.thinking->budget = 50;
  w.turns = 2;
  w.requests = 2;
  const auto source = make_source(w, 1);
  Request r;
  REQUIRE(source->next(r));
  CHECK(r.output_tokens == 70);
  CHECK(r.thinking_tokens == 50);
  const int session = r.session;
  REQUIRE(source->next_after(session, r));
  CHECK(r.prompt_tokens == 100 + 20 + 100);  // the first prompt, its answer, the second
}

TEST_CASE("the answer begins when the thoughts are out") {
  RequestRecord r;
  r.ttft = Seconds(1);
  r.e2el = Seconds(11);
  r.output_tokens = 101;
  r.thinking_tokens = 40;
  CHECK(r.ttfat().base() == doctest::Approx(1 + 40 * 0.1));
}

TEST_CASE("rate limit: requests, tokens, and what a burst may save up") {
  const auto parse = [](const std::string& text) {
    return parse_rate_limit(ConfigReader(parse_config_text(text, "w.yaml")));
  };
  const auto refused = [&](const std::string& text) { return message_of([&] { parse(text); }); };
  const RateLimit limit = parse("{requests: 60 /min, burst: 5 s}");
  CHECK(limit.requests == PerSecond(1.0));
  CHECK(!limit.tokens);
  CHECK(limit.burst == Seconds(5));
  CHECK(parse("{tokens: 600 /min}").burst == Seconds(60));
  CHECK(refused("{burst: 5 s}").find("needs 'requests', 'tokens' or both") != std::string::npos);
  CHECK(refused("{requests: 0 /s}") == "w.yaml:1:12: 'requests': must be more than 0");
}
