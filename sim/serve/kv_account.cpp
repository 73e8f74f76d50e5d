#include "sim/serve/kv_account.h"

#include <algorithm>

namespace roofcast {

void KvAccount::admit(Slot slot, const KvPool::Hit& hit, std::int64_t bytes, std::int64_t reserve) {
  LiveRequest& r = requests_[slot];
  if (hit.tokens > 0 || hit.branch > 0) pool_.pin(*requests_.prefix(slot), hit);
  pool_.take(bytes);
  r.pinned_bytes = hit.bytes;
  shared_ += hit.bytes;
  r.reserved = reserve;
  reserved_ += reserve;
}

void KvAccount::release(Slot slot, bool keep_private) {
  LiveRequest& r = requests_[slot];
  if (!keep_private) pool_.give(private_bytes(r));
  if (PrefixBlocks* prefix = requests_.prefix(slot)) pool_.unpin(*prefix);
  shared_ -= r.pinned_bytes;
  r.pinned_bytes = 0;
  reserved_ -= r.reserved;
  r.reserved = 0;
}

void KvAccount::publish_prompt(Slot slot) {
  LiveRequest& r = requests_[slot];
  if (PrefixBlocks* prefix = requests_.prefix(slot)) share(r, pool_.publish_prompt(*prefix, r.prompt));
}

void KvAccount::publish_output(Slot slot, std::int64_t tokens) {
  LiveRequest& r = requests_[slot];
  if (PrefixBlocks* prefix = requests_.prefix(slot)) share(r, pool_.publish_output(*prefix, r.prompt, tokens));
}

void KvAccount::publish_computed(Slot slot, std::int64_t tokens) {
  if (!pool_.caches_prefixes()) return;
  PrefixBlocks& blocks = requests_.own_blocks(slot, tokens, kPrefixBlock);
  share(requests_[slot], pool_.publish_computed(blocks, tokens));
}

/// Private bytes of a request became pinned; its reservation does not include pinned bytes.
void KvAccount::share(LiveRequest& r, std::int64_t bytes) {
  r.pinned_bytes += bytes;
  shared_ += bytes;
  const std::int64_t reserved = std::min(bytes, r.reserved);
  r.reserved -= reserved;
  reserved_ -= reserved;
}

}  // namespace roofcast
