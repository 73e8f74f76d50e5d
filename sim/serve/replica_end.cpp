// What a run leaves behind: tokens delivered, caches grown, requests ended.
#include <algorithm>

#include "sim/serve/replica.h"

namespace roofcast {

void Replica::end_run(std::vector<Ended>& ended) {
  const std::int64_t tokens = tokens_out();
  parts_.delivery.deliver(run_, tokens, parts_.batch.decoding());
  count_work();
  carry_ += run_.cost.time - (run_.end - run_.start).seconds();
  plan_.advance(run_.steps);
  for (const PlannedChunk& c : plan_.chunks()) finish_chunk(c, ended);
  parts_.batch.for_each_finished([&](Slot slot) { end(slot, ended); });
  departures_.drop_cancelled(ended);
  parts_.batch.raise_levels();
  if (running() == 0) parts_.kv.give(parts_.batch.close());
  busy_ = false;
}

/// Caches grow by what was decoded and verified. Returns the tokens that come out: one of each decoding sequence and of
/// each prompt that is done, and the drafts that were accepted.
std::int64_t Replica::tokens_out() {
  const int decoding = run_.rows > 0 ? parts_.batch.decoding() : 0;
  std::int64_t tokens = decoding;
  for (const PlannedChunk& c : plan_.chunks()) {
    const LiveRequest& r = parts_.requests[c.slot];
    tokens += r.base + c.tokens == r.target ? 1 : 0;
  }
  if (decoding > 0 && parts_.options.speculation.active()) {
    tokens += verify_decodes() - decoding;
  } else if (run_.rows > 0) {
    parts_.kv.take(parts_.batch.growth(run_.steps));
    parts_.batch.advance(run_.steps);
  }
  return tokens;
}

/// Every sequence keeps the drafts that were accepted and one token more. Returns the tokens that came out.
std::int64_t Replica::verify_decodes() {
  std::int64_t out = 0;
  ServingMetrics& m = parts_.collector.metrics();
  parts_.batch.for_each([&](Slot, LiveRequest& r) {
    if (r.phase != Phase::kDecode) return;
    const int accepted = law_.draw(random_);
    const std::int64_t tokens = std::min<std::int64_t>(1 + accepted, parts_.batch.left_of(r));
    parts_.kv.take(parts_.kv.bytes(r.base + tokens) - parts_.kv.bytes(r.base));
    parts_.batch.advance(r, tokens);
    out += tokens;
    m.drafted_tokens += parts_.options.speculation.num_speculative_tokens;
    m.accepted_tokens += accepted;
  });
  return out;
}

void Replica::count_work() {
  StepRecord record{.replica = index(),
                    .start = run_.start.seconds(),
                    .end = run_.end.seconds(),
                    .steps = run_.steps,
                    .decodes = run_.rows,
                    .prefills = static_cast<int>(plan_.chunks().size()),
                    .prefill_tokens = 0,
                    .waiting = static_cast<std::int64_t>(parts_.queue.waiting().size()),
                    .kv_usage = pool().usage()};
  for (const PlannedChunk& c : plan_.chunks()) record.prefill_tokens += c.tokens;
  parts_.collector.metrics().offload_stored_bytes += static_cast<double>(parts_.kv.take_stored());
  const double all = gpus();
  parts_.collector.work(run_.start, run_.end,
                        {.busy_seconds = (run_.end - run_.start).seconds().base(),
                         .flops = run_.cost.flops.base() * all,
                         .bytes = run_.cost.bytes.base() * all},
                        parts_.options.prefill_only);
  parts_.collector.step(record);
}

/// A prompt whose last chunk is done has its first token, and its blocks can be shared.
void Replica::finish_chunk(const PlannedChunk& chunk, std::vector<Ended>& ended) {
  LiveRequest& r = parts_.requests[chunk.slot];
  TokenDelivery& delivery = parts_.delivery;
  r.base += chunk.tokens;
  if (r.base < r.target) return;
  parts_.batch.remove_prompt(chunk.slot);
  parts_.kv.publish_prompt(chunk.slot);
  if (r.produced == 0) {
    r.first_token = delivery.answered();
  } else {
    delivery.resume(r.last_token);
  }
  if (++r.produced >= r.output) return end(chunk.slot, ended);
  if (parts_.options.prefill_only) return hand_over(chunk.slot, ended);
  parts_.batch.join_decodes(chunk.slot);
  delivery.join(delivery.delivered());
}

void Replica::end(Slot slot, std::vector<Ended>& ended) {
  LiveRequest& r = parts_.requests[slot];
  departures_.retire(slot);
  parts_.queue.left(r);
  r.produced = r.output;
  r.phase = Phase::kEnded;
  ended.push_back({slot, std::max(r.first_token, parts_.delivery.answered()), false});
}

/// The cache stays here until the decoding replica has fetched it; the sequence runs no longer.
void Replica::hand_over(Slot slot, std::vector<Ended>& ended) {
  LiveRequest& r = parts_.requests[slot];
  parts_.link.hold(r, index(), parts_.kv.private_bytes(r));
  parts_.kv.release(slot, true);
  parts_.batch.leave(slot);
  parts_.queue.left(r);
  r.prefilled = run_.end;
  r.last_token = parts_.delivery.delivered();
  r.phase = Phase::kWaiting;
  ended.push_back({slot, r.last_token, true});
}

}  // namespace roofcast
