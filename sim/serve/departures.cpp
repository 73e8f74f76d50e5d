#include "sim/serve/departures.h"

#include <algorithm>
#include <utility>

namespace roofcast {

void Departures::retire(Slot slot) {
  LiveRequest& r = parts_.requests[slot];
  const std::int64_t tokens = parts_.batch.tokens_of(r);
  if (r.phase == Phase::kDecode) parts_.batch.leave_decodes(slot);
  r.base = tokens;
  parts_.kv.publish_output(slot, tokens);
  const bool keeps_row = parts_.scheduler->pads();
  if (keeps_row) parts_.batch.keep_row(r.base, parts_.kv.private_bytes(r));
  parts_.kv.release(slot, keeps_row);
  parts_.leave(slot);
}

std::int64_t Departures::suspend(Slot slot) {
  LiveRequest& r = parts_.requests[slot];
  const std::int64_t tokens = parts_.batch.tokens_of(r);
  if (r.phase == Phase::kDecode) {
    const int produced = parts_.batch.produced_of(r);
    r.last_token = parts_.delivery.leave(parts_.index, produced == r.produced);
    parts_.batch.leave_decodes(slot);
    r.produced = produced;
  } else {
    parts_.batch.remove_prompt(slot);
  }
  r.base = tokens;
  parts_.kv.release(slot, false);
  parts_.leave(slot);
  return tokens;
}

void Departures::drop(Slot slot) {
  LiveRequest& r = parts_.requests[slot];
  if (r.phase == Phase::kWaiting) {
    parts_.queue.remove(slot);
  } else if (r.phase == Phase::kPrefill) {
    (void)suspend(slot);
  } else {
    const int produced = parts_.batch.produced_of(r);
    (void)parts_.delivery.leave(parts_.index, produced == r.produced);
    retire(slot);
    r.produced = produced;
  }
  parts_.queue.left(r);
  r.phase = Phase::kEnded;
}

bool Departures::due() const {
  return std::any_of(cancelled_.begin(), cancelled_.end(), [&](Slot slot) { return !landing(parts_.requests[slot]); });
}

void Departures::drop_cancelled(std::vector<EndedRequest>& ended) {
  if (cancelled_.empty()) return;
  const auto with_step = static_cast<std::ptrdiff_t>(ended.size());
  const auto has_ended = [&](Slot slot) {
    if (parts_.requests[slot].phase == Phase::kEnded) return true;
    const auto handed_over = [slot](const EndedRequest& e) { return e.handed_over && !e.forks && e.slot == slot; };
    return parts_.options.prefill_only && std::any_of(ended.begin(), ended.begin() + with_step, handed_over);
  };
  for (const Slot slot : std::exchange(cancelled_, {})) {
    if (landing(parts_.requests[slot])) {
      cancelled_.push_back(slot);
    } else if (!has_ended(slot)) {
      drop(slot);
      ended.push_back({slot, parts_.delivery.delivered(), false});
    }
  }
}

/// Handles caches in transfer when the replica fails. They do not arrive: each stays at its source and waits to be
/// fetched again, unless the source has failed too. A cache that has arrived is lost, but its client has its first
/// token.
void Departures::lose_landings(SimTime now) {
  for (const auto& [at, slot] : parts_.link.landings()) {
    LiveRequest& r = parts_.requests[slot];
    if (r.held) {
      r.remote = true;
      ++r.epoch;
    } else if (at > now) {
      lose_remote_cache(r);
      ++r.epoch;
    } else if (r.produced == 1) {
      r.last_token = at;
    }
  }
  parts_.link.clear(now);
}

void Departures::evacuate(SimTime now, std::vector<Slot>& out) {
  lose_landings(now);
  cancelled_.clear();
  failed_ = false;
  while (parts_.batch.oldest() != kNoSlot) {
    out.push_back(parts_.batch.oldest());
    (void)suspend(out.back());
  }
  parts_.queue.clear(out);
  for (const Slot slot : out) {
    LiveRequest& r = parts_.requests[slot];
    r.phase = Phase::kWaiting;
    if (r.remote) continue;
    r.swapped = r.encoded = false;
    r.base = 0;
    r.target = r.prompt + r.produced;
  }
  parts_.kv.give(parts_.batch.close());
  parts_.kv.forget();
  parts_.adapters.forget();
}

void Departures::withdraw(int source, std::vector<Slot>& out) {
  const std::size_t before = out.size();
  parts_.queue.for_each([&](Slot slot) {
    const LiveRequest& r = parts_.requests[slot];
    if (r.remote && r.source == source && !r.cancelled) out.push_back(slot);
  });
  for (std::size_t i = before; i < out.size(); ++i) drop(out[i]);
}

}  // namespace roofcast
