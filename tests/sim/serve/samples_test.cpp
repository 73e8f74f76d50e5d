// Several sequences that answer one prompt.
#include "sim/serve/samples.h"

#include <doctest/doctest.h>

#include "sim/step/deployment.h"
#include "tests/base/messages.h"
#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

/// Requests of one prompt each, with other sequences of these lengths.
fake::Requests asking(int prompt, std::vector<int> outputs) {
  fake::Requests source;
  source.add(0, prompt, outputs.front());
  source.all().back().sibling_outputs.assign(outputs.begin() + 1, outputs.end());
  return source;
}

struct Played {
  ServingMetrics metrics;
  fake::Recorder seen;
};

Played play(fake::Requests source, int returned, bool cached, double room = 10000) {
  const auto d = fake::deployment(room);
  d->engine.prefix_caching = cached;
  WorkloadSpec workload;
  workload.samples.generated = 1 + static_cast<int>(source.all().front().sibling_outputs.size());
  workload.samples.returned = returned;
  Played out;
  out.metrics = simulate(d, source, workload, fake::options(), &out.seen);
  return out;
}

double prefilled(const Played& p) {
  double tokens = 0;
  for (const StepRecord& step : p.seen.steps) tokens += static_cast<double>(step.prefill_tokens);
  return tokens;
}

}  // namespace

TEST_CASE("sequences of one prompt share its blocks, and the client receives their tokens") {
  // 100 tokens: 96 in six blocks of 16, which three more sequences find; each computes the last 4 again.
  const Played p = play(asking(100, {10, 20, 30, 40}), 4, true);
  CHECK(prefilled(p) == 100 + 3 * 4);
  CHECK(p.metrics.completed == 1);
  CHECK(p.metrics.output_tokens == 100);
  CHECK(p.metrics.input_tokens == 100);
  CHECK(p.metrics.dropped_sample_tokens == 0);
  const RequestRecord r = p.seen.requests.at(0);
  CHECK(r.output_tokens == 100);
  CHECK(r.tpot().base() == doctest::Approx(((r.e2el - r.ttft) / 39.0).base()));
}

TEST_CASE("without a prefix cache every sequence prefills the prompt") {
  CHECK(prefilled(play(asking(100, {10, 20, 30, 40}), 4, false)) == 400);
}

TEST_CASE("of the best of four the client has a quarter, at the end") {
  const Played p = play(asking(100, {10, 20, 30, 40}), 1, true);
  CHECK(p.metrics.output_tokens == 25);
  CHECK(p.metrics.sample_tokens == 100);
  CHECK(p.metrics.dropped_sample_tokens == 75);
  const RequestRecord r = p.seen.requests.at(0);
  CHECK(r.ttft == r.e2el);
}

TEST_CASE("one sequence is a plain request") {
  fake::Requests plain, one = asking(100, {10});
  plain.add(0, 100, 10);
  fake::Recorder seen;
  simulate(fake::deployment(10000), plain, {}, fake::options(), &seen);
  const Played p = play(std::move(one), 1, false);
  CHECK(p.seen.requests.at(0).e2el == seen.requests.at(0).e2el);
  CHECK(p.seen.requests.at(0).ttft == seen.requests.at(0).ttft);
}

TEST_CASE("sequences that find no room wait or are preempted, and all end") {
  // Room for two of 100 + 40 tokens that share nothing.
  const Played p = play(asking(100, {40, 40, 40, 40}), 4, false, 300);
  CHECK(p.metrics.completed == 1);
  CHECK(p.metrics.output_tokens == 160);
}

TEST_CASE("a prompt is refused if its longest sequence exceeds the cache") {
  CHECK(play(asking(100, {40, 300, 40}), 3, true, 400).metrics.completed == 1);
  const Played p = play(asking(100, {40, 301, 40}), 3, true, 400);
  CHECK(p.metrics.completed == 0);
  CHECK(p.metrics.too_long[static_cast<std::size_t>(TooLong::kCache)] == 1);
}

TEST_CASE("a user of a closed loop goes on when all sequences have ended") {
  fake::Requests source;
  for (int i = 0; i < 3; ++i) {
    source.add(0, 32, 10);
    source.all().back().sibling_outputs = {50};
  }
  WorkloadSpec workload = fake::closed_loop(1);
  workload.samples.generated = workload.samples.returned = 2;
  fake::Recorder seen;
  const ServingMetrics m = simulate(fake::deployment(10000), source, workload, fake::options(), &seen);
  CHECK(m.completed == 3);
  CHECK(seen.requests[1].arrival >= seen.requests[0].arrival + seen.requests[0].e2el);
}

TEST_CASE("samples: n, the best of several, beams") {
  const auto parse = [](const std::string& text) {
    return parse_samples(ConfigReader(parse_config_text(text, "w.yaml")));
  };
  const auto refused = [&](const std::string& text) { return message_of([&] { parse(text); }); };
  CHECK(parse("{n: 4}").generated == 4);
  CHECK(parse("{n: 4}").returned == 4);
  CHECK(!parse("{n: 1}").several());
  CHECK(parse("{n: 1, best_of: 8}").generated == 8);
  CHECK(parse("{n: 1, best_of: 8}").returned == 1);
  CHECK(parse("{beam_width: 4}").beams);
  CHECK(parse("{beam_width: 4}").returned == 1);
  CHECK(refused("{n: 4, best_of: 2}") == "w.yaml:1:5: 'n': 4 responses cannot be chosen from 2 sequences");
  CHECK(refused("{beam_width: 4, best_of: 8}").find("leave out 'best_of'") != std::string::npos);
  CHECK(refused("{n: 0}") != "");
}
