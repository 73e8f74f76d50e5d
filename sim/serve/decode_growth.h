#pragma once
// How much cache the decoding sequences will take in the next n steps, without looking at each.

#include <cstdint>
#include <vector>

#include "sim/serve/kv_layout.h"

namespace roofcast {

/// Every decoding sequence grows by one token per step, so it takes a new block every `block` steps, in the steps
/// fixed by its length modulo the block. Counts of sequences by (level, phase) therefore give the growth of a run:
/// whole cycles of `block` steps at one block per sequence, then a partial cycle phase by phase.
/// `base` of a sequence is its tokens less the step counter, which stays fixed while it decodes.
class DecodeGrowth {
 public:
  explicit DecodeGrowth(const KvLayout& layout);

  void add(std::int64_t base, std::size_t level) { change(base, level, 1); }
  void remove(std::int64_t base, std::size_t level) { change(base, level, -1); }

  /// Bytes that the steps from `counter` to `counter + steps - 1` take.
  std::int64_t bytes(std::int64_t counter, std::int64_t steps) const;
  /// The largest n <= limit with bytes(counter, n) <= room.
  std::int64_t steps_in(std::int64_t counter, std::int64_t room, std::int64_t limit) const;

 private:
  void change(std::int64_t base, std::size_t level, std::int64_t by);
  /// A sequence of T tokens takes a block for the next one when T is a multiple of the block: base = -counter (mod
  /// block).
  std::size_t first_phase(std::int64_t counter) const { return phase(-counter); }
  std::size_t next_phase(std::size_t at) const { return (at == 0 ? phase_bytes_.size() : at) - 1; }
  std::size_t phase(std::int64_t value) const {
    const std::int64_t m = value % block_;
    return static_cast<std::size_t>(m < 0 ? m + block_ : m);
  }

  const KvLayout* layout_;
  std::int64_t block_;
  std::vector<std::int64_t> phase_bytes_;  ///< by base modulo block: bytes when those sequences take a block
  std::int64_t cycle_bytes_ = 0;           ///< all phases together
};

}  // namespace roofcast
