#pragma once
// One client connection of the explorer: its input, its answer, and its deadline.

#include <chrono>
#include <cstddef>
#include <string>

#include "base/watch.h"

namespace roofcast::explore {

/// A non-blocking socket. There are deadlines for sending the request, for reading the answer, and for closing.
class Connection {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Stage { kReading, kAnswering, kWriting, kLeaving, kOver };

  Connection(int fd, Clock::time_point now);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const { return fd_; }
  Stage stage() const { return stage_; }
  Clock::time_point began() const { return began_; }
  Clock::time_point deadline() const { return deadline_; }
  const std::string& received() const { return received_; }
  bool hung_up() const { return hung_up_; }  ///< the client has closed its side
  bool late() const { return late_; }        ///< the answer took too long
  bool head_alone() const { return head_alone_; }

  /// Reads available input. True if the request grew, or is complete.
  bool read();
  /// `while_connected`: the answer is cancelled if the client disconnects.
  /// `head_alone`: a HEAD request, whose answer has no body.
  void answering(bool while_connected, bool head_alone, Clock::time_point until) {
    stage_ = Stage::kAnswering;
    head_alone_ = head_alone;
    while_connected_ = while_connected;
    deadline_ = until;
  }
  bool is_watched() const { return stage_ == Stage::kAnswering && while_connected_; }
  void give_up() {
    while_connected_ = false;
    deadline_ = Clock::time_point::max();
    watch_.stop = true;
  }
  void give_up_late() {
    late_ = true;
    give_up();
  }
  Watch& watch() { return watch_; }  ///< lets the server stop this answer
  void answer(std::string bytes, Clock::time_point now);
  void write(Clock::time_point now);
  void end() { stage_ = Stage::kOver; }

 private:
  int fd_;
  Stage stage_ = Stage::kReading;
  Clock::time_point began_, deadline_;
  std::string received_, answer_;
  std::size_t sent_ = 0, thrown_away_ = 0;
  bool hung_up_ = false, while_connected_ = false, head_alone_ = false, late_ = false;
  Watch watch_;
};

}  // namespace roofcast::explore
