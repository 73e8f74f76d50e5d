#pragma once
// How much of the layers with a window the decoding sequences fill, without a visit to each sequence.

#include <vector>

#include "sim/serve/kv_layout.h"
#include "sim/serve/step_heap.h"

namespace roofcast {

/// A sequence that has not filled a window yet holds its tokens there, any other the window's. A heap tells who has
/// filled one after a run. `base` of a sequence is its tokens less the step counter.
class WindowFill {
 public:
  explicit WindowFill(const KvLayout& layout) : layout_(layout), windows_(layout.windows().size()) {}

  void add(Slot slot, std::uint32_t epoch, std::int64_t base, std::int64_t counter);
  void remove(std::int64_t base, std::int64_t counter);
  /// The step counter has moved on to `counter`: who has filled a window on the way is looked at once more by bytes(),
  /// until settle().
  void advance(const RequestTable& requests, std::int64_t counter);
  void settle();

  /// As KvLayout::filled_by_one of all of them, `decoding` sequences of `tokens` tokens in all at the end of a run of
  /// `steps` steps.
  double bytes(std::int64_t counter, std::int64_t steps, int decoding, std::int64_t tokens) const;

 private:
  struct Window {
    StepHeap ends;                      ///< when a sequence has more tokens than the window
    std::int64_t growing = 0;           ///< sequences that have not filled it
    std::int64_t bases = 0;             ///< the sum of their bases
    std::int64_t full = 0;              ///< the others, but those in `crossed`
    std::vector<std::int64_t> crossed;  ///< bases of those that have filled it since settle()
  };
  const KvLayout& layout_;
  std::vector<Window> windows_;
};

}  // namespace roofcast
