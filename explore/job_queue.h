#pragma once
// Requests on their way to the threads that answer them.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>

#include "explore/http.h"

namespace roofcast::explore {

class Connection;

struct Job {
  Connection* connection;
  HttpRequest request;
  bool takes_long;  ///< a plan or a simulation
};

/// First come, first served; but only so many long ones are taken at once, so that the others need not wait for them.
class JobQueue {
 public:
  JobQueue(std::size_t most_long, std::size_t most_long_waiting)
      : most_long_(most_long), most_long_waiting_(most_long_waiting) {}

  /// Where fewer threads than planned take jobs: one of them is left for short jobs, unless it is the only one.
  void set_workers(std::size_t count);
  /// False, and nothing is added, where too many long ones wait.
  bool add(Job job);
  /// Waits for one; nothing once closed. Whoever takes a job calls done() after it.
  std::optional<Job> take();
  void done(bool took_long);
  void close();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  std::size_t most_long_, most_long_waiting_, long_under_way_ = 0;
  bool closed_ = false;
};

}  // namespace roofcast::explore
