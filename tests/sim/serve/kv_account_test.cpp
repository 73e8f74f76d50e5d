#include "sim/serve/kv_account.h"

#include <doctest/doctest.h>

#include "sim/step/deployment.h"
#include "tests/sim/serve/fake.h"

using namespace roofcast;

TEST_CASE("kv account: what is reserved cannot be reserved again") {
  const auto d = fake::deployment(64);
  RequestTable requests;
  KvAccount kv(*d, requests);
  const Slot slot = fake::add(requests, 16, 30);
  requests[slot].base = 16;
  kv.admit(slot, {}, 16, 40);  // takes one block and will need two more
  CHECK(kv.room() == 64 - 16);
  CHECK(kv.can_reserve(64 - 40, {}, 0));
  CHECK_FALSE(kv.can_reserve(64 - 40 + 1, {}, 0));
  CHECK_FALSE(kv.can_reserve(64 - 40, {}, 1));  // a byte is to stay free
  kv.release(slot, false);
  CHECK(kv.room() == 64);
  CHECK(kv.can_reserve(64, {}, 0));
}

TEST_CASE("kv account: blocks that become shared count once") {
  const auto d = fake::deployment(64);
  d->engine.prefix_caching = true;
  RequestTable requests;
  KvAccount kv(*d, requests);
  const Slot slot = fake::add(requests, 32, 10, {1, 2});
  requests[slot].base = 32;
  kv.admit(slot, {}, 32, 48);
  kv.publish_prompt(slot);
  CHECK(kv.private_bytes(requests[slot]) == 0);
  CHECK(kv.pool().pinned_bytes() == 32);
  CHECK(kv.can_reserve(64 - 48, {}, 0));  // 32 pinned and 16 reserved
  CHECK_FALSE(kv.can_reserve(64 - 48 + 1, {}, 0));
  kv.release(slot, false);
  CHECK(kv.pool().pinned_bytes() == 0);
  // The next one finds the first of both blocks; the one that holds its last token is computed again.
  CHECK(kv.look_up(fake::add(requests, 32, 10, {1, 2})).tokens == 16);
}

TEST_CASE("kv account: a step reserves memory for its decodes, and counts what it copies") {
  const auto d = fake::deployment(64);
  RequestTable requests;
  KvAccount kv(*d, requests);
  kv.set_step_growth(16);
  kv.move(10);
  kv.move(20);
  CHECK(kv.room() == 48);
  CHECK(kv.moved() == Bytes(30));
  kv.begin_step();
  CHECK(kv.room() == 64);
  CHECK(kv.moved() == Bytes(0));
}

TEST_CASE("kv account: blocks of all layers move to host memory, and return with what windows need") {
  // A token takes a byte in layers that keep all, 2 in those that see 32 tokens, 1 in those that see 64.
  const auto d = fake::deployment(1000);
  d->memory.layout.groups = {{Bytes(1), 0}, {Bytes(2), 32}, {Bytes(1), 64}};
  d->engine.prefix_caching = true;
  d->engine.kv_offload = Bytes(1e6);
  const std::vector<std::uint64_t> hashes{1000, 2000, 3000, 4000};
  RequestTable requests;
  KvAccount kv(*d, requests);
  const Slot first = fake::add(requests, 64, 10, hashes);
  requests[first].base = 64;
  kv.admit(first, {}, kv.bytes(64), 0);
  kv.publish_prompt(first);
  kv.release(first, false);
  const auto leave_the_gpu = [&] {
    kv.take(kv.pool().capacity());
    kv.give(kv.pool().capacity());
  };
  leave_the_gpu();
  CHECK(kv.take_stored() == 64 + 2 * 64 + 64);
  const KvPool::Hit hit = kv.look_up(fake::add(requests, 80, 10, hashes));
  CHECK(hit.tokens == 64);
  CHECK(hit.host_tokens == 64);
  // All 64 tokens of the first; the 32 and 64 tokens behind which a prompt goes on of the others.
  CHECK(hit.host == 64 + 2 * 32 + 64);
  leave_the_gpu();
  CHECK(kv.take_stored() == 0);  // it was there already
  kv.forget();
  CHECK(kv.look_up(fake::add(requests, 80, 10, hashes)).tokens == 0);
}
