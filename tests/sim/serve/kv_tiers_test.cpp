// Prefix blocks in tiers beyond the GPU.
#include "sim/serve/kv_tiers.h"

#include <doctest/doctest.h>

#include "sim/serve/kv_account.h"
#include "sim/step/deployment.h"
#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

/// A GPU with room for 100 tokens of a byte each; a tier that gives 1000 B/s after 5 ms.
std::shared_ptr<Deployment> with_tier(double capacity, bool shared) {
  const auto d = fake::deployment(100);
  d->fidelity = Fidelity::kIdeal;
  d->engine.prefix_caching = true;
  d->engine.kv_tiers = {{.name = "disk",
                         .capacity = Bytes(capacity),
                         .bandwidth = BytesPerSecond(1000),
                         .latency = Seconds(5e-3),
                         .shared = shared}};
  return d;
}

/// Prompts of 80 tokens, of which 64 are one of these prefixes; a second between them.
fake::Recorder play(const std::shared_ptr<Deployment>& d, const std::vector<int>& prefixes, int replicas = 1) {
  fake::Requests source;
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    source.add(static_cast<double>(i), 80, 4);
    const auto of = static_cast<std::uint64_t>(1000 * prefixes[i]);
    source.all().back().prefix_blocks = {of + 1, of + 2, of + 3, of + 4};
    source.all().back().prefix_block_tokens = 16;
  }
  ServingOptions options = fake::options();
  options.replicas = replicas;
  fake::Recorder seen;
  simulate(d, source, {}, options, &seen);
  return seen;
}

}  // namespace

TEST_CASE("a tier evicts the least recently used blocks") {
  TierBlocks blocks({.name = "disk", .capacity = Bytes(48), .bandwidth = BytesPerSecond(1)});
  const std::vector<std::uint64_t> hashes{1, 2, 3, 4};
  for (const std::uint64_t hash : hashes) blocks.keep(hash, 16, 16);
  CHECK(blocks.find(1).tokens == 0);  // it has gone
  CHECK(blocks.find(2).tokens == 16);
  blocks.keep(1, 16, 16);
  CHECK(blocks.find(1).tokens == 16);
  CHECK(blocks.find(2).tokens == 0);  // it has gone for 1
}

TEST_CASE("nearer tiers are read first, and steps wait for each") {
  auto d = with_tier(1000, false);
  d->engine.kv_tiers.push_back({.name = "pool", .capacity = Bytes(1000), .bandwidth = BytesPerSecond(100)});
  KvTiers tiers(*d, {});
  tiers.keep(1, 16, 16);
  tiers.keep(2, 16, 16);
  PrefixBlocks prefix;
  prefix.hashes = {1, 2, 3};
  prefix.block_tokens = 16;
  prefix.tokens = 48;
  const KvTiers::Found found = tiers.look_up(prefix, 0, 96);
  CHECK(found.tokens == 32);
  CHECK(found.bytes == 32);
  CHECK(found.time.base() == doctest::Approx(5e-3 + 32 / 1000.0));
  CHECK(tiers.look_up(prefix, 0, 16).tokens == 16);
  CHECK(tiers.look_up(prefix, 16, 96).tokens == 16);
  CHECK(tiers.look_up(prefix, 32, 96).tokens == 0);
}

TEST_CASE("a prefix evicted from the GPU is read from the tier, and the step waits for it") {
  // Three prefixes of 64 in a GPU of 100: the first has gone when it is asked for again.
  const fake::Recorder none = play(with_tier(1e-9, false), {1, 2, 3, 1});
  const fake::Recorder disk = play(with_tier(1000, false), {1, 2, 3, 1});
  CHECK(none.requests.at(3).cached_tokens == 0);
  CHECK(disk.requests.at(3).cached_tokens == 64);
  // 64 tokens of 10 us less to prefill; 5 ms and 64 ms of the disk, 64 us of PCIe at 1 MB/s
  CHECK((disk.requests.at(3).ttft - none.requests.at(3).ttft).in(kMillisecond) ==
        doctest::Approx(5 + 64 + 0.064 - 0.64));
}

TEST_CASE("a shared tier holds what another replica computed") {
  CHECK(play(with_tier(1000, false), {1, 1}, 2).requests.at(1).cached_tokens == 0);  // round robin
  CHECK(play(with_tier(1000, true), {1, 1}, 2).requests.at(1).cached_tokens == 64);
}

TEST_CASE("models with windows keep nothing in tiers") {
  const auto d = with_tier(1000, false);
  d->memory.layout.groups.push_back({.bytes_per_token = Bytes(1), .window = 32});
  CHECK_FALSE(KvTiers(*d, {}).any());
}

TEST_CASE("a failed rank loses its own tier, but not the shared one") {
  for (const bool shared : {false, true}) {
    const auto d = with_tier(1000, shared);
    RequestTable requests;
    KvAccount kv(*d, requests, shared_tiers(*d));
    const Slot slot = fake::add(requests, 64, 4, {1, 2, 3, 4});
    requests[slot].base = 64;
    kv.admit(slot, {}, 64, 0);
    kv.publish_prompt(slot);
    kv.release(slot, false);
    kv.forget();
    CHECK(kv.look_up(fake::add(requests, 80, 4, {1, 2, 3, 4})).tier_tokens == (shared ? 64 : 0));
  }
}
