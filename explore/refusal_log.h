#pragma once
// What the server refuses, told to its owner.

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace roofcast::explore {

/// One line for each reason, at once and then every ten seconds at most, with how often: a flood of requests is no
/// flood of lines.
class RefusalLog {
 public:
  using Clock = std::chrono::steady_clock;
  explicit RefusalLog(std::function<void(const std::string&)> print) : print_(std::move(print)) {}

  /// `reason`: one of few.
  void count(std::string_view reason, Clock::time_point now);
  Clock::time_point due() const;  ///< when to call print_due(); max: nothing to tell
  void print_due(Clock::time_point now);
  void print_rest();

 private:
  std::function<void(const std::string&)> print_;
  std::map<std::string, std::size_t, std::less<>> counts_;
  Clock::time_point next_{};
};

}  // namespace roofcast::explore
