#include "sim/serve/kv_layout.h"

#include <doctest/doctest.h>

#include "sim/serve/decode_growth.h"

using namespace roofcast;

namespace {

/// 2 B a token kept whole, 1 B a token in a window of 40, a state of 7 B.
CacheLayout hybrid() { return {.groups = {{Bytes(2), 0}, {Bytes(1), 40}}, .state_per_sequence = Bytes(7)}; }

}  // namespace

TEST_CASE("kv layout: whole blocks, windows and state") {
  const KvLayout layout(hybrid(), 16, 0);
  CHECK(layout.bytes(0) == 7);
  CHECK(layout.bytes(1) == 7 + 32 + 16);
  CHECK(layout.bytes(16) == 7 + 32 + 16);
  CHECK(layout.bytes(17) == 7 + 2 * (32 + 16));
  // The window of 40 keeps ceil(40 / 16) + 1 = 4 blocks; 100 tokens are 7 blocks of the other group.
  CHECK(layout.bytes(100) == 7 + 7 * 32 + 4 * 16);
  CHECK(layout.level(48) == 0);
  CHECK(layout.level(49) == 1);  // the fourth block is held
  CHECK(layout.level_end(0) == 64);
}

TEST_CASE("kv layout: agrees with the cache layout") {
  for (const int block : {1, 3, 16, 64}) {
    const KvLayout layout(hybrid(), block, 0);
    for (int tokens = 0; tokens < 300; ++tokens) {
      CHECK(static_cast<double>(layout.bytes(tokens)) == hybrid().paged_bytes(tokens, block).base());
    }
  }
}

TEST_CASE("kv layout: contiguous allocation reserves the longest sequence at once") {
  const KvLayout layout(hybrid(), 0, 100);
  CHECK(layout.bytes(1) == 2 * 100 + 40 + 7);
  CHECK(layout.bytes(100) == layout.bytes(1));
}

TEST_CASE("decode growth: sequences take a block every 16 steps, each in its own") {
  const KvLayout layout({.groups = {{Bytes(1), 0}}, .state_per_sequence = Bytes(0)}, 16, 0);
  DecodeGrowth growth(layout);
  growth.add(16, 0);  // full: takes a block for its next token
  growth.add(30, 0);  // takes one for its 33rd token, in the third step
  CHECK(growth.bytes(0, 1) == 16);
  CHECK(growth.bytes(0, 2) == 16);
  CHECK(growth.bytes(0, 3) == 32);
  CHECK(growth.bytes(0, 16) == 32);
  CHECK(growth.bytes(0, 17) == 48);
  CHECK(growth.steps_in(0, 16, 1000) == 2);
  CHECK(growth.steps_in(0, 47, 1000) == 16);
  CHECK(growth.steps_in(0, 15, 1000) == 0);
  CHECK(growth.steps_in(0, 1000000, 1000) == 1000);
  growth.remove(16, 0);
  CHECK(growth.bytes(0, 2) == 0);
}

TEST_CASE("decode growth: equal to the difference of the layout, sequence by sequence") {
  const KvLayout layout(hybrid(), 16, 0);
  for (int tokens = 1; tokens < 200; ++tokens) {
    DecodeGrowth growth(layout);
    const std::int64_t counter = 1000;
    const std::size_t level = layout.level(tokens);
    growth.add(tokens - counter, level);
    const int upto = level + 1 < layout.levels() ? static_cast<int>(layout.level_end(level)) - tokens : 100;
    for (int steps = 0; steps <= upto; ++steps)
      CHECK(growth.bytes(counter, steps) == layout.bytes(tokens + steps) - layout.bytes(tokens));
  }
}
