#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace roofcast {

/// Tokens by expert when `wanted` draws pass through DeepSeek-V3's group-limited routing (arXiv 2412.19437, section
/// 2.1.2) as a kernel runs it: the experts lie in 8 groups; a group's score is the sum of its two best experts', the
/// four best groups stay, and of their experts the `top_k` best. Wanted experts score alike and above all others, of
/// equals the first wins. Groups of a single expert have no two best and all score alike.
class GroupLimit {
 public:
  static constexpr std::size_t kGroups = 8, kGroupsKept = 4;

  /// `experts` is a multiple of 8 and `top_k` at most half of it; others are not limited.
  GroupLimit(std::size_t experts, std::size_t top_k);

  /// Adds `weight` to the experts that a token gets which wants those marked, 0 or 1 an expert.
  void add_token(std::span<const char> wanted, double weight, std::vector<double>& counts) const;

 private:
  std::size_t experts_, top_k_, group_size_;
  bool limited_;
};

}  // namespace roofcast
