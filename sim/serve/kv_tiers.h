#pragma once
// The cache tiers of one rank: its own, and those shared with other ranks.

#include <memory>
#include <span>
#include <vector>

#include "sim/serve/prefix_cache.h"
#include "sim/step/deployment.h"

namespace roofcast {

/// Prefix blocks of one tier, by hash.
class TierBlocks {
 public:
  explicit TierBlocks(const KvTier& tier) : capacity_(static_cast<std::int64_t>(tier.capacity.base())) {}
  PrefixCache::Match match(std::span<const std::uint64_t> hashes) const { return blocks_.match(hashes); }
  /// Stored from now on, as the most recent block.
  void keep(std::uint64_t hash, std::int64_t bytes, std::int64_t tokens) {
    blocks_.keep(hash, bytes, tokens);
    if (blocks_.evictable_bytes() > capacity_) blocks_.evict(blocks_.evictable_bytes() - capacity_);
  }
  void forget() { blocks_.evict(blocks_.evictable_bytes()); }

 private:
  std::int64_t capacity_;
  PrefixCache blocks_;
};

/// The tiers of EngineSpec::kv_tiers that all replicas share; null for the others.
using SharedTiers = std::vector<std::shared_ptr<TierBlocks>>;
SharedTiers shared_tiers(const Deployment& deployment);

class KvTiers {
 public:
  /// Models in which some layers do not keep every token use no tiers.
  KvTiers(const Deployment& deployment, const SharedTiers& shared);

  bool any() const { return !tiers_.empty(); }
  struct Found {
    std::int64_t bytes = 0, tokens = 0;
    Seconds time{};  ///< until all of it is in host memory
  };
  /// The part of the first `most` tokens of `hashes` that the tiers have, each only what nearer ones lack.
  Found look_up(std::span<const std::uint64_t> hashes, std::int64_t most) const;
  /// A block was computed.
  void keep(std::uint64_t hash, std::int64_t bytes, std::int64_t tokens) {
    for (const auto& blocks : blocks_) blocks->keep(hash, bytes, tokens);
  }
  /// The part that only this rank has.
  void forget();

 private:
  std::vector<KvTier> tiers_;
  std::vector<std::shared_ptr<TierBlocks>> blocks_;
};

}  // namespace roofcast
