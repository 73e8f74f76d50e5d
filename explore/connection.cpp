#include "explore/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "explore/sockets.h"

namespace roofcast::explore {
namespace {

using std::chrono::seconds;

constexpr seconds kToAsk{5}, kToTake{10}, kToLeave{1};
/// Bytes beyond the request that are read and discarded, so that the client can read the answer.
constexpr std::size_t kMostThrownAway = 1 << 20;

}  // namespace

Connection::Connection(int fd, Clock::time_point now) : fd_(fd), began_(now), deadline_(now + kToAsk) {}

Connection::~Connection() { ::close(fd_); }

bool Connection::read() {
  std::array<char, 16384> buffer;
  const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  if (got <= 0) {
    hung_up_ = true;
    if (got < 0 || stage_ == Stage::kLeaving) stage_ = Stage::kOver;
    return stage_ == Stage::kReading;
  }
  if (stage_ == Stage::kReading) {
    received_.append(buffer.data(), static_cast<std::size_t>(got));
    return true;
  }
  thrown_away_ += static_cast<std::size_t>(got);
  if (thrown_away_ > kMostThrownAway) stage_ = Stage::kOver;
  return false;
}

void Connection::answer(std::string bytes, Clock::time_point now) {
  answer_ = std::move(bytes);
  received_ = {};
  stage_ = Stage::kWriting;
  deadline_ = now + kToTake;
  write(now);
}

/// Shuts down writing before closing: unread input from the client would otherwise reset the connection.
void Connection::write(Clock::time_point now) {
  while (sent_ < answer_.size()) {
    const ssize_t put = ::send(fd_, answer_.data() + sent_, answer_.size() - sent_, MSG_DONTWAIT | kNoSignal);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (put <= 0) return end();
    sent_ += static_cast<std::size_t>(put);
  }
  ::shutdown(fd_, SHUT_WR);
  stage_ = hung_up_ ? Stage::kOver : Stage::kLeaving;
  deadline_ = now + kToLeave;
}

}  // namespace roofcast::explore
