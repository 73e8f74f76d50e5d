#pragma once
// Prompt blocks kept for later requests.

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace roofcast {

/// Blocks by chained hash: a hash identifies all tokens up to its end. A block is pinned while a running sequence uses
/// it. Unpinned blocks stay until their memory is needed and are evicted least recently used first, the tail of a chain
/// before its head (as in vLLM and SGLang).
class PrefixCache {
 public:
  using Entry = std::int32_t;

  struct Match {
    std::int64_t blocks = 0, tokens = 0;
    std::int64_t pinned_bytes = 0;    ///< part of `bytes` already pinned by other requests
    std::int64_t unpinned_bytes = 0;  ///< part of `bytes` that pinning makes unevictable
  };
  /// The longest cached leading part of `hashes`. Changes nothing.
  Match match(std::span<const std::uint64_t> hashes) const;
  /// The block, or -1 if it is not cached.
  Entry find(std::uint64_t hash) const {
    const auto found = index_.find(hash);
    return found == index_.end() ? -1 : found->second;
  }

  /// Pins the block, which must be cached.
  Entry pin(std::uint64_t hash);
  /// Caches the block if needed and pins it. `fresh` tells whether it was not cached before.
  Entry insert(std::uint64_t hash, std::int64_t bytes, std::int64_t tokens, bool& fresh);
  /// Updates the size of a block that has grown.
  void grow(Entry entry, std::int64_t bytes, std::int64_t tokens);
  /// Stores the block unpinned as the most recently used, with the larger of its old and new token counts.
  void keep(std::uint64_t hash, std::int64_t bytes, std::int64_t tokens);
  void unpin(Entry entry);
  bool pinned(Entry entry) const { return blocks_[static_cast<std::size_t>(entry)].pins > 0; }
  std::int64_t bytes_of(Entry entry) const { return blocks_[static_cast<std::size_t>(entry)].bytes; }
  std::int64_t tokens_of(Entry entry) const { return blocks_[static_cast<std::size_t>(entry)].tokens; }

  struct Evicted {
    std::uint64_t hash;
    std::int64_t bytes, tokens;
  };
  /// Evicts the least recently used unpinned blocks until `bytes` are free or none is left; returns the freed bytes.
  /// Appends the evicted blocks to `gone` if given.
  std::int64_t evict(std::int64_t bytes, std::vector<Evicted>* gone = nullptr);

  std::int64_t pinned_bytes() const { return pinned_bytes_; }
  std::int64_t evictable_bytes() const { return evictable_bytes_; }
  std::size_t blocks() const { return index_.size(); }

 private:
  struct Block {
    std::uint64_t hash;
    std::int64_t bytes, tokens;
    std::int32_t pins;
    Entry older, newer;  ///< neighbours in the list of unpinned blocks, -1 at its ends
  };
  Block& at(Entry entry) { return blocks_[static_cast<std::size_t>(entry)]; }
  void unlink(Entry entry);

  std::unordered_map<std::uint64_t, Entry> index_;
  std::vector<Block> blocks_;
  std::vector<Entry> free_;
  Entry oldest_ = -1, newest_ = -1;
  std::int64_t pinned_bytes_ = 0, evictable_bytes_ = 0;
};

}  // namespace roofcast
