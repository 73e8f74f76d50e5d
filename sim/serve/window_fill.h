#pragma once
// Tokens that the decoding sequences hold in layers with a window, without a loop over sequences.

#include <vector>

#include "sim/serve/kv_layout.h"
#include "sim/serve/step_heap.h"

namespace roofcast {

/// In a layer with a window a sequence holds all of its tokens until the window is full, then those of the window. A
/// heap finds the sequences that have filled a window after a run. `base` of a sequence is its tokens minus the step
/// counter.
class WindowFill {
 public:
  explicit WindowFill(const KvLayout& layout) : layout_(layout), windows_(layout.windows().size()) {}

  void add(Slot slot, std::uint32_t epoch, std::int64_t base, std::int64_t counter);
  void remove(std::int64_t base, std::int64_t counter);
  /// Moves the step counter to `counter`. Sequences that fill a window on the way are treated exactly by bytes() until
  /// settle().
  void advance(const RequestTable& requests, std::int64_t counter);
  void settle();

  /// KvLayout::filled_by_one summed over all sequences: `decoding` sequences with `tokens` tokens in total at the end
  /// of a run of `steps` steps.
  double bytes(std::int64_t counter, std::int64_t steps, int decoding, std::int64_t tokens) const;

 private:
  struct Window {
    StepHeap ends;                      ///< when a sequence has more tokens than the window
    std::int64_t growing = 0;           ///< sequences that have not filled it
    std::int64_t bases = 0;             ///< the sum of their bases
    std::int64_t full = 0;              ///< the other sequences, except those in `crossed`
    std::vector<std::int64_t> crossed;  ///< bases of those that have filled it since settle()
  };
  const KvLayout& layout_;
  std::vector<Window> windows_;
};

}  // namespace roofcast
