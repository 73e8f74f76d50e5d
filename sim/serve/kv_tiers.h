#pragma once
// The KV cache tiers of one rank: private tiers, and tiers shared with other ranks.

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
  /// The stored size of a block; zero if the tier does not have it.
  Stored find(std::uint64_t hash) const {
    const PrefixCache::Entry entry = blocks_.find(hash);
    return entry < 0 ? Stored{} : Stored{blocks_.bytes_of(entry), blocks_.tokens_of(entry)};
  }
  /// Stores the block, or marks it as most recently used.
  void keep(std::uint64_t hash, std::int64_t bytes, std::int64_t tokens) {
    blocks_.keep(hash, bytes, tokens);
    if (blocks_.evictable_bytes() > capacity_) blocks_.evict(blocks_.evictable_bytes() - capacity_);
  }
  void forget() { blocks_.evict(blocks_.evictable_bytes()); }

 private:
  std::int64_t capacity_;
  PrefixCache blocks_;
};

/// One entry per EngineSpec::kv_tiers: the blocks of a tier that all replicas share, null for private tiers.
using SharedTiers = std::vector<std::shared_ptr<TierBlocks>>;
SharedTiers shared_tiers(const Deployment& deployment);

class KvTiers {
 public:
  /// Tiers are unused for models with layers that do not keep every token.
  KvTiers(const Deployment& deployment, const SharedTiers& shared);

  bool any() const { return !tiers_.empty(); }
  struct Found {
    std::int64_t bytes = 0, tokens = 0;
    Seconds time{};  ///< until all bytes are in host memory
  };
  /// The part of a prompt between token `from` and token `most` that the tiers hold. Each tier is asked only for what
  /// the nearer tiers lack. The part ends at an engine block boundary, as `from` and `most` do.
  Found look_up(const PrefixBlocks& prefix, std::int64_t from, std::int64_t most) const;
  /// Stores a newly computed block.
  void keep(std::uint64_t hash, std::int64_t bytes, std::int64_t tokens) {
    for (const auto& blocks : blocks_) blocks->keep(hash, bytes, tokens);
  }
  /// Clears the private tiers.
  void forget();

 private:
  std::int64_t block_ = 1;  ///< tokens
  std::vector<KvTier> tiers_;
  std::vector<std::shared_ptr<TierBlocks>> blocks_;
};

}  // namespace roofcast
