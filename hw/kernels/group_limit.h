#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace roofcast {

/// Counts tokens per expert under DeepSeek-V3's group-limited routing (arXiv 2412.19437, section 2.1.2), as a kernel
/// runs it. Experts form 8 groups. A group's score is the sum of its two best experts' scores. The four best groups are
/// kept, and their `top_k` best experts are chosen. All wanted experts have the same score, above all others; ties go
/// to the first. Groups of a single expert all have the same score.
class GroupLimit {
 public:
  static constexpr std::size_t kGroups = 8, kGroupsKept = 4;

  /// `experts` must be a multiple of 8 and `top_k` at most half of it; else routing is not limited.
  GroupLimit(std::size_t experts, std::size_t top_k);

  /// Adds `weight` to each expert that a token gets. `wanted` has 1 for each expert that the token wants, else 0.
  void add_token(std::span<const char> wanted, double weight, std::vector<double>& counts) const;

 private:
  std::size_t experts_, top_k_, group_size_;
  bool limited_;
};

}  // namespace roofcast
