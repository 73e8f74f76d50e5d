// Tiers of the cache as an engine's file writes them.
#include "sim/step/kv_tier.h"

#include <doctest/doctest.h>

#include "tests/base/messages.h"

using namespace roofcast;

namespace {

std::vector<KvTier> parse(const std::string& tiers) {
  ConfigReader in(parse_config_text("kv_tiers: " + tiers, "e.yaml"));
  return parse_kv_tiers(in);
}
std::string refused(const std::string& tiers) {
  return message_of([&] { parse(tiers); });
}

}  // namespace

TEST_CASE("kv tiers: nearest first, by default not shared and without latency") {
  const std::vector<KvTier> tiers = parse(
      "[{name: nvme, capacity: 4 TB, bandwidth: 6 GB/s}, {name: pool, capacity: 1 TB, bandwidth: 3 GB/s, "
      "latency: 2 ms, shared: true}]");
  REQUIRE(tiers.size() == 2);
  CHECK(tiers[0].name == "nvme");
  CHECK(tiers[0].capacity == Bytes(4e12));
  CHECK(tiers[0].bandwidth == BytesPerSecond(6e9));
  CHECK(tiers[0].latency == Seconds(0));
  CHECK(!tiers[0].shared);
  CHECK(tiers[1].latency.base() == doctest::Approx(2e-3));
  CHECK(tiers[1].shared);
  CHECK(parse("").empty());
}

TEST_CASE("kv tiers: wrong values are refused with their location") {
  CHECK(refused("[{name: a, capacity: 0 B, bandwidth: 1 GB/s}]") ==
        "e.yaml:1:32: 'capacity': must be more than 0 and at most 1e6 TB per GPU");
  CHECK(refused("[{name: a, capacity: 2000000 TB, bandwidth: 1 GB/s}]").find("at most 1e6 TB") != std::string::npos);
  CHECK(refused("[{name: a, capacity: 1 TB}]").find("missing key 'bandwidth'") != std::string::npos);
  CHECK(refused("[{name: a, capacity: 1 TB, bandwidth: 1 GB/s}, {name: a, capacity: 1 TB, bandwidth: 1 GB/s}]")
            .find("two tiers are named 'a'") != std::string::npos);
  CHECK(refused("[{name: a, capacity: 1 TB, bandwidth: 1 GB/s, speed: 3}]").find("unknown key 'speed'") !=
        std::string::npos);
}
