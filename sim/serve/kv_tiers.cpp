#include "sim/serve/kv_tiers.h"

namespace roofcast {
namespace {

/// Whether every layer keeps every token, so that a prefix is its blocks and nothing else.
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
  tiers_ = d.engine.kv_tiers;
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    const bool there = i < shared.size() && shared[i] != nullptr;
    blocks_.push_back(there ? shared[i] : std::make_shared<TierBlocks>(tiers_[i]));
  }
}

KvTiers::Found KvTiers::look_up(std::span<const std::uint64_t> hashes, std::int64_t most) const {
  Found found;
  for (std::size_t i = 0; i < tiers_.size() && !hashes.empty(); ++i) {
    PrefixCache::Match match = blocks_[i]->match(hashes);
    while (match.blocks > 0 && found.tokens + match.tokens > most)
      match = blocks_[i]->match(hashes.first(static_cast<std::size_t>(match.blocks - 1)));
    if (match.blocks == 0) continue;
    found.bytes += match.unpinned_bytes;
    found.tokens += match.tokens;
    found.time += tiers_[i].latency + Bytes(static_cast<double>(match.unpinned_bytes)) / tiers_[i].bandwidth;
    hashes = hashes.subspan(static_cast<std::size_t>(match.blocks));
  }
  return found;
}

void KvTiers::forget() {
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (!tiers_[i].shared) blocks_[i]->forget();
  }
}

}  // namespace roofcast
