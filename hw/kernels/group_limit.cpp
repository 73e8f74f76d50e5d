#include "hw/kernels/group_limit.h"

#include <algorithm>
#include <array>

namespace roofcast {

GroupLimit::GroupLimit(std::size_t experts, std::size_t top_k)
    : experts_(experts),
      top_k_(top_k),
      group_size_(experts / kGroups),
      limited_(experts % kGroups == 0 && top_k <= kGroupsKept * (experts / kGroups)) {}

void GroupLimit::add_token(std::span<const char> wanted, double weight, std::vector<double>& counts) const {
  if (!limited_) {
    for (std::size_t e = 0; e < experts_; ++e) counts[e] += wanted[e] ? weight : 0.0;
    return;
  }
  std::array<int, kGroups> score{};
  std::array<std::size_t, kGroups> order{};
  for (std::size_t g = 0; g < kGroups; ++g) {
    order[g] = g;
    if (group_size_ < 2) continue;
    for (std::size_t e = g * group_size_; e < (g + 1) * group_size_; ++e) score[g] += wanted[e];
    score[g] = std::min(score[g], 2);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return score[a] > score[b]; });
  std::sort(order.begin(), order.begin() + kGroupsKept);
  std::size_t left = top_k_;
  for (const bool first : {true, false}) {
    for (std::size_t i = 0; i < kGroupsKept; ++i) {
      const std::size_t begin = order[i] * group_size_;
      for (std::size_t e = begin; e < begin + group_size_ && left > 0; ++e) {
        if ((wanted[e] != 0) != first) continue;
        counts[e] += weight;
        --left;
      }
    }
  }
}

}  // namespace roofcast
