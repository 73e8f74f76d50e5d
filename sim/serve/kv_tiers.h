#pragma once
// The tiers of one rank: its own, and those that it shares with others.

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
  /// There from now on, as the latest.
  void keep(std::uint64_t hash, std::int64_t bytes, std::int64_t tokens) {
    blocks_.keep(hash, bytes, tokens);
    if (blocks_.evictable_bytes() > capacity_) blocks_.evict(blocks_.evictable_bytes() - capacity_);
  }
  void forget() { blocks_.evict(blocks_.evictable_bytes()); }

 private:
  std::int64_t capacity_;
  PrefixCache blocks_;
};

/// Those of EngineSpec::kv_tiers that all replicas share; null for the others.
using SharedTiers = std::vector<std::shared_ptr<TierBlocks>>;
SharedTiers shared_tiers(const Deployment& deployment);

class KvTiers {
 public:
  /// Models of which some layers do not keep every token use none.
  KvTiers(const Deployment& deployment, const SharedTiers& shared);

  bool any() const { return !tiers_.empty(); }
  struct Found {
    std::int64_t bytes = 0, tokens = 0;
    Seconds time{};  ///< until all of it is in host memory
  };
  /// What the tiers have of the head of `hashes`, at most `most` tokens of it, each what the nearer ones do not.
  Found look_up(std::span<const std::uint64_t> hashes, std::int64_t most) const;
  /// A block was computed.
  void keep(std::uint64_t hash, std::int64_t bytes, std::int64_t tokens) {
    for (const auto& blocks : blocks_) blocks->keep(hash, bytes, tokens);
  }
  /// What this rank alone has.
  void forget();

 private:
  std::vector<KvTier> tiers_;
  std::vector<std::shared_ptr<TierBlocks>> blocks_;
};

}  // namespace roofcast
