#include "sim/serve/decode_growth.h"

#include <algorithm>

namespace roofcast {

DecodeGrowth::DecodeGrowth(const KvLayout& layout)
    : layout_(&layout), block_(layout.block()), phase_bytes_(static_cast<std::size_t>(layout.block()), 0) {}

void DecodeGrowth::change(std::int64_t base, std::size_t level, std::int64_t by) {
  if (!layout_->paged()) return;
  const std::int64_t bytes = by * layout_->block_bytes(level);
  phase_bytes_[phase(base)] += bytes;
  cycle_bytes_ += bytes;
}

std::int64_t DecodeGrowth::bytes(std::int64_t counter, std::int64_t steps) const {
  if (cycle_bytes_ == 0) return 0;
  const std::int64_t cycles = steps / block_;
  std::int64_t sum = cycles * cycle_bytes_;
  std::size_t at = first_phase(counter);
  for (std::int64_t left = steps - cycles * block_; left > 0; --left, at = next_phase(at)) sum += phase_bytes_[at];
  return sum;
}

std::int64_t DecodeGrowth::steps_in(std::int64_t counter, std::int64_t room, std::int64_t limit) const {
  if ((limit / block_ + 1) * cycle_bytes_ <= room) return limit;
  if (room < 0) return 0;
  const std::int64_t cycles = room / cycle_bytes_;
  std::int64_t n = cycles * block_;
  room -= cycles * cycle_bytes_;
  for (std::size_t at = first_phase(counter + n); n < limit && phase_bytes_[at] <= room; ++n, at = next_phase(at))
    room -= phase_bytes_[at];
  return std::min(n, limit);
}

}  // namespace roofcast
