#pragma once
// Cache tiers beyond GPU and host memory that store prefix blocks.

#include <string>
#include <vector>

#include "base/config_reader.h"

namespace roofcast {

/// A disk, or a memory pool on other machines (LMCache, Mooncake Store). It receives a copy of every computed prefix
/// block, and evicts the least recently used ones.
struct KvTier {
  std::string name;
  Bytes capacity{};            ///< per GPU
  BytesPerSecond bandwidth{};  ///< per GPU
  Seconds latency{};           ///< of lookup and first byte, per prompt
  bool shared = false;         ///< all replicas share it; false: one per attention-DP rank
};

/// `kv_tiers: [{name: nvme, capacity: 4 TB, bandwidth: 6 GB/s}, ...]` of an engine, nearest first.
std::vector<KvTier> parse_kv_tiers(ConfigReader& in);

}  // namespace roofcast
