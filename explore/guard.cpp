#include "explore/guard.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace roofcast::explore {
namespace {

bool all_of(std::string_view text, auto test) { return !text.empty() && std::all_of(text.begin(), text.end(), test); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// 127.0.0.1: four numbers, as a browser writes them.
bool is_ipv4(std::string_view name) {
  const std::vector<std::string> parts = split(name, '.');
  return parts.size() == 4 && std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
           return part.size() <= 3 && all_of(part, is_digit);
         });
}

bool is_ipv6(std::string_view name) {
  return name.size() > 2 && name.front() == '[' && name.back() == ']' &&
         all_of(name.substr(1, name.size() - 2),
                [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) || c == ':' || c == '.'; });
}

/// The name without its port; empty when the port is none.
std::string_view without_port(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  if (colon == std::string_view::npos || host.ends_with(']')) return host;
  const std::string_view port = host.substr(colon + 1);
  return port.size() <= 5 && all_of(port, is_digit) ? host.substr(0, colon) : std::string_view();
}

}  // namespace

bool is_trusted_host(std::string_view host) {
  const std::string_view name = without_port(host);
  return lower(name) == "localhost" || is_ipv4(name) || is_ipv6(name);
}

bool is_same_origin(std::string_view origin, std::string_view host) {
  return origin.empty() || lower(origin) == "http://" + lower(host);
}

bool RequestRate::admit(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const double passed = std::chrono::duration<double>(now - last_).count();
  left_ = std::min(burst_, left_ + rate_ * std::max(passed, 0.0));
  last_ = now;
  if (left_ < 1) return false;
  left_ -= 1;
  return true;
}

}  // namespace roofcast::explore
