#include "sim/serve/rank_balance.h"

#include <doctest/doctest.h>

#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

/// Two ranks of 100 tokens a step, with one decoding sequence each.
struct Ranks {
  Ranks() {
    deployment->sharding.attention_dp = 2;
    deployment->engine.attention_dp_balance = true;
    deployment->engine.prefill_wait_steps = 10;
    deployment->engine.max_num_batched_tokens = 100;
    for (const int rank : {0, 1}) {
      const Slot slot = on_rank(rank);
      batch.enter(slot);
      batch.join_decodes(slot);
    }
  }
  Slot on_rank(int rank) {
    const Slot slot = fake::add(requests, 10, 50);
    requests[slot].rank = static_cast<std::uint16_t>(rank);
    return slot;
  }
  std::shared_ptr<Deployment> deployment = fake::deployment(10000);
  RequestTable requests;
  KvLayout layout{deployment->memory.pooled(), 16, 0};
  Batch batch{requests, layout, false};
  RequestQueue queue{requests, QueuePolicy::kFcfs};
  RankBalance ranks() const { return {*deployment, true, 1, requests, queue, batch}; }
};

}  // namespace

TEST_CASE("rank balance: prompts are held until every rank has one") {
  Ranks r;
  const RankBalance ranks = r.ranks();
  CHECK(ranks.active());
  CHECK_FALSE(ranks.holds());  // nobody waits
  r.queue.push(r.on_rank(0));
  CHECK(ranks.holds());
  r.queue.push(r.on_rank(1));
  CHECK_FALSE(ranks.holds());
}

TEST_CASE("rank balance: held prompts run all the same after so many steps") {
  Ranks r;
  RankBalance ranks = r.ranks();
  r.queue.push(r.on_rank(0));
  ranks.advance(7);
  CHECK(ranks.steps_until_release() == 3);
  CHECK(ranks.holds());
  ranks.advance(3);
  CHECK_FALSE(ranks.holds());
  ranks.prefilled();  // the wait begins anew
  CHECK(ranks.holds());
}

TEST_CASE("rank balance: a request goes to the rank with the fewest") {
  Ranks r;
  r.queue.push(r.on_rank(0));
  const RankBalance ranks = r.ranks();
  std::vector<int> of_ranks;
  LiveRequest first, second;
  ranks.assign(first, of_ranks);
  ranks.assign(second, of_ranks);
  CHECK(first.rank == 1);
  CHECK(second.rank == 0);
  CHECK(of_ranks == std::vector<int>{3, 2});
}

TEST_CASE("rank balance: each rank has its own budget, less its decodes and chunks") {
  Ranks r;
  const RankBalance ranks = r.ranks();
  const std::vector<PlannedChunk> chunks{{r.on_rank(0), 30}, {r.on_rank(1), 20}, {r.on_rank(1), 25}};
  CHECK(ranks.room(chunks) == std::vector<std::int64_t>{100 - 1 - 30, 100 - 1 - 45});
  CHECK(ranks.fullest_prefill(chunks) == 45);
}
