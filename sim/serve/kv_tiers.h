#pragma once
// The cache tiers of one rank: its own, and those shared with other ranks.

#include <memory>
#include <vector>

#include "sim/serve/live_request.h"
#include "sim/serve/prefix_cache.h"
#include "sim/step/kv_tier.h"

namespace roofcast {

struct Deployment;

/// Prefix blocks of one tier, by hash.
class TierBlocks {
 public:
  explicit TierBlocks(const KvTier& tier) : capacity_(static_cast<std::int64_t>(tier.capacity.base())) {}
  struct Stored {
    std::int64_t bytes = 0, tokens = 0;
  };
  /// What is stored of a block; empty if the tier does not have it.
  Stored find(std::uint64_t hash) const {
    const PrefixCache::Entry entry = blocks_.find(hash);
    return entry < 0 ? Stored{} : Stored{blocks_.bytes_of(entry), blocks_.tokens_of(entry)};
  }
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
  /// The part of a prompt behind its first `from` tokens, and up to `most`, that the tiers have, each only what nearer
  /// ones lack. It ends at the end of a block of the engine, as `from` and `most` do.
  Found look_up(const PrefixBlocks& prefix, std::int64_t from, std::int64_t most) const;
  /// A block was computed.
  void keep(std::uint64_t hash, std::int64_t bytes, std::int64_t tokens) {
    for (const auto& blocks : blocks_) blocks->keep(hash, bytes, tokens);
  }
  /// The tiers that belong to this rank alone.
  void forget();

 private:
  std::int64_t block_ = 1;  ///< tokens
  std::vector<KvTier> tiers_;
  std::vector<std::shared_ptr<TierBlocks>> blocks_;
};

}  // namespace roofcast
