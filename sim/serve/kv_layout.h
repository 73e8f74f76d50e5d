#pragma once
// KV cache bytes of a sequence in whole blocks.

#include <cstdint>
#include <vector>

#include "sim/model/memory.h"

namespace roofcast {

/// A cache layout in whole bytes. A block of `block` tokens costs each group of layers its own number of bytes. A group
/// with a sliding window stops growing once it holds the window plus the block that slides out of it:
///   bytes(T) = state + sum over groups of block_bytes * min(ceil(T / block), ceil(window / block) + 1)
/// This is CacheLayout::paged_bytes with every block rounded up to a whole byte.
class KvLayout {
 public:
  /// block 0: every sequence allocates `contiguous_tokens` tokens at once.
  KvLayout(const CacheLayout& layout, int block, std::int64_t contiguous_tokens);

  std::int64_t bytes(std::int64_t tokens) const;
  std::int64_t token_bytes(std::int64_t tokens) const { return bytes(tokens) - (paged_ ? state_ : 0); }
  std::int64_t state_bytes() const { return state_; }
  /// Bytes of whole blocks for the first `tokens` tokens, in the layers without a window.
  std::int64_t kept_bytes(std::int64_t tokens) const { return tokens / block_ * block_bytes_.back(); }
  std::int64_t block() const { return block_; }
  bool paged() const { return paged_; }

  /// A group of layers with a window. A prompt can continue after a prefix if its last `needed` tokens are cached.
  struct Window {
    std::int64_t needed;  ///< (window - 1) rounded up to whole blocks
    std::int64_t block_bytes;
    std::int64_t tokens;  ///< size of the window
    /// Tokens in the window, averaged over `steps` one-token steps that end at `end` tokens.
    double held(std::int64_t end, std::int64_t steps) const;
  };
  const std::vector<Window>& windows() const { return windows_; }

  /// Bytes filled by `sequences` sequences with `tokens` tokens in total, while no window is full.
  double filled_bytes(double tokens, int sequences) const {
    return tokens * static_cast<double>(block_bytes_.front()) / static_cast<double>(block_) +
           static_cast<double>(state_) * sequences;
  }

  /// Bytes filled by one sequence, averaged over `steps` one-token steps that end at `tokens` tokens. Layers with a
  /// window count only the tokens in it.
  double filled_by_one(std::int64_t tokens, std::int64_t steps) const;
  /// Converts a sum of block_bytes * tokens to bytes.
  double of_blocks(double bytes) const { return bytes / static_cast<double>(block_); }
  double plain_block_bytes() const { return static_cast<double>(block_bytes_.back()); }  ///< layers without a window

  /// A level is the number of windows that a sequence has filled. A new block at level l costs block_bytes(l).
  std::size_t levels() const { return block_bytes_.size(); }
  std::size_t level(std::int64_t tokens) const;
  std::int64_t block_bytes(std::size_t level) const { return block_bytes_[level]; }
  /// Tokens at which a sequence at `level` reaches the next level.
  std::int64_t level_end(std::size_t level) const { return limits_[level] * block_; }

 private:
  bool paged_;
  std::int64_t block_;
  std::int64_t state_ = 0;
  std::int64_t contiguous_ = 0;
  std::vector<Window> windows_;
  std::vector<std::int64_t> limits_;       ///< blocks per window, ascending
  std::vector<std::int64_t> block_bytes_;  ///< by level; levels = limits + 1
};

}  // namespace roofcast
