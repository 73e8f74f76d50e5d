#include "sim/plan/prefill_sums.h"

#include <algorithm>

namespace roofcast {

PrefillSum PrefillSums::longest(const Prompts& prompts, std::int64_t most) const {
  const PrefillSum* best = nullptr;
  if (const auto known = sums_.find(prompts); known != sums_.end()) {
    for (const PrefillSum& sum : known->second) {
      if (sum.done <= most && (best == nullptr || sum.done > best->done)) best = &sum;
    }
  }
  return best != nullptr ? *best : PrefillSum{};
}

void PrefillSums::keep(const Prompts& prompts, std::int64_t from, const PrefillSum& sum) {
  constexpr std::size_t kMost = 4096, kMostOfOne = 4;  // several, because threads take points from several places
  if (size_ >= kMost) sums_.clear(), size_ = 0;
  std::vector<PrefillSum>& known = sums_[prompts];
  const auto continued = std::find_if(known.begin(), known.end(), [&](const PrefillSum& s) { return s.done == from; });
  if (continued != known.end()) {
    *continued = sum;
  } else if (known.size() < kMostOfOne) {
    known.push_back(sum);
    ++size_;
  }
}

}  // namespace roofcast
