#pragma once
// Access control: which clients are answered, and how often.

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>

namespace roofcast::explore {

/// True for a Host header that is an IP address or `localhost`, with or without a port. A foreign page whose name
/// resolves to this machine (DNS rebinding) sends its own name.
bool is_trusted_host(std::string_view host);

/// True without an Origin header, and for the page that `host` itself serves.
bool is_same_origin(std::string_view origin, std::string_view host);

/// A token bucket of requests that refills at `rate` per second up to `burst`.
class RequestRate {
 public:
  using Clock = std::chrono::steady_clock;
  RequestRate(double rate, double burst) : rate_(rate), burst_(burst), left_(burst) {}
  bool admit(Clock::time_point now);

 private:
  std::mutex mutex_;
  double rate_, burst_, left_;
  Clock::time_point last_{};
};

}  // namespace roofcast::explore
