#include "sim/serve/prefix_cache.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "sim/serve/kv_pool.h"
#include "sim/step/deployment.h"
#include "tests/measured_data.h"
#include "tests/sim/serve/fake.h"

using namespace roofcast;

TEST_CASE("prefix cache: the longest cached head matches") {
  PrefixCache cache;
  bool fresh = false;
  const std::vector<std::uint64_t> chain{1, 2, 3};
  std::vector<PrefixCache::Entry> pinned;
  for (const std::uint64_t hash : {1, 2}) pinned.push_back(cache.insert(hash, 100, 16, fresh));
  CHECK(fresh);
  CHECK(cache.match(chain).blocks == 2);
  CHECK(cache.match(chain).tokens == 32);
  CHECK(cache.match(std::vector<std::uint64_t>{2, 3}).blocks == 1);
  CHECK(cache.match(std::vector<std::uint64_t>{7, 1}).blocks == 0);
  CHECK(cache.pinned_bytes() == 200);
  cache.insert(1, 100, 16, fresh);
  CHECK(!fresh);
  CHECK(cache.pinned_bytes() == 200);
}

TEST_CASE("prefix cache: unpinned blocks leave least recently used first, a chain's tail before its head") {
  PrefixCache cache;
  bool fresh = false;
  std::vector<PrefixCache::Entry> a, b;
  for (const std::uint64_t hash : {1, 2, 3}) a.push_back(cache.insert(hash, 10, 16, fresh));
  for (const std::uint64_t hash : {11, 12}) b.push_back(cache.insert(hash, 10, 16, fresh));
  CHECK(cache.evict(10) == 0);  // all are in use
  for (std::size_t i = a.size(); i-- > 0;) cache.unpin(a[i]);
  for (std::size_t i = b.size(); i-- > 0;) cache.unpin(b[i]);
  CHECK(cache.evictable_bytes() == 50);
  CHECK(cache.evict(15) == 20);  // 3 and 2
  CHECK(cache.match(std::vector<std::uint64_t>{1, 2, 3}).blocks == 1);
  const PrefixCache::Entry again = cache.pin(1);
  CHECK(cache.evict(100) == 20);  // 12 and 11; 1 is in use again
  CHECK(cache.blocks() == 1);
  cache.unpin(again);
  CHECK(cache.evictable_bytes() == 10);
}

namespace {

Request with_prefix(std::int64_t id, int prompt, std::vector<std::uint64_t> blocks) {
  Request r;
  r.id = id;
  r.arrival = Seconds(static_cast<double>(id));  // one at a time
  r.prompt_tokens = prompt;
  r.output_tokens = 4;
  r.prefix_blocks = std::move(blocks);
  r.prefix_block_tokens = 16;
  return r;
}

}  // namespace

TEST_CASE("prefix caching: hits skip whole blocks, and the last token is always computed") {
  const auto d = fake::deployment(1000);
  d->engine.prefix_caching = true;
  fake::Requests source({with_prefix(0, 100, {1, 2, 3, 4, 5, 6}),  // nothing is there
                         with_prefix(1, 100, {1, 2, 3, 4, 5, 6}),  // 96 of 100 tokens
                         with_prefix(2, 100, {1, 2, 9, 10}),       // 32
                         with_prefix(3, 32, {1, 2}),               // both blocks, but then nothing would be left: 16
                         with_prefix(4, 33, {1, 2}),               // 32
                         with_prefix(5, 50, {9, 10})});            // chained hashes of another head: 32 all the same
  fake::Recorder seen;
  const ServingMetrics m = simulate(d, source, {}, fake::options(), &seen);
  const int expected[] = {0, 96, 32, 16, 32, 32};
  for (int i = 0; i < 6; ++i) CHECK(seen.requests[i].cached_tokens == expected[i]);
  CHECK(m.cached_tokens == 208);
  CHECK(seen.requests[0].ttft.in(kMillisecond) == doctest::Approx(1.0 + 1.00));
  CHECK(seen.requests[1].ttft.in(kMillisecond) == doctest::Approx(1.0 + 0.04));  // 4 tokens are left
}

TEST_CASE("prefix caching: what does not fit is evicted") {
  const auto d = fake::deployment(160);  // ten blocks
  d->engine.prefix_caching = true;
  fake::Requests source({with_prefix(0, 100, {1, 2, 3, 4, 5, 6}),        // 6 blocks and one of its own
                         with_prefix(1, 100, {11, 12, 13, 14, 15, 16}),  // needs 7: of the 6 that stay 3 go, 6 5 4
                         with_prefix(2, 100, {1, 2, 3, 4, 5, 6})});      // finds 1 2 3
  fake::Recorder seen;
  simulate(d, source, {}, fake::options(), &seen);
  CHECK(seen.requests[1].cached_tokens == 0);
  CHECK(seen.requests[2].cached_tokens == 48);
}

