#include "sim/serve/sessions.h"

#include <algorithm>
#include <limits>

#include "sim/serve/traces.h"

namespace roofcast {

void write_prefix(const Session& session, int shared_tokens, int tokens, Request& request) {
  constexpr auto blocks_of = [](int n) { return (n + kPrefixBlock - 1) / kPrefixBlock; };
  const auto cuts = [&](int at) { return at > 0 && at < tokens && at % kPrefixBlock != 0; };
  const int shared = std::min(shared_tokens, tokens), branched = std::min(session.branched_at, tokens);
  const bool cut = cuts(shared), branch = branched != shared && cuts(branched);
  const int of_group = blocks_of(shared), of_parent = std::max(of_group, blocks_of(branched) + (cut ? 1 : 0));
  const int count = blocks_of(tokens) + (cut ? 1 : 0) + (branch ? 1 : 0);
  request.prefix_blocks.clear();
  request.prefix_block_tokens = tokens > 0 ? kPrefixBlock : 0;
  request.prefix_cut = cut ? shared : 0;
  request.prefix_branch = branch ? branched : 0;
  request.prefix_tokens = tokens;
  if (count == 0) return;
  const auto salt_of = [](int id) { return mix_bits(~static_cast<std::uint64_t>(id)); };
  const std::uint64_t group_salt = mix_bits(session.group), parent_salt = salt_of(session.root()),
                      session_salt = salt_of(session.id);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t salt = i < of_group ? group_salt : i < of_parent ? parent_salt : session_salt;
    const int place = i - (cut && i >= of_group ? 1 : 0) - (branch && i >= of_parent ? 1 : 0);
    request.prefix_blocks.push_back(mix_bits(salt + static_cast<std::uint64_t>(place)));
  }
}

int SessionDealer::new_id() {
  const int id = begun_;
  begun_ = begun_ == std::numeric_limits<int>::max() ? 0 : begun_ + 1;
  return id;
}

Session SessionDealer::part(const Session& session, std::deque<Session>& rest) {
  if (branches_ <= 1 || session.turns_done != branch_after_ || session.parent >= 0) return session;
  for (int i = 1; i < branches_; ++i) rest.push_front(session.branch(new_id()));
  under_way_ += branches_ - 1;
  return session.branch(new_id());
}

Session SessionDealer::begin() {
  Session session;
  session.id = new_id();
  if (groups_ > 1) session.group = static_cast<std::uint64_t>(random_.uniform_integer(0, groups_ - 1));
  session.history = turns_ > 1 ? shared_ : 0;
  const int turns = turn_distribution_ ? turn_distribution_->draw(random_) : turns_;
  session.turns_left = staggered_ ? 1 + opened_++ % turns : turns;
  ++under_way_;
  return session;
}

Session SessionDealer::take() {
  if (waiting_.empty() || under_way_ < open_) return begin();
  const Session session = waiting_.front();
  waiting_.pop_front();
  return part(session, waiting_);
}

Session SessionDealer::take(int id) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [id](const Session& s) { return s.id == id; });
  if (found != waiting_.end()) {
    const Session session = *found;
    waiting_.erase(found);
    return part(session, unowned_);
  }
  if (unowned_.empty()) return begin();
  const Session session = unowned_.front();
  unowned_.pop_front();
  return session;
}

void SessionDealer::give_back(const Session& session) {
  if (session.turns_left > 0) {
    waiting_.push_back(session);
    if (under_way_ >= open_) staggered_ = false;
  } else {
    --under_way_;
  }
}

}  // namespace roofcast
