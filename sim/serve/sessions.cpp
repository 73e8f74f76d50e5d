#include "sim/serve/sessions.h"

#include <algorithm>
#include <limits>

#include "sim/serve/traces.h"

namespace roofcast {

void write_prefix(const Session& session, int shared_tokens, int tokens, Request& request) {
  constexpr auto blocks_of = [](int n) { return (n + kPrefixBlock - 1) / kPrefixBlock; };
  const int shared = std::min(shared_tokens, tokens);
  const bool cut = shared < tokens && shared % kPrefixBlock != 0;
  const int of_group = blocks_of(shared), count = blocks_of(tokens) + (cut ? 1 : 0);
  request.prefix_blocks.clear();
  request.prefix_block_tokens = count > 0 ? kPrefixBlock : 0;
  request.prefix_cut = cut ? shared : 0;
  request.prefix_tokens = tokens;
  if (count == 0) return;
  const std::uint64_t group_salt = mix_bits(session.group);
  const std::uint64_t session_salt = mix_bits(~static_cast<std::uint64_t>(session.id));
  for (int i = 0; i < count; ++i)
    request.prefix_blocks.push_back(mix_bits((i < of_group ? group_salt : session_salt) +
                                             static_cast<std::uint64_t>(cut && i >= of_group ? i - 1 : i)));
}

Session SessionDealer::begin() {
  Session session;
  session.id = begun_;
  if (groups_ > 1) session.group = static_cast<std::uint64_t>(random_.uniform_integer(0, groups_ - 1));
  session.history = turns_ > 1 ? shared_ : 0;
  const int turns = turn_law_ ? turn_law_->draw(random_) : turns_;
  session.turns_left = staggered_ ? 1 + begun_ % turns : turns;
  begun_ = begun_ == std::numeric_limits<int>::max() ? 0 : begun_ + 1;
  ++under_way_;
  return session;
}

Session SessionDealer::take() {
  if (waiting_.empty() || under_way_ < open_) return begin();
  const Session session = waiting_.front();
  waiting_.pop_front();
  return session;
}

Session SessionDealer::take(int id) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [id](const Session& s) { return s.id == id; });
  if (found == waiting_.end()) return begin();
  const Session session = *found;
  waiting_.erase(found);
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
