#include "sim/serve/prefix_cache.h"

#include "base/error.h"

namespace roofcast {

PrefixCache::Match PrefixCache::match(std::span<const std::uint64_t> hashes) const {
  Match match;
  for (const std::uint64_t hash : hashes) {
    const auto found = index_.find(hash);
    if (found == index_.end()) break;
    const Block& block = blocks_[static_cast<std::size_t>(found->second)];
    ++match.blocks;
    match.tokens += block.tokens;
    (block.pins > 0 ? match.pinned_bytes : match.unpinned_bytes) += block.bytes;
  }
  return match;
}

PrefixCache::Entry PrefixCache::pin(std::uint64_t hash) {
  const auto found = index_.find(hash);
  SIM_CHECK(found != index_.end(), "a pinned block is cached");
  Block& block = at(found->second);
  if (block.pins++ == 0) {
    unlink(found->second);
    evictable_bytes_ -= block.bytes;
    pinned_bytes_ += block.bytes;
  }
  return found->second;
}

PrefixCache::Entry PrefixCache::insert(std::uint64_t hash, std::int64_t bytes, std::int64_t tokens, bool& fresh) {
  const auto [place, added] = index_.try_emplace(hash, -1);
  fresh = added;
  if (!added) return pin(hash);
  Entry entry = static_cast<Entry>(blocks_.size());
  if (free_.empty()) {
    blocks_.push_back({});
  } else {
    entry = free_.back();
    free_.pop_back();
  }
  at(entry) = {.hash = hash, .bytes = bytes, .tokens = tokens, .pins = 1, .older = -1, .newer = -1};
  place->second = entry;
  pinned_bytes_ += bytes;
  return entry;
}

void PrefixCache::grow(Entry entry, std::int64_t bytes, std::int64_t tokens) {
  Block& block = at(entry);
  (block.pins > 0 ? pinned_bytes_ : evictable_bytes_) += bytes - block.bytes;
  block.bytes = bytes;
  block.tokens = tokens;
}

void PrefixCache::keep(std::uint64_t hash, std::int64_t bytes, std::int64_t tokens) {
  bool fresh = false;
  const Entry entry = insert(hash, bytes, tokens, fresh);
  if (tokens > tokens_of(entry)) grow(entry, bytes, tokens);
  unpin(entry);
}

void PrefixCache::unpin(Entry entry) {
  Block& block = at(entry);
  SIM_CHECK(block.pins > 0, "a block is unpinned as often as it was pinned");
  if (--block.pins > 0) return;
  pinned_bytes_ -= block.bytes;
  evictable_bytes_ += block.bytes;
  block.older = newest_;
  block.newer = -1;
  (newest_ < 0 ? oldest_ : at(newest_).newer) = entry;
  newest_ = entry;
}

void PrefixCache::unlink(Entry entry) {
  const Block& block = at(entry);
  (block.older < 0 ? oldest_ : at(block.older).newer) = block.newer;
  (block.newer < 0 ? newest_ : at(block.newer).older) = block.older;
}

std::int64_t PrefixCache::evict(std::int64_t bytes, std::vector<Evicted>* gone) {
  std::int64_t freed = 0;
  while (freed < bytes && oldest_ >= 0) {
    const Entry entry = oldest_;
    unlink(entry);
    if (gone != nullptr) gone->push_back({at(entry).hash, at(entry).bytes, at(entry).tokens});
    freed += at(entry).bytes;
    evictable_bytes_ -= at(entry).bytes;
    index_.erase(at(entry).hash);
    free_.push_back(entry);
  }
  return freed;
}

}  // namespace roofcast
