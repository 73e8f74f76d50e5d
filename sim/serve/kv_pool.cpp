#include "sim/serve/kv_pool.h"

#include <algorithm>
#include <cmath>

namespace roofcast {
namespace {

constexpr std::int64_t kUnlimited = std::int64_t{1} << 60;

std::int64_t contiguous_tokens(const Deployment& d) {
  if (d.engine.max_model_len > 0) return d.engine.max_model_len;
  return d.model.max_context > 0 ? static_cast<std::int64_t>(d.model.max_context) : 2048;
}

std::int64_t capacity_of(const Deployment& d) {
  if (!d.engine.kv_cache) return kUnlimited;
  return static_cast<std::int64_t>(std::max(0.0, std::floor(d.memory.cache.base())));
}

}  // namespace

KvPool::KvPool(const Deployment& d)
    : layout_(d.engine.kv_cache ? d.memory.pooled() : CacheLayout{}, d.engine.block_size, contiguous_tokens(d)),
      capacity_(capacity_of(d)),
      watermark_(static_cast<std::int64_t>(d.engine.watermark * static_cast<double>(capacity_))),
      caches_prefixes_(d.engine.prefix_caching && d.engine.kv_cache && layout_.paged() &&
                       layout_.block_bytes(layout_.levels() - 1) > 0),
      host_capacity_(static_cast<std::int64_t>(d.engine.kv_offload.base())) {}

void KvPool::take(std::int64_t bytes) {
  private_ += bytes;
  const std::int64_t excess = private_ + cache_.pinned_bytes() + cache_.evictable_bytes() - capacity_;
  if (excess <= 0) return;
  std::vector<PrefixCache::Evicted> gone;
  const std::int64_t freed = cache_.evict(excess, host_capacity_ > 0 ? &gone : nullptr);
  SIM_CHECK(freed >= excess, "no more cache is taken than there is");
  keep_in_host(gone);
}

/// What is there already is only made the latest.
void KvPool::keep_in_host(const std::vector<PrefixCache::Evicted>& gone) {
  for (const PrefixCache::Evicted& block : gone) {
    bool fresh = false;
    host_.unpin(host_.insert(block.hash, block.bytes, block.tokens, fresh));
    if (fresh) stored_ += block.bytes;
    if (host_.evictable_bytes() > host_capacity_) host_.evict(host_.evictable_bytes() - host_capacity_);
  }
}

void KvPool::forget() {
  (void)cache_.evict(cache_.evictable_bytes());
  (void)host_.evict(host_.evictable_bytes());
}

/// Blocks of `hashes`, which follow those found on the GPU, as far as they are in host memory.
void KvPool::look_up_host(std::span<const std::uint64_t> hashes, std::int64_t most, Hit& hit) const {
  PrefixCache::Match match = host_.match(hashes);
  while (match.blocks > 0 && hit.tokens + match.tokens > most) {
    match = host_.match(hashes.first(static_cast<std::size_t>(match.blocks - 1)));
  }
  hit.host = match.unpinned_bytes;
  hit.host_tokens = static_cast<int>(match.tokens);
  hit.tokens += hit.host_tokens;
}

/// A prompt found whole would have nothing left to compute, and the first token comes from its last one: the block
/// that holds the last token is computed again, as vLLM does.
KvPool::Hit KvPool::look_up(const PrefixBlocks* prefix, int target) const {
  Hit hit;
  if (!caches_prefixes_ || prefix == nullptr) return hit;
  std::span<const std::uint64_t> head(prefix->hashes);
  PrefixCache::Match match = cache_.match(head);
  const std::int64_t most = (target - 1) / layout_.block() * layout_.block();
  hit.tokens = static_cast<int>(std::min(match.tokens, most));
  while (match.tokens > hit.tokens) match = cache_.match(head = head.first(static_cast<std::size_t>(match.blocks - 1)));
  hit.blocks = static_cast<std::size_t>(match.blocks);
  hit.bytes = match.pinned_bytes + match.unpinned_bytes;
  hit.unpinned = match.unpinned_bytes;
  if (host_capacity_ > 0) {
    look_up_host(std::span<const std::uint64_t>(prefix->hashes).subspan(hit.blocks), most, hit);
  }
  return hit;
}

void KvPool::pin(PrefixBlocks& prefix, const Hit& hit) {
  for (std::size_t i = 0; i < hit.blocks; ++i) prefix.pinned.push_back(cache_.pin(prefix.hashes[i]));
}

std::int64_t KvPool::publish(PrefixBlocks& prefix, std::int64_t tokens, bool part_of_last) {
  const std::int64_t whole = tokens / layout_.block() * layout_.block(), step = prefix.block_tokens;
  std::int64_t moved = 0;
  for (std::size_t i = prefix.pinned.size(); i < prefix.hashes.size(); ++i) {
    const std::int64_t begin = static_cast<std::int64_t>(i) * step, end = std::min(begin + step, whole);
    if (end <= begin || (end < begin + step && !part_of_last)) break;
    bool fresh = false;
    const PrefixCache::Entry entry =
        cache_.insert(prefix.hashes[i], layout_.token_bytes(end) - layout_.token_bytes(begin), end - begin, fresh);
    prefix.pinned.push_back(entry);
    private_ -= cache_.bytes_of(entry);
    moved += cache_.bytes_of(entry);
    if (end < begin + step) break;
  }
  return moved;
}

std::int64_t KvPool::publish_prompt(PrefixBlocks& prefix, int prompt) {
  if (!caches_prefixes_) return 0;
  const auto of_prompt = static_cast<std::size_t>((prompt + prefix.block_tokens - 1) / prefix.block_tokens);
  return publish(prefix, prompt, prefix.given == of_prompt);
}

std::int64_t KvPool::publish_output(PrefixBlocks& prefix, int prompt, std::int64_t tokens) {
  if (!caches_prefixes_) return 0;
  const auto of_prompt = static_cast<std::size_t>((prompt + prefix.block_tokens - 1) / prefix.block_tokens);
  return prefix.given > of_prompt ? publish(prefix, tokens, false) : 0;
}

void KvPool::unpin(PrefixBlocks& prefix) {
  for (std::size_t i = prefix.pinned.size(); i-- > 0;) cache_.unpin(prefix.pinned[i]);
  prefix.pinned.clear();
}

}  // namespace roofcast
