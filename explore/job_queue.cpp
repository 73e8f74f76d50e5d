#include "explore/job_queue.h"

#include <algorithm>
#include <utility>

namespace roofcast::explore {

void JobQueue::set_workers(std::size_t count) {
  const std::lock_guard lock(mutex_);
  most_long_ = std::min(most_long_, std::max<std::size_t>(count, 2) - 1);
}

bool JobQueue::add(Job job) {
  const std::lock_guard lock(mutex_);
  const auto long_waiting = std::count_if(waiting_.begin(), waiting_.end(), [](const Job& j) { return j.takes_long; });
  if (job.takes_long && static_cast<std::size_t>(long_waiting) >= most_long_waiting_) return false;
  waiting_.push_back(std::move(job));
  changed_.notify_one();
  return true;
}

std::optional<Job> JobQueue::take() {
  std::unique_lock lock(mutex_);
  auto next = waiting_.end();
  changed_.wait(lock, [&] {
    next = std::find_if(waiting_.begin(), waiting_.end(),
                        [&](const Job& job) { return !job.takes_long || long_under_way_ < most_long_; });
    return closed_ || next != waiting_.end();
  });
  if (closed_) return std::nullopt;
  std::optional<Job> job(std::move(*next));
  waiting_.erase(next);
  if (job->takes_long) ++long_under_way_;
  return job;
}

void JobQueue::done(bool took_long) {
  if (!took_long) return;
  const std::lock_guard lock(mutex_);
  --long_under_way_;
  changed_.notify_one();
}

void JobQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace roofcast::explore
