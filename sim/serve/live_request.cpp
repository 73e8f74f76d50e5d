#include "sim/serve/live_request.h"

#include "sim/serve/traces.h"

namespace roofcast {

Slot RequestTable::add(const Request& request) {
  Slot slot = static_cast<Slot>(slots_);
  if (free_.empty()) {
    if (slots_++ % kPage == 0) pages_.push_back(std::make_unique<LiveRequest[]>(kPage));
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  LiveRequest& live = (*this)[slot];
  const std::uint32_t epoch = live.epoch + 1;
  live = LiveRequest{};
  live.epoch = epoch;
  live.id = request.id;
  live.prompt = live.target = request.prompt_tokens;
  live.output = request.output_tokens;
  live.session = request.session;
  live.root_session = request.root_session;
  live.adapter = static_cast<std::uint16_t>(request.adapter);
  live.client = static_cast<std::uint16_t>(request.client);
  if (!request.prefix_blocks.empty()) {
    PrefixBlocks& blocks = add_blocks(live, request.prefix_block_tokens);
    blocks.hashes.assign(request.prefix_blocks.begin(), request.prefix_blocks.end());
    blocks.given = blocks.hashes.size();
    blocks.cut = request.prefix_cut;
    blocks.branched = request.prefix_branch;
    blocks.tokens = request.prefix_tokens;
    if (blocks.tokens == 0) {
      const std::int64_t all = static_cast<std::int64_t>(blocks.given) * blocks.block_tokens;
      const bool of_prompt = all - request.prompt_tokens < blocks.block_tokens;
      blocks.tokens = of_prompt ? std::min<std::int64_t>(all, request.prompt_tokens) : all;
    }
  }
  return slot;
}

PrefixBlocks& RequestTable::add_blocks(LiveRequest& live, int block_tokens) {
  if (free_prefixes_.empty()) {
    free_prefixes_.push_back(static_cast<std::int32_t>(prefixes_.size()));
    prefixes_.push_back({});
  }
  live.blocks = free_prefixes_.back();
  free_prefixes_.pop_back();
  PrefixBlocks& blocks = prefixes_[static_cast<std::size_t>(live.blocks)];
  blocks.hashes.clear();
  blocks.pinned.clear();
  blocks.block_tokens = block_tokens;
  blocks.given = 0;
  blocks.cut = blocks.branched = blocks.tokens = blocks.branch = 0;
  return blocks;
}

PrefixBlocks& RequestTable::own_blocks(Slot slot, std::int64_t tokens, int block_tokens) {
  LiveRequest& live = (*this)[slot];
  if (live.blocks < 0) add_blocks(live, block_tokens);
  PrefixBlocks& blocks = *prefix(slot);
  if (tokens <= blocks.tokens) return blocks;
  if (blocks.cut == 0 && blocks.tokens % blocks.block_tokens != 0) blocks.cut = blocks.tokens;
  blocks.tokens = tokens;
  while (blocks.begin(blocks.hashes.size()) < tokens) blocks.hashes.push_back(mix_bits(~next_own_++));
  return blocks;
}

Slot RequestTable::fork(Slot of, int output) {
  const LiveRequest parent = (*this)[of];
  Request request;
  request.id = parent.id;
  request.prompt_tokens = parent.prompt;
  request.output_tokens = output;
  request.session = parent.session;
  request.root_session = parent.root_session;
  request.adapter = parent.adapter;
  request.client = parent.client;
  const Slot slot = add(request);
  LiveRequest& live = (*this)[slot];
  live.arrival = parent.arrival;
  live.counted = parent.counted;
  live.priority = parent.priority;
  live.family = parent.family;
  if (parent.blocks < 0) return slot;
  add_blocks(live, prefix(of)->block_tokens);
  PrefixBlocks &mine = *prefix(slot), &theirs = *prefix(of);
  mine.cut = theirs.cut < parent.prompt ? theirs.cut : 0;
  mine.branched = theirs.branched < parent.prompt ? theirs.branched : 0;
  mine.tokens = std::min<std::int64_t>(theirs.tokens, parent.prompt);
  mine.hashes.assign(theirs.hashes.begin(),
                     theirs.hashes.begin() + static_cast<std::ptrdiff_t>(theirs.begun(mine.tokens)));
  mine.given = mine.hashes.size();
  return slot;
}

std::size_t PrefixBlocks::begun(std::int64_t n) const {
  std::size_t i = std::min(hashes.size(), static_cast<std::size_t>((n + block_tokens - 1) / block_tokens));
  while (i < hashes.size() && begin(i) < n) ++i;
  return i;
}

void RequestTable::remove(Slot slot) {
  LiveRequest& live = (*this)[slot];
  ++live.epoch;
  live.phase = Phase::kEnded;
  if (live.blocks >= 0) free_prefixes_.push_back(live.blocks);
  live.blocks = -1;
  free_.push_back(slot);
}

}  // namespace roofcast
