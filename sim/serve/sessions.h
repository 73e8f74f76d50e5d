#pragma once
// Sessions and shared prefixes of a synthetic workload.

#include <cstdint>
#include <deque>

#include "sim/serve/workload.h"

namespace roofcast {

/// One session in progress. The next prompt is `history` tokens plus what the user adds.
struct Session {
  int id = -1;
  std::uint64_t group = 0;  ///< which shared prefix
  int history = 0;          ///< tokens sent and answered so far
  int turns_done = 0, turns_left = 0;
  int parent = -1;      ///< the session from which it branched after `branched_at` tokens; -1: none
  int branched_at = 0;  ///< tokens

  int root() const { return parent < 0 ? id : parent; }
  /// A branch of this session with the number `as`.
  Session branch(int as) const {
    Session other = *this;
    other.id = as;
    other.parent = root();
    other.branched_at = history;
    return other;
  }
};

/// Writes the hashes of the first `tokens` tokens of a prompt: shared prefix, then session. Hashes of the prefix depend
/// on the group and the position alone, later ones on the session, so equal hashes mean equal tokens up to there. The
/// block in which the prefix ends is split there, as is one in which the session branched.
void write_prefix(const Session& session, int shared_tokens, int tokens, Request& request);

/// Assigns arrivals to turns of sessions. `open_sessions` sessions are open at any time. Each arrival goes to the
/// session that has waited longest, and a new session replaces a finished one. A session branches when the first turn
/// of a branch is assigned, because only then has the previous turn ended.
class SessionDealer {
 public:
  /// `staggered`: the initial sessions are shortened to 1, 2, .. turns in rotation, so that sessions are out of phase
  /// and all turns soon are equally frequent, as in a service that has run for long.
  SessionDealer(const WorkloadSpec& workload, std::int64_t open_sessions, bool staggered, Random random)
      : turns_(workload.turns),
        branches_(workload.branches),
        branch_after_(workload.branch_after),
        turn_distribution_(workload.turn_distribution),
        groups_(workload.prefix_groups),
        shared_(workload.shared_prefix_tokens),
        open_(open_sessions),
        staggered_(staggered && static_cast<double>(open_sessions) >= mean_turns(workload)),
        random_(random) {}

  Session take();        ///< the session whose turn it is; return it with the turn added
  Session take(int id);  ///< session `id` if it continues, else a new one
  void give_back(const Session& session);

 private:
  Session begin();
  /// Returns the first branch if the session branches here, and moves the others to `rest`.
  Session part(const Session& session, std::deque<Session>& rest);
  int new_id();

  int turns_, branches_, branch_after_;
  std::optional<LengthSpec> turn_distribution_;
  int groups_, shared_;
  std::int64_t open_;
  bool staggered_;
  int opened_ = 0;  ///< sessions so far, branches not counted
  Random random_;
  std::deque<Session> waiting_;
  std::deque<Session> unowned_;  ///< branches that no user of a closed loop has taken up
  std::int64_t under_way_ = 0;   ///< sessions that have started and not ended
  int begun_ = 0;
};

}  // namespace roofcast
