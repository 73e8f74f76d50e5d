#include "sim/serve/kv_tiers.h"

#include <algorithm>

#include "sim/step/deployment.h"

namespace roofcast {
namespace {

/// Whether every layer keeps every token, so that a prefix consists only of its blocks.
bool blocks_alone(const Deployment& d) {
  if (d.memory.layout.state_per_sequence > Bytes(0)) return false;
  for (const CacheGroup& group : d.memory.layout.groups) {
    if (group.window > 0) return false;
  }
  return d.engine.kv_cache && d.engine.block_size > 0 && d.engine.prefix_caching;
}

}  // namespace

SharedTiers shared_tiers(const Deployment& d) {
  SharedTiers out;
  for (const KvTier& tier : d.engine.kv_tiers)
    out.push_back(tier.shared ? std::make_shared<TierBlocks>(tier) : nullptr);
  return out;
}

KvTiers::KvTiers(const Deployment& d, const SharedTiers& shared) {
  if (!blocks_alone(d)) return;
  block_ = d.engine.block_size;
  tiers_ = d.engine.kv_tiers;
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    const bool there = i < shared.size() && shared[i] != nullptr;
    blocks_.push_back(there ? shared[i] : std::make_shared<TierBlocks>(tiers_[i]));
  }
}

KvTiers::Found KvTiers::look_up(const PrefixBlocks& prefix, std::int64_t from, std::int64_t most) const {
  struct Piece {
    std::size_t tier;
    std::int64_t begin, bytes;
  };
  std::vector<Piece> pieces;
  std::int64_t there = from;
  std::size_t at = prefix.begun(from);
  if (at > 0 && prefix.end(at - 1) > from) --at;  // the last block found so far is incomplete
  for (std::size_t tier = 0; tier < tiers_.size(); ++tier) {
    for (; at < prefix.hashes.size() && prefix.begin(at) < most; ++at) {
      const TierBlocks::Stored stored = blocks_[tier]->find(prefix.hashes[at]);
      const std::int64_t begin = prefix.begin(at), end = std::min(prefix.end(at), begin + stored.tokens);
      if (end <= there) break;
      pieces.push_back({tier, begin, stored.bytes});
      there = end;
      if (end < prefix.end(at)) break;
    }
  }
  Found found;
  const std::int64_t until = std::min(there, most) / block_ * block_;
  if (until <= from) return found;
  found.tokens = until - from;
  for (std::size_t tier = 0; tier < tiers_.size(); ++tier) {
    std::int64_t bytes = 0;
    for (const Piece& piece : pieces) bytes += piece.tier == tier && piece.begin < until ? piece.bytes : 0;
    if (bytes == 0) continue;
    found.bytes += bytes;
    found.time += tiers_[tier].latency + Bytes(static_cast<double>(bytes)) / tiers_[tier].bandwidth;
  }
  return found;
}

void KvTiers::forget() {
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (!tiers_[i].shared) blocks_[i]->forget();
  }
}

}  // namespace roofcast
