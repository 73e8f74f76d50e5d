#include "sim/serve/batch.h"

#include <doctest/doctest.h>

#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

/// Sequences whose cache takes a byte a token, in blocks of 4.
struct Running {
  explicit Running(bool speculates = false) : batch(requests, layout, speculates) {}
  Slot add(int tokens, int output) {
    const Slot slot = fake::add(requests, tokens, output);
    batch.enter(slot);
    requests[slot].base = tokens;
    return slot;
  }
  Slot add_decoding(int tokens, int output) {
    const Slot slot = add(tokens, output);
    requests[slot].produced = 1;  // as after its prefill
    batch.join_decodes(slot);
    return slot;
  }
  RequestTable requests;
  KvLayout layout{CacheLayout{.groups = {{.bytes_per_token = Bytes(1), .window = 0}}}, 4, 0};
  Batch batch;
};

}  // namespace

TEST_CASE("batch: sequences are kept in the order of admission") {
  Running r;
  const Slot a = r.add(5, 1), b = r.add(5, 1), c = r.add(5, 1);
  r.batch.leave(b);
  std::vector<Slot> seen;
  r.batch.for_each([&](Slot slot, const LiveRequest&) { seen.push_back(slot); });
  CHECK(seen == std::vector<Slot>{a, c});
  CHECK(r.batch.running() == 2);
  CHECK(r.batch.oldest() == a);
  CHECK(r.batch.newest() == c);
}

TEST_CASE("batch: decoding sequences advance together") {
  Running r;
  const Slot a = r.add_decoding(6, 4), b = r.add_decoding(3, 9);
  r.batch.advance(2);
  CHECK(r.batch.tokens_of(r.requests[a]) == 8);
  CHECK(r.batch.produced_of(r.requests[b]) == 3);
  CHECK(r.batch.context() == 8 + 5);
  CHECK(r.batch.steps_to_change(100) == 1);  // the first has one of its four tokens left
  // Of 8 and 5 tokens the first takes a block in the next step and the fifth, the second in the fourth.
  CHECK(r.batch.growth(1) == 4);
  CHECK(r.batch.growth(4) == 8);
  CHECK(r.batch.growth(5) == 12);
  CHECK(r.batch.steps_in(8, 100) == 4);
}

TEST_CASE("batch: finished sequences are those with their last token") {
  for (const bool speculates : {false, true}) {
    Running r(speculates);
    const Slot a = r.add_decoding(6, 4);
    r.add_decoding(3, 9);
    if (speculates) {
      r.batch.advance(r.requests[a], 3);
    } else {
      r.batch.advance(3);
    }
    std::vector<Slot> ended;
    r.batch.for_each_finished([&](Slot slot) { ended.push_back(slot); });
    CHECK(ended == std::vector<Slot>{a});
  }
}

TEST_CASE("batch: with speculation the growth of a step is that of each sequence, up to its end") {
  Running r(true);
  r.add_decoding(6, 4);  // ends at 10 tokens: 5 more need a third block
  r.add_decoding(3, 1);  // ends at 4 tokens: none
  CHECK(r.batch.growth_of_step(5) == 4);
}

TEST_CASE("batch: with speculation rows are padded to the longest sequence") {
  Running r(true);
  const Slot a = r.add_decoding(6, 9), b = r.add_decoding(3, 9);
  r.batch.advance(r.requests[a], 3);  // 9 and 3 tokens
  CHECK(r.batch.longest() == 9);
  r.batch.advance(r.requests[b], 2);  // 9 and 5
  CHECK(r.batch.longest() == 9);
  CHECK(r.batch.padded_context() == 2 * 9);
}

TEST_CASE("batch: idle rows are computed until the batch is closed") {
  Running r;
  r.add_decoding(6, 4);
  r.batch.keep_row(10, 12);
  CHECK(r.batch.rows() == 2);
  r.batch.advance(2);
  CHECK(r.batch.context() == (6 + 2) + (10 + 2));
  CHECK(r.batch.close() == 12);
  CHECK(r.batch.rows() == 1);
}
