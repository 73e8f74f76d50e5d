#pragma once
// Whole bytes of cache that a sequence holds, block by block.

#include <cstdint>
#include <vector>

#include "sim/model/memory.h"

namespace roofcast {

/// A cache layout in whole bytes. A block of `block` tokens costs each group of layers its own bytes; a group
/// with a window stops growing once the window and the block that slides out of it are held:
///   bytes(T) = state + sum over groups of block_bytes * min(ceil(T / block), ceil(window / block) + 1)
/// which is CacheLayout::paged_bytes with every block rounded up to a whole byte.
class KvLayout {
 public:
  /// block 0: every sequence takes the room of `contiguous_tokens` at once.
  KvLayout(const CacheLayout& layout, int block, std::int64_t contiguous_tokens);

  std::int64_t bytes(std::int64_t tokens) const;
  std::int64_t token_bytes(std::int64_t tokens) const { return bytes(tokens) - (paged_ ? state_ : 0); }
  std::int64_t state_bytes() const { return state_; }
  /// Of whole blocks of the first `tokens` tokens, in the layers that keep every token.
  std::int64_t kept_bytes(std::int64_t tokens) const { return tokens / block_ * block_bytes_.back(); }
  std::int64_t block() const { return block_; }
  bool paged() const { return paged_; }

  /// Layers that see a window: a prompt goes on behind tokens of which the last `needed` are cached.
  struct Window {
    std::int64_t needed;  ///< whole blocks, less than the window by the token that looks back
    std::int64_t block_bytes;
    std::int64_t tokens;  ///< that it sees
    /// Of a sequence that has `end` tokens after `steps` steps of one each: those in the window, on average over them.
    double held(std::int64_t end, std::int64_t steps) const;
  };
  const std::vector<Window>& windows() const { return windows_; }

  /// What `sequences` sequences of `tokens` tokens in all fill, as far as no window is full.
  double filled_bytes(double tokens, int sequences) const {
    return tokens * static_cast<double>(block_bytes_.front()) / static_cast<double>(block_) +
           static_cast<double>(state_) * sequences;
  }

  /// What a sequence of `tokens` tokens fills: of layers with a window, the tokens in it. On average over `steps` steps
  /// of a token each, the last of which ends there.
  double filled_by_one(std::int64_t tokens, std::int64_t steps) const;
  /// Of what `block_bytes`, times tokens, add up to.
  double of_blocks(double bytes) const { return bytes / static_cast<double>(block_); }
  double plain_block_bytes() const { return static_cast<double>(block_bytes_.back()); }  ///< layers without a window

  /// Levels: how many windows a sequence has filled. A new block at level l costs block_bytes(l).
  std::size_t levels() const { return block_bytes_.size(); }
  std::size_t level(std::int64_t tokens) const;
  std::int64_t block_bytes(std::size_t level) const { return block_bytes_[level]; }
  /// Tokens from which a sequence at `level` is at the next one.
  std::int64_t level_end(std::size_t level) const { return limits_[level] * block_; }

 private:
  bool paged_;
  std::int64_t block_;
  std::int64_t state_ = 0;
  std::int64_t contiguous_ = 0;
  std::vector<Window> windows_;
  std::vector<std::int64_t> limits_;       ///< blocks a window holds, ascending
  std::vector<std::int64_t> block_bytes_;  ///< by level; levels = limits + 1
};

}  // namespace roofcast
