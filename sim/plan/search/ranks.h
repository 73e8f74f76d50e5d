#pragma once
// Processes that share one job and talk by messages.

#include <optional>
#include <string>

namespace roofcast {

struct RankMessage {
  int from = 0;
  std::string text;
};

/// The processes of one `mpirun`. One thread of each talks.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void send(int to, const std::string& text) = 0;
  /// The next message of anyone, or nothing when none is there yet.
  virtual std::optional<RankMessage> poll() = 0;
  /// The last call of each. Not `clean`: some process does not answer any more, and the others are not waited for.
  virtual void leave(bool clean) = 0;
};

}  // namespace roofcast
