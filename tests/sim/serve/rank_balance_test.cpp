#include "sim/serve/rank_balance.h"

#include <doctest/doctest.h>

#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

/// Two ranks with one decoding sequence each.
struct Ranks {
  Ranks() {
    deployment->sharding.attention_dp = 2;
    deployment->engine.attention_dp_balance = true;
    deployment->engine.prefill_wait_steps = 10;
    for (RankParts* rank : {&first, &second}) {
      const Slot slot = fake::add(requests, 10, 50);
      rank->batch.enter(slot);
      rank->batch.join_decodes(slot);
    }
  }
  RankBalance balance() const { return {*deployment, true}; }
  std::shared_ptr<Deployment> deployment = fake::deployment(10000);
  RequestTable requests;
  fake::LinearPricer pricer;
  Collector collector{{}, nullptr};
  TokenDelivery delivery{deployment->engine, 2, 1.0, pricer, collector};
  RankParts first{deployment, 0, {}, requests, collector, delivery};
  RankParts second{deployment, 1, {}, requests, collector, delivery};
  std::vector<const RankParts*> both{&first, &second};
};

}  // namespace

TEST_CASE("rank balance: prompts are held until every rank has one") {
  Ranks r;
  const RankBalance balance = r.balance();
  CHECK(balance.active());
  CHECK_FALSE(balance.holds(r.both));  // nobody waits
  r.first.queue.push(fake::add(r.requests, 10, 50));
  CHECK(balance.holds(r.both));
  r.second.queue.push(fake::add(r.requests, 10, 50));
  CHECK_FALSE(balance.holds(r.both));
}

TEST_CASE("rank balance: a cache that comes back is no prompt") {
  Ranks r;
  r.first.queue.push(fake::add(r.requests, 10, 50));
  const Slot back = fake::add(r.requests, 10, 50);
  r.requests[back].remote = true;
  r.requests[back].base = r.requests[back].target = 10;
  r.second.queue.push(back);
  CHECK(r.balance().holds(r.both));
}

TEST_CASE("rank balance: held prompts run all the same after so many steps") {
  Ranks r;
  RankBalance balance = r.balance();
  r.first.queue.push(fake::add(r.requests, 10, 50));
  balance.advance(7);
  CHECK(balance.steps_until_release() == 3);
  CHECK(balance.holds(r.both));
  balance.advance(3);
  CHECK_FALSE(balance.holds(r.both));
  balance.prefilled();  // the wait begins anew
  CHECK(balance.holds(r.both));
}
