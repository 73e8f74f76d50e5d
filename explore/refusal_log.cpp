#include "explore/refusal_log.h"

#include <fmt/format.h>

namespace roofcast::explore {

void RefusalLog::count(std::string_view reason, Clock::time_point now) {
  if (!print_) return;
  const auto found = counts_.find(reason);
  found != counts_.end() ? ++found->second : counts_[std::string(reason)] = 1;
  print_due(now);
}

RefusalLog::Clock::time_point RefusalLog::due() const { return counts_.empty() ? Clock::time_point::max() : next_; }

void RefusalLog::print_due(Clock::time_point now) {
  if (counts_.empty() || now < next_) return;
  next_ = now + std::chrono::seconds(10);
  print_rest();
}

void RefusalLog::print_rest() {
  for (const auto& [reason, times] : counts_) print_(fmt::format("{} x refused: {}", times, reason));
  counts_.clear();
}

}  // namespace roofcast::explore
