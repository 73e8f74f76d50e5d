#include "sim/serve/kv_layout.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace roofcast {
namespace {

std::int64_t whole(Bytes bytes) { return static_cast<std::int64_t>(std::ceil(bytes.base())); }

}  // namespace

KvLayout::KvLayout(const CacheLayout& layout, int block, std::int64_t contiguous_tokens)
    : paged_(block > 0), block_(std::max(block, 1)), state_(whole(layout.state_per_sequence)) {
  std::map<std::int64_t, std::int64_t> by_limit;
  std::int64_t all = 0;
  for (const CacheGroup& group : layout.groups) {
    const std::int64_t block_bytes = whole(group.bytes_per_token * static_cast<double>(block_));
    all += block_bytes;
    if (group.window > 0) {
      const auto limit = static_cast<std::int64_t>(std::ceil(group.window / static_cast<double>(block_))) + 1;
      by_limit[limit] += block_bytes;
      const auto behind = static_cast<std::int64_t>(std::ceil((group.window - 1) / static_cast<double>(block_)));
      windows_.push_back({behind * block_, block_bytes, static_cast<std::int64_t>(group.window)});
    }
  }
  block_bytes_.push_back(all);
  for (const auto& [limit, bytes] : by_limit) {
    limits_.push_back(limit);
    block_bytes_.push_back(block_bytes_.back() - bytes);
  }
  if (!paged_) contiguous_ = whole(layout.sequence_bytes(static_cast<double>(contiguous_tokens)));
}

std::int64_t KvLayout::bytes(std::int64_t tokens) const {
  if (!paged_) return contiguous_;
  const std::int64_t blocks = (tokens + block_ - 1) / block_;
  std::int64_t sum = state_, counted = 0;
  for (std::size_t l = 0; l < limits_.size(); ++l) {
    const std::int64_t upto = std::min(blocks, limits_[l]);
    sum += (upto - counted) * block_bytes_[l];
    counted = upto;
  }
  return sum + (blocks - counted) * block_bytes_.back();
}

/// The mean of min(window, t) for t = end - steps + 1 ... end.
double KvLayout::Window::held(std::int64_t end, std::int64_t steps) const {
  const double last = static_cast<double>(end), n = static_cast<double>(steps);
  if (end <= tokens) return last - (n - 1) / 2;
  if (end - steps >= tokens) return static_cast<double>(tokens);
  const auto below = static_cast<double>(tokens - (end - steps));
  return ((last - n) * below + below * (below + 1) / 2 + (n - below) * static_cast<double>(tokens)) / n;
}

double KvLayout::filled_by_one(std::int64_t tokens, std::int64_t steps) const {
  double bytes = (static_cast<double>(tokens) - static_cast<double>(steps - 1) / 2) * plain_block_bytes();
  for (const Window& w : windows_) bytes += w.held(tokens, steps) * static_cast<double>(w.block_bytes);
  return static_cast<double>(state_) + of_blocks(bytes);
}

std::size_t KvLayout::level(std::int64_t tokens) const {
  const std::int64_t blocks = (tokens + block_ - 1) / block_;
  std::size_t l = 0;
  while (l < limits_.size() && limits_[l] <= blocks) ++l;
  return l;
}

}  // namespace roofcast