TEST_CASE("offload: evicted blocks come back from host memory over PCIe") {
  const auto run = [](double host) {
    const auto d = fake::deployment(160);  // ten blocks, as above: the second evicts 6 5 4 of the first
    d->engine.prefix_caching = true;
    d->engine.kv_offload = Bytes(host);
    fake::Requests source({with_prefix(0, 100, {1, 2, 3, 4, 5, 6}), with_prefix(1, 100, {11, 12, 13, 14, 15, 16}),
                           with_prefix(2, 100, {1, 2, 3, 4, 5, 6})});
    fake::Recorder seen;
    const ServingMetrics m = simulate(d, source, {}, fake::options(), &seen);
    return std::pair{m, seen.requests[2]};
  };
  const auto [none, without] = run(0);
  CHECK(none.offload_stored_bytes == 0);
  CHECK(without.cached_tokens == 48);
  const auto [kept, with] = run(1000);
  CHECK(with.cached_tokens == 96);
  CHECK(kept.offload_loaded_tokens == 48);
  CHECK(kept.offload_loaded_bytes == 48);  // a byte a token here
  CHECK(kept.offload_stored_bytes >= 48);
  // 1 ms and 4 tokens, and a copy of 48 B over 1 MB/s PCIe: 10 us + 48 / 0.85 us
  CHECK(with.ttft.in(kMillisecond) == doctest::Approx(1.0 + 0.04 + 0.01 + 0.048 / 0.85));
  // Room for two blocks: the tail 6 went first and is dropped first, 5 and 4 stay; 4 and 5 follow 1 2 3 from the GPU.
  CHECK(run(32).second.cached_tokens == 80);
  CHECK(run(8).second.cached_tokens == 48);  // room for none
}

TEST_CASE("prefix caching: the next turn of a session finds the output of the last one") {
  const auto d = fake::deployment(1000);
  d->engine.prefix_caching = true;
  Request first = with_prefix(0, 40, {1, 2, 3, 4});  // 40 + 25 tokens: the hashes reach 64
  first.output_tokens = 25;
  first.session = 0;
  fake::Requests source({first, with_prefix(1, 90, {1, 2, 3, 4, 5})});
  fake::Recorder seen;
  simulate(d, source, {}, fake::options(), &seen);
  CHECK(seen.requests[1].cached_tokens == 64);
}

TEST_CASE("kv pool: sharing depends on the blocks that a request came with, not on later ones") {
  // Blocks of 16 tokens under hashes of 32: a prompt of 48 has one whole block and half of a second.
  const auto d = fake::deployment(1000);
  d->engine.prefix_caching = true;
  RequestTable requests;
  const auto preempted = [&](std::vector<std::uint64_t> hashes, std::int64_t tokens) -> PrefixBlocks& {
    Request r = with_prefix(0, 48, std::move(hashes));
    r.prefix_block_tokens = 32;
    return requests.own_blocks(requests.add(r), tokens, 16);
  };
  KvPool pool(*d);
  pool.take(400);
  PrefixBlocks& whole = preempted({1, 2}, 96);  // the prompt's both, the rest of the second, and one of its own
  CHECK(whole.hashes.size() == 4);
  CHECK(pool.publish_prompt(whole, 48) == 48);
  CHECK(pool.publish_output(whole, 48, 96) == 0);
  PrefixBlocks& head = preempted({11}, 64);  // the second is its own: 16 tokens of it would be of no use to others
  CHECK(head.hashes.size() == 2);
  CHECK(pool.publish_prompt(head, 48) == 32);
  PrefixBlocks& session = preempted({21, 22, 23}, 128);  // the next turn has its third, and nobody the fourth
  CHECK(session.hashes.size() == 4);
  CHECK(pool.publish_prompt(session, 48) == 48);  // the whole KV blocks of its second
  CHECK(pool.publish_output(session, 48, 100) == 48);
}

TEST_CASE("prefix cache: block hit rates of Mooncake's traces with unlimited memory") {
  const std::pair<const char*, double> traces[] = {{"mooncake_conversation_trace.jsonl", 0.366},
                                                   {"mooncake_synthetic_trace.jsonl", 0.640}};
  for (const auto& [name, rate] : traces) {
    const std::string path = testing::kWholeData + "/traces/" + name;
    if (!testing::there_or_skip(path)) return;
    WorkloadSpec workload;
    workload.arrivals.process = ArrivalSpec::Process::kTrace;
    workload.arrivals.trace_file = path;
    workload.arrivals.trace_format = "mooncake";
    const auto source = make_source(workload, 0);
    PrefixCache cache;
    Request request;
    double hits = 0, blocks = 0;
    while (source->next(request)) {
      hits += static_cast<double>(cache.match(request.prefix_blocks).blocks);
      blocks += static_cast<double>(request.prefix_blocks.size());
      bool fresh = false;
      for (const std::uint64_t hash : request.prefix_blocks) cache.unpin(cache.insert(hash, 1, 512, fresh));
    }
    CHECK(hits / blocks == doctest::Approx(rate).epsilon(0.0015));
  }
}
