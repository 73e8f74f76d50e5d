#pragma once
// Places beyond the GPU and its host's memory where prefix blocks are kept.

#include <string>
#include <vector>

#include "base/config_reader.h"

namespace roofcast {

/// A disk, or a pool on other machines (LMCache, Mooncake Store). It gets a copy of every prefix block that is
/// computed, and drops the least recently used ones.
struct KvTier {
  std::string name;
  Bytes capacity{};            ///< for one GPU's share of the caches
  BytesPerSecond bandwidth{};  ///< per GPU
  Seconds latency{};           ///< of the look-up and first byte, per prompt
  bool shared = false;         ///< one for all replicas; else each attention-DP rank has its own
};

/// `kv_tiers: [{name: nvme, capacity: 4 TB, bandwidth: 6 GB/s}, ...]` of an engine, nearest first.
std::vector<KvTier> parse_kv_tiers(ConfigReader& in);

}  // namespace roofcast
