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
  live.client = static_cast<std::uint8_t>(request.client);
  if (!request.prefix_blocks.empty()) {
    PrefixBlocks& blocks = add_blocks(live, request.prefix_block_tokens);
    blocks.hashes.assign(request.prefix_blocks.begin(), request.prefix_blocks.end());
    blocks.given = blocks.hashes.size();
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
  return blocks;
}

PrefixBlocks& RequestTable::own_blocks(Slot slot, std::int64_t tokens, int block_tokens) {
  LiveRequest& live = (*this)[slot];
  if (live.blocks < 0) add_blocks(live, block_tokens);
  PrefixBlocks& blocks = *prefix(slot);
  const auto whole = static_cast<std::size_t>(tokens / blocks.block_tokens);
  while (blocks.hashes.size() < whole) blocks.hashes.push_back(mix_bits(~next_own_++));
  return blocks;
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
