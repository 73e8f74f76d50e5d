#pragma once
// Conversations and shared prefixes of a made-up workload: what a request's prompt consists of.

#include <cstdint>
#include <deque>

#include "sim/serve/workload.h"

namespace roofcast {

/// One conversation under way. The next prompt is `history` tokens long plus what the user adds.
struct Session {
  int id = -1;
  std::uint64_t group = 0;  ///< which shared prefix
  int history = 0;          ///< tokens sent and answered so far
  int turns_done = 0, turns_left = 0;
  int parent = -1;      ///< the session from which it has branched, after `branched_at` tokens; -1: none
  int branched_at = 0;  ///< tokens

  int root() const { return parent < 0 ? id : parent; }
  /// The session also continues as this branch.
  Session branch(int as) const {
    Session other = *this;
    other.id = as;
    other.parent = root();
    other.branched_at = history;
    return other;
  }
};

/// Writes the hashes of the first `tokens` tokens of a prompt: of the shared prefix and of what follows it. The blocks
/// of a group's prefix depend on the group and their place alone, those behind it on the session: so equal hashes mean
/// equal tokens up to there. A block in which the prefix ends is cut there, and one in which the session has branched.
void write_prefix(const Session& session, int shared_tokens, int tokens, Request& request);

/// Deals the turns of sessions to arrivals. As many sessions are open as `open_sessions` says; each arrival
/// goes to the one that has waited longest, and a finished session makes way for a new one. A session branches when the
/// first turn of a branch is dealt: only then has the turn before ended.
class SessionDealer {
 public:
  /// `staggered`: the sessions begun until that many are open are cut short, to 1, 2, .. turns in rotation, so
  /// that sessions do not march in step: soon all turns are equally frequent, as in a service that has run for long.
  SessionDealer(const WorkloadSpec& workload, std::int64_t open_sessions, bool staggered, Random random)
      : turns_(workload.turns),
        branches_(workload.branches),
        branch_after_(workload.branch_after),
        turn_law_(workload.turn_law),
        groups_(workload.prefix_groups),
        shared_(workload.shared_prefix_tokens),
        open_(open_sessions),
        staggered_(staggered && static_cast<double>(open_sessions) >= mean_turns(workload)),
        random_(random) {}

  Session take();        ///< the session whose turn it is; give it back with the turn added
  Session take(int id);  ///< this one if it continues, else a new one
  void give_back(const Session& session);

 private:
  Session begin();
  /// The first of the branches, if the session branches here; the others go to `rest`.
  Session part(const Session& session, std::deque<Session>& rest);
  int new_id();

  int turns_, branches_, branch_after_;
  std::optional<LengthSpec> turn_law_;
  int groups_, shared_;
  std::int64_t open_;
  bool staggered_;
  int opened_ = 0;  ///< sessions so far, branches not counted
  Random random_;
  std::deque<Session> waiting_;
  std::deque<Session> unowned_;  ///< branches that no user of a closed loop has taken up
  std::int64_t under_way_ = 0;   ///< begun and not ended
  int begun_ = 0;
};

}  // namespace roofcast
