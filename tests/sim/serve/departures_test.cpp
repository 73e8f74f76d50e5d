#include "sim/serve/departures.h"

#include <doctest/doctest.h>

#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

struct Parts {
  Slot run(int prompt, int output) {  ///< a sequence that has its first token
    const Slot slot = fake::add(requests, prompt, output);
    all.queue.send(SimTime(0), slot);
    all.queue.push(all.queue.take_arrival());
    all.queue.pop();
    all.batch.enter(slot);
    all.kv.admit(slot, {}, all.kv.bytes(prompt), 0);
    requests[slot].base = prompt;
    requests[slot].produced = 1;
    all.batch.join_decodes(slot);
    return slot;
  }
  RequestTable requests;
  fake::LinearPricer pricer;
  Collector collector{{}, nullptr};
  std::shared_ptr<Deployment> deployment = fake::deployment(160);
  TokenDelivery delivery{deployment->engine, 1, 1.0, pricer, collector};
  RankParts all{deployment, 0, {}, requests, collector, delivery};
  Departures departures{all};
};

}  // namespace

TEST_CASE("departures: a suspended sequence keeps its tokens and frees its cache") {
  Parts parts;
  const Slot slot = parts.run(16, 10);
  parts.all.kv.take(parts.all.batch.growth(3));
  parts.all.batch.advance(3);
  CHECK(parts.all.kv.room() == 160 - 32);
  CHECK(parts.departures.suspend(slot) == 19);
  CHECK(parts.requests[slot].produced == 4);
  CHECK(parts.all.kv.room() == 160);
  CHECK(parts.all.batch.running() == 0);
}

TEST_CASE("departures: a cancelled request leaves with the step, unless it has ended with it") {
  Parts parts;
  const Slot runs = parts.run(16, 10), ends = parts.run(16, 10);
  parts.departures.cancel(runs);
  parts.departures.cancel(ends);
  CHECK(parts.departures.due());
  std::vector<EndedRequest> ended{{ends, SimTime(5)}};
  parts.requests[ends].phase = Phase::kEnded;
  parts.departures.drop_cancelled(ended);
  REQUIRE(ended.size() == 2);
  CHECK(ended[1].slot == runs);
  CHECK(parts.requests[runs].phase == Phase::kEnded);
  CHECK(parts.all.queue.prompt_tokens() == 16);  // the other's
  CHECK_FALSE(parts.departures.due());
}

TEST_CASE("departures: a cancelled request whose cache is in transfer stays until that has arrived") {
  Parts parts;
  const Slot slot = fake::add(parts.requests, 16, 10);
  parts.requests[slot].base = 16;
  parts.all.batch.enter(slot);
  parts.departures.cancel(slot);
  CHECK_FALSE(parts.departures.due());
  std::vector<EndedRequest> ended;
  parts.departures.drop_cancelled(ended);
  CHECK(ended.empty());
  parts.all.batch.join_decodes(slot);  // landed
  CHECK(parts.departures.due());
}

TEST_CASE("departures: after a failure all requests leave in order, to be recomputed") {
  Parts parts;
  const Slot runs = parts.run(16, 10), waits = fake::add(parts.requests, 20, 5),
             comes = fake::add(parts.requests, 30, 5);
  parts.all.queue.send(SimTime(0), waits);
  parts.all.queue.send(SimTime(0), comes);
  parts.all.queue.push(parts.all.queue.take_arrival());
  parts.departures.fail();
  std::vector<Slot> out;
  parts.departures.evacuate(SimTime(7), out);
  CHECK(out == std::vector<Slot>{runs, waits, comes});
  CHECK(parts.requests[runs].target == 16 + 1);  // the prompt and the token that it has had
  CHECK(parts.all.kv.room() == 160);
  CHECK(parts.all.queue.prompt_tokens() == 0);
  CHECK_FALSE(parts.departures.failed());
}

TEST_CASE("departures: requests that wait for caches of a lost replica are withdrawn") {
  Parts parts;
  const Slot of_lost = fake::add(parts.requests, 20, 5), of_other = fake::add(parts.requests, 30, 5);
  for (const Slot slot : {of_lost, of_other}) {
    parts.requests[slot].remote = true;
    parts.requests[slot].source = slot == of_lost ? 1 : 2;
    parts.all.queue.send(SimTime(0), slot);
  }
  std::vector<Slot> out;
  parts.departures.withdraw(1, out);
  CHECK(out == std::vector<Slot>{of_lost});
  CHECK(parts.all.queue.prompt_tokens() == 30);
}
