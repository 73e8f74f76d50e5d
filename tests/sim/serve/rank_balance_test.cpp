#include "sim/serve/rank_balance.h"

#include <doctest/doctest.h>

#include <array>

#include "sim/step/deployment.h"
#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

/// Of ranks that wait ten steps for each other's prompts, then `more` for more of them.
RankBalance balance(int more = 0) {
  const auto deployment = fake::deployment(10000);
  deployment->sharding.attention_dp = 2;
  deployment->engine.attention_dp_balance = true;
  deployment->engine.prefill_wait_steps = 10;
  deployment->engine.prefill_batch_steps = more;
  return {*deployment, true};
}

constexpr RankWork kDecodes{.decodes = true, .prompt = false}, kPrompt{.decodes = true, .prompt = true};
constexpr std::array kNone{kDecodes, kDecodes}, kOne{kPrompt, kDecodes}, kBoth{kPrompt, kPrompt};

}  // namespace

TEST_CASE("rank balance: prompts are held until every rank has one") {
  RankBalance ranks = balance();
  CHECK(ranks.active());
  CHECK_FALSE(ranks.holds(kNone));  // nobody waits
  CHECK(ranks.holds(kOne));
  CHECK_FALSE(ranks.holds(kBoth));
  CHECK_FALSE(ranks.holds(std::array{kPrompt, RankWork{}}));  // the second has nothing else to do
}

TEST_CASE("rank balance: held prompts run in the tenth step after prompts last ran") {
  RankBalance ranks = balance();
  CHECK_FALSE(ranks.holds(kBoth));
  ranks.advance(1);
  CHECK(ranks.holds(kOne));
  CHECK(ranks.steps_until_release() == 9);
  ranks.advance(7);
  CHECK(ranks.holds(kOne));
  CHECK(ranks.steps_until_release() == 2);
  ranks.advance(2);
  CHECK_FALSE(ranks.holds(kOne));
  ranks.advance(1);
  CHECK(ranks.holds(kOne));  // the wait begins anew
}

TEST_CASE("rank balance: once every rank has a prompt, all wait for more of them") {
  RankBalance ranks = balance(3);
  CHECK(ranks.holds(kOne));
  ranks.advance(5);
  CHECK(ranks.holds(kBoth));
  CHECK(ranks.steps_until_release() == 3);
  ranks.advance(2);
  CHECK(ranks.holds(kBoth));
  ranks.advance(1);
  CHECK_FALSE(ranks.holds(kBoth));
  ranks.advance(1);
  CHECK(ranks.holds(kBoth));                                                                   // the next ones
  CHECK_FALSE(ranks.holds(std::array{kPrompt, RankWork{true, true}, RankWork{false, true}}));  // no decode waits there
}
