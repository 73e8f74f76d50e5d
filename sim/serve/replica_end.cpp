// The end of a run: delivers tokens, grows caches, ends requests.
#include <algorithm>

#include "sim/serve/replica.h"

namespace roofcast {

void Replica::end_run(std::vector<Ended>& ended) {
  std::int64_t tokens = 0;
  for (const auto& rank : ranks_) tokens += tokens_out(*rank);
  delivery_.deliver(run_, tokens);
  count_work(tokens);
  if (first().options.speculation.diffuses()) {
    for (const auto& rank : ranks_) answer_blocks(rank->parts);
  }
  carry_ += run_.cost.time - (run_.end - run_.start).seconds();
  balance_.advance(run_.steps);
  for (const auto& rank : ranks_) {
    rank->plan.advance(run_.steps);
    for (const PlannedChunk& c : rank->plan.chunks()) finish_chunk(*rank, c, ended);
    RankParts& parts = rank->parts;
    const std::size_t before = ended.size();
    parts.batch.for_each_finished([&](Slot slot) { end(*rank, slot, ended); });
    const bool by_slot = !parts.options.speculation.active();
    for (std::size_t i = before; by_slot && i < ended.size(); ++i)
      ended[i].together = static_cast<std::uint16_t>(parts.index + 1);
    rank->departures.drop_cancelled(ended);
    parts.batch.raise_levels();
    if (parts.batch.running() == 0) parts.kv.give(parts.batch.close());
    release_answers(*rank, ended);
  }
  busy_ = false;
}

/// A static batch answers all of its requests at its end. If it is lost, it answers those that it has finished.
void Replica::release_answers(Rank& rank, std::vector<Ended>& ended) {
  if (!rank.parts.scheduler->pads()) return;
  std::erase_if(ended, [&](const Ended& e) {
    const bool done = !e.handed_over && !e.forks && !request(e.slot).cancelled && &rank_of(e.slot) == &rank;
    if (done) rank.held.push_back(e);
    return done;
  });
  if (rank.parts.batch.running() > 0 && !rank.departures.failed()) return;
  for (Ended& e : rank.held) ended.push_back({e.slot, std::max(e.delivered, delivery_.answered()), false});
  rank.held.clear();
}

/// Grows caches by the decoded and verified tokens. Returns the number of tokens that leave a rank: one per decoding
/// sequence and finished prompt, and the accepted drafts.
std::int64_t Replica::tokens_out(Rank& rank) {
  RankParts& parts = rank.parts;
  const auto index = static_cast<std::size_t>(parts.index);
  const int rows = run_.ranks.empty() ? run_.rows : run_.ranks[index].decodes;
  const int decoding = run_.decoding[index];
  std::int64_t tokens = decoding;
  rank.growth = 0;
  for (const PlannedChunk& c : rank.plan.chunks()) {
    const LiveRequest& r = parts.requests[c.slot];
    tokens += r.base + c.tokens == r.target && !parts.options.speculation.diffuses() ? 1 : 0;
  }
  if (decoding > 0 && parts.options.speculation.active()) {
    tokens += verify_decodes(parts) - decoding;
  } else if (rows > 0 && !parts.options.speculation.active()) {
    rank.growth = parts.batch.growth(run_.steps);
    parts.kv.take(rank.growth);
    parts.batch.advance(run_.steps);
  }
  return tokens;
}

/// Every sequence keeps the accepted drafts and one more token. Returns the number of tokens.
std::int64_t Replica::verify_decodes(RankParts& rank) {
  std::int64_t out = 0;
  ServingMetrics& m = rank.collector.metrics();
  rank.batch.for_each([&](Slot, LiveRequest& r) {
    if (r.phase != Phase::kDecode) return;
    const int accepted = law_.draw(random_);
    const std::int64_t tokens = std::min<std::int64_t>(1 + accepted, rank.batch.left_of(r));
    rank.kv.take(rank.kv.bytes(r.base + tokens) - rank.kv.bytes(r.base));
    rank.batch.advance(r, tokens);
    out += tokens;
    m.drafted_tokens += rank.options.speculation.num_speculative_tokens;
    m.accepted_tokens += accepted;
  });
  return out;
}

void Replica::count_work(std::int64_t tokens) {
  Collector& collector = first().collector;
  StepRecord record{.replica = index(),
                    .start = run_.start.seconds(),
                    .end = run_.end.seconds(),
                    .steps = run_.steps,
                    .decodes = run_.rows,
                    .prefills = 0,
                    .prefill_tokens = 0,
                    .waiting = 0,
                    .kv_usage = 0};
  const double all = gpus();
  Collector::Work work{.busy_seconds = (run_.end - run_.start).seconds().base(),
                       .flops = run_.cost.flops.base() * all,
                       .bytes = run_.cost.bytes.base() * all,
                       .front_end_seconds = delivery_.front_end_busy(tokens * run_.steps).base()};
  for (const auto& rank : ranks_) {
    record.prefills += static_cast<int>(rank->plan.chunks().size());
    std::int64_t prompt_tokens = 0;
    for (const PlannedChunk& c : rank->plan.chunks()) prompt_tokens += c.tokens;
    record.prefill_tokens += prompt_tokens;
    count_waste(*rank, prompt_tokens, work);
    record.waiting += static_cast<std::int64_t>(rank->parts.queue.waiting().size());
    record.kv_usage += rank->parts.kv.pool().usage() / static_cast<double>(ranks_.size());
    collector.metrics().offload_stored_bytes += static_cast<double>(rank->parts.kv.take_stored());
  }
  collector.work(run_.start, run_.end, work, first().options.prefill_only);
  collector.step(record);
}

/// Counts allocated but unfilled cache, and tokens computed in vain.
void Replica::count_waste(const Rank& rank, std::int64_t prompt_tokens, Collector::Work& work) const {
  const RankParts& parts = rank.parts;
  const auto index = static_cast<std::size_t>(parts.index);
  const int own_rows = run_.ranks.empty() ? run_.rows : run_.ranks[index].decodes;
  const std::int64_t padding = rank.plan.has_prefill() ? rank.padding : 0;
  const std::int64_t again = engine().kv_cache ? 0 : rank.recomputed, idle = engine().kv_cache ? 0 : rank.repadded;
  const std::int64_t rows = run_.steps * parts.query_len * own_rows;
  const std::int64_t ended = own_rows > 0 ? run_.steps * (own_rows - run_.decoding[index]) : 0;
  work.computed_tokens += static_cast<double>(prompt_tokens + padding + rows + again);
  work.padding_tokens += static_cast<double>(padding + ended * parts.query_len + idle);
  const KvLayout& layout = parts.kv.layout();
  const std::vector<Slot>& prompts = parts.batch.prompts();
  std::int64_t tokens = parts.batch.decoded_tokens() + prompt_tokens + parts.link.held_tokens();
  for (const Landing& landing : parts.link.landings()) tokens += parts.requests[landing.slot].base;
  for (const Slot slot : prompts) tokens += parts.requests[slot].base;
  for (const PlannedChunk& c : rank.plan.chunks()) {  // prompts processed whole in this step are not in prompts()
    if (std::find(prompts.begin(), prompts.end(), c.slot) == prompts.end()) tokens += parts.requests[c.slot].base;
  }
  // Averages over the steps of a run, because tokens and blocks grow.
  const double seconds = (run_.end - run_.start).seconds().base(), steps = static_cast<double>(run_.steps);
  const double grown = run_.decoding[index] * (steps - 1) / 2;
  const int sequences = parts.batch.running() + parts.link.held();
  const double filled = layout.windows().empty() ? layout.filled_bytes(static_cast<double>(tokens) - grown, sequences)
                                                 : filled_with_windows(rank);
  const double held = static_cast<double>(parts.kv.pool().private_bytes()) -
                      static_cast<double>(rank.growth) * (steps - 1) / (2 * steps);
  work.kv_held += seconds * held;
  work.kv_filled += seconds * (filled - static_cast<double>(parts.kv.shared_bytes()));
}

/// Adds up sequences one by one: each fills at most the window in layers with a window.
double Replica::filled_with_windows(const Rank& rank) const {
  const RankParts& parts = rank.parts;
  const KvLayout& layout = parts.kv.layout();
  const auto filled_by = [&](Slot slot) { return layout.filled_by_one(parts.requests[slot].base, 1); };
  const std::vector<Slot>& prompts = parts.batch.prompts();
  double filled = parts.batch.filled_by_decodes(run_.steps);
  for (const Slot slot : prompts) filled += filled_by(slot);
  for (const Landing& landing : parts.link.landings()) filled += filled_by(landing.slot);
  for (const PlannedChunk& c : rank.plan.chunks()) {
    filled += layout.filled_by_one(parts.requests[c.slot].base + c.tokens, 1);
    if (std::find(prompts.begin(), prompts.end(), c.slot) != prompts.end()) filled -= filled_by(c.slot);
  }
  for (const auto& held : parts.link.held_caches()) filled += layout.filled_by_one(held.second, 1);
  return filled;
}

/// After its last chunk, a prompt has its first token, and its blocks can be shared.
void Replica::finish_chunk(Rank& rank, const PlannedChunk& chunk, std::vector<Ended>& ended) {
  RankParts& parts = rank.parts;
  LiveRequest& r = parts.requests[chunk.slot];
  r.base += chunk.tokens;
  if (r.base < r.target) return;
  parts.batch.remove_prompt(chunk.slot);
  parts.kv.publish_prompt(chunk.slot);
  if (parts.options.speculation.diffuses()) return join_passes(rank, chunk.slot);
  if (r.produced == 0) {
    r.first_token = delivery_.answered();
  } else {
    delivery_.resume(parts.index, r.last_token);
  }
  if (r.forks && r.produced == 0) ended.push_back({chunk.slot, delivery_.answered(), false, true});
  if (++r.produced >= r.output) return end(rank, chunk.slot, ended);
  if (parts.options.prefill_only) return hand_over(parts, chunk.slot, ended);
  parts.batch.join_decodes(chunk.slot);
  delivery_.join(parts.index, delivery_.delivered());
}

/// The prefill of a diffusion model yields no token: the tokens of the first block are final after its passes.
void Replica::join_passes(Rank& rank, Slot slot) {
  rank.parts.batch.join_decodes(slot);
  delivery_.join(rank.parts.index, delivery_.delivered());
}

/// Delivers sequences whose first block has just been finished.
void Replica::answer_blocks(RankParts& rank) {
  const int block = 1 + rank.options.speculation.num_speculative_tokens;
  rank.batch.for_each([&](Slot, LiveRequest& r) {
    if (r.phase != Phase::kDecode || r.first_token > SimTime(0)) return;
    if (rank.batch.produced_of(r) >= std::min(block, r.output)) r.first_token = delivery_.answered();
  });
}

void Replica::end(Rank& rank, Slot slot, std::vector<Ended>& ended) {
  LiveRequest& r = rank.parts.requests[slot];
  rank.departures.retire(slot);
  rank.parts.queue.left(r);
  r.produced = r.output;
  r.phase = Phase::kEnded;
  ended.push_back({slot, std::max(r.first_token, delivery_.answered()), false});
}

/// Hands a sequence over: its cache stays here until the decode replica has fetched it; the sequence no longer runs.
void Replica::hand_over(RankParts& rank, Slot slot, std::vector<Ended>& ended) {
  LiveRequest& r = rank.requests[slot];
  rank.link.hold(r, index(), rank.kv.private_bytes(r));
  rank.kv.release(slot, true);
  rank.leave(slot);
  rank.queue.left(r);
  r.prefilled = run_.end;
  r.last_token = delivery_.delivered();
  r.phase = Phase::kWaiting;
  ended.push_back({slot, r.last_token, true});
}

bool Replica::someone_waits() const {
  return std::any_of(rank_parts_.begin(), rank_parts_.end(),
                     [](const RankParts* rank) { return !rank->queue.waiting().empty(); });
}

std::size_t Replica::on_their_way() const {
  std::size_t sum = 0;
  for (const RankParts* rank : rank_parts_) sum += rank->queue.on_their_way();
  return sum;
}

int Replica::running() const {
  int sum = 0;
  for (const RankParts* rank : rank_parts_) sum += rank->batch.running();
  return sum;
}

std::size_t Replica::queued() const {
  std::size_t sum = 0;
  for (const RankParts* rank : rank_parts_) sum += rank->queue.size();
  return sum;
}

std::int64_t Replica::outstanding_tokens() const {
  std::int64_t sum = 0;
  for (const RankParts* rank : rank_parts_) sum += rank->queue.prompt_tokens();
  return sum;
}

std::int64_t Replica::cached_blocks(std::span<const std::uint64_t> hashes) const {
  std::int64_t most = 0;
  for (const RankParts* rank : rank_parts_) most = std::max(most, rank->kv.pool().cached_blocks(hashes));
  return most;
}

bool Replica::empty() const {
  const auto has_cache = [](const RankParts* rank) {
    return rank->kv.pool().private_bytes() != 0 || rank->kv.pool().pinned_bytes() != 0;
  };
  return outstanding() == 0 && outstanding_tokens() == 0 &&
         std::none_of(rank_parts_.begin(), rank_parts_.end(), has_cache);
}

bool Replica::holds_caches() const {
  return std::any_of(rank_parts_.begin(), rank_parts_.end(),
                     [](const RankParts* rank) { return rank->link.held() > 0; });
}

std::vector<Replica::Landing> Replica::landings() const {
  std::vector<Landing> all;
  for (const RankParts* rank : rank_parts_)
    all.insert(all.end(), rank->link.landings().begin(), rank->link.landings().end());
  return all;
}

std::vector<Replica::Landing> Replica::take_fetches() {
  std::vector<Landing> all;
  for (const auto& rank : ranks_) {
    const std::vector<Landing> fetches = rank->parts.link.take_fetches();
    all.insert(all.end(), fetches.begin(), fetches.end());
  }
  return all;
}

}  // namespace roofcast
