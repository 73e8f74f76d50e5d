#pragma once
// Cache that the decoding sequences will allocate in the next n steps, without a loop over sequences.

#include <cstdint>
#include <vector>

#include "sim/serve/kv_layout.h"

namespace roofcast {

/// Each decoding sequence grows by one token per step and allocates a block every `block` steps, at steps given by its
/// length modulo the block size (its phase). The number of sequences per (level, phase) therefore gives the growth of a
/// run: whole cycles of `block` steps with one block per sequence, then a partial cycle phase by phase.
/// The `base` of a sequence is its token count minus the step counter; it is constant while the sequence decodes.
class DecodeGrowth {
 public:
  explicit DecodeGrowth(const KvLayout& layout);

  void add(std::int64_t base, std::size_t level) { change(base, level, 1); }
  void remove(std::int64_t base, std::size_t level) { change(base, level, -1); }

  /// Bytes that the steps `counter` to `counter + steps - 1` allocate.
  std::int64_t bytes(std::int64_t counter, std::int64_t steps) const;
  /// The largest n <= limit with bytes(counter, n) <= room.
  std::int64_t steps_in(std::int64_t counter, std::int64_t room, std::int64_t limit) const;

 private:
  void change(std::int64_t base, std::size_t level, std::int64_t by);
  /// A sequence of T tokens allocates a block for the next token when T is a multiple of the block size: base =
  /// -counter (mod block).
  std::size_t first_phase(std::int64_t counter) const { return phase(-counter); }
  std::size_t next_phase(std::size_t at) const { return (at == 0 ? phase_bytes_.size() : at) - 1; }
  std::size_t phase(std::int64_t value) const {
    const std::int64_t m = value % block_;
    return static_cast<std::size_t>(m < 0 ? m + block_ : m);
  }

  const KvLayout* layout_;
  std::int64_t block_;
  /// Bytes allocated when the sequences of a phase (base modulo block) take a block.
  std::vector<std::int64_t> phase_bytes_;
  std::int64_t cycle_bytes_ = 0;  ///< all phases together
};

}  // namespace roofcast
