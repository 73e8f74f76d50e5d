#include "sim/step/kv_tier.h"

#include <fmt/format.h>

namespace roofcast {

std::vector<KvTier> parse_kv_tiers(ConfigReader& in) {
  constexpr Bytes kMost{1e18};
  constexpr std::size_t kMostTiers = 4;
  std::vector<KvTier> tiers;
  for (const ConfigTree& item : in.list("kv_tiers")) {
    ConfigReader tier(item, "a tier");
    KvTier t;
    t.name = tier.text("name");
    t.capacity = tier.bytes("capacity");
    if (t.capacity <= Bytes(0) || t.capacity > kMost)
      tier.fail("capacity", "must be more than 0 and at most 1e6 TB per GPU");
    t.bandwidth = tier.bandwidth("bandwidth");
    t.latency = tier.time("latency", Seconds(0));
    if (t.latency < Seconds(0)) tier.fail("latency", "must be at least 0");
    t.shared = tier.boolean("shared", false);
    tier.finish();
    for (const KvTier& other : tiers) {
      if (other.name == t.name) tier.fail("name", fmt::format("two tiers are named '{}'", t.name));
    }
    tiers.push_back(std::move(t));
  }
  if (tiers.size() > kMostTiers) in.fail("kv_tiers", fmt::format("at most {} tiers", kMostTiers));
  return tiers;
}

}  // namespace roofcast
