#include "sim/serve/kv_pool.h"

#include <algorithm>
#include <cmath>

#include "sim/serve/traces.h"
#include "sim/step/region.h"

namespace roofcast {
namespace {

constexpr std::int64_t kUnlimited = std::int64_t{1} << 60;
/// SGLang saves states at multiples of a chunk of its recurrent kernels, or of a page (server_args.py,
/// mamba_cache_chunk_size).
constexpr std::int64_t kStateChunk = 64;

/// Key of a prompt block in the layers of window `w`.
std::uint64_t window_key(std::uint64_t hash, std::size_t w) { return mix_bits(hash + 1 + w); }

/// Key of the state after the first `tokens` tokens, derived from the block that holds the last of them.
std::uint64_t state_key(const PrefixBlocks& prefix, std::int64_t tokens) {
  const std::uint64_t hash = prefix.hashes[prefix.begun(tokens) - 1];
  return mix_bits(~hash + static_cast<std::uint64_t>(tokens));
}

std::int64_t capacity_of(const Deployment& d) {
  if (!d.engine.kv_cache) return kUnlimited;
  return static_cast<std::int64_t>(std::max(0.0, std::floor(d.memory.cache.base())));
}

/// Tokens between saved states; 0: none are saved.
std::int64_t state_step(const Deployment& d) {
  if (d.engine.state_checkpoints == "ends") return std::max<std::int64_t>(kStateChunk, d.engine.block_size);
  if (d.engine.state_checkpoints == "blocks") return d.memory.state_block;
  return 0;
}

/// Whether prompts can reuse any part of a prefix.
bool finds_prefixes(const Deployment& d, const KvLayout& layout) {
  if (!d.engine.prefix_caching || !d.engine.kv_cache || !layout.paged()) return false;
  return d.memory.layout.state_per_sequence <= Bytes(0) || state_step(d) > 0;
}

}  // namespace

KvPool::KvPool(const Deployment& d, const SharedTiers& shared)
    : layout_(d.engine.kv_cache ? d.memory.pooled() : CacheLayout{}, d.engine.block_size,
              static_cast<std::int64_t>(region_tokens(d))),
      capacity_(capacity_of(d)),
      watermark_(static_cast<std::int64_t>(d.engine.watermark * static_cast<double>(capacity_))),
      state_step_(d.memory.layout.state_per_sequence > Bytes(0) ? state_step(d) : 0),
      states_at_ends_(d.engine.state_checkpoints == "ends"),
      states_apart_(d.memory.states > Bytes(0)),
      caches_prefixes_(finds_prefixes(d, layout_)),
      host_capacity_(static_cast<std::int64_t>(d.engine.kv_offload.base())),
      state_bytes_(static_cast<std::int64_t>(std::ceil(d.memory.layout.state_per_sequence.base()))),
      tiers_(d, shared) {
  if (states_apart_)
    state_capacity_ = static_cast<std::int64_t>(d.memory.states.base()) -
                      static_cast<std::int64_t>(d.memory.max_sequences) * state_bytes_;
}

void KvPool::take(std::int64_t bytes) {
  private_ += bytes;
  make_room();
}

void KvPool::make_room() {
  const std::int64_t excess = private_ + cache_.pinned_bytes() + cache_.evictable_bytes() - capacity_;
  if (excess <= 0) return;
  std::vector<PrefixCache::Evicted> gone;
  const std::int64_t freed = cache_.evict(excess, host_capacity_ > 0 ? &gone : nullptr);
  SIM_CHECK(freed >= excess, "no more cache is allocated than there is");
  keep_in_host(gone);
}

/// Stores evicted blocks in host memory as the most recently used, each with the larger token count.
void KvPool::keep_in_host(const std::vector<PrefixCache::Evicted>& gone) {
  for (const PrefixCache::Evicted& block : gone) {
    const PrefixCache::Entry there = host_.find(block.hash);
    stored_ += std::max<std::int64_t>(0, block.bytes - (there < 0 ? 0 : host_.bytes_of(there)));
    host_.keep(block.hash, block.bytes, block.tokens);
    if (host_.evictable_bytes() > host_capacity_) host_.evict(host_.evictable_bytes() - host_capacity_);
  }
}

void KvPool::forget() {
  (void)cache_.evict(cache_.evictable_bytes());
  (void)host_.evict(host_.evictable_bytes());
  tiers_.forget();
  (void)states_.evict(states_.evictable_bytes());
}

/// Extends the hit by whole blocks that are on the GPU or in host memory, with the windows that they need.
void KvPool::look_up_host(const PrefixBlocks& prefix, std::int64_t most, Hit& hit) const {
  const std::int64_t block = layout_.block();
  if (layout_.kept_bytes(block) == 0) return;
  struct Copy {
    std::int64_t begin, bytes;
  };
  std::vector<Copy> copies;  // of blocks for which host memory has more tokens than the GPU
  std::size_t i = hit.blocks > 0 ? hit.blocks - 1 : 0;
  std::int64_t there = prefix.begin(i);
  for (; i < prefix.hashes.size() && there == prefix.begin(i) && there < most; ++i) {
    const PrefixCache::Entry here = cache_.find(prefix.hashes[i]), host = host_.find(prefix.hashes[i]);
    const std::int64_t tokens = here < 0 ? 0 : cache_.tokens_of(here);
    const bool copied = host >= 0 && host_.tokens_of(host) > tokens;
    if (copied) copies.push_back({there, host_.bytes_of(host)});
    there = std::min(prefix.end(i), there + (copied ? host_.tokens_of(host) : tokens));
  }
  std::int64_t windows = 0, found = std::min(there, most) / block * block;
  while (found > hit.tokens && !windows_there(prefix, found, windows)) found -= block;
  if (found <= hit.tokens) return;
  hit.host = windows;
  for (const Copy& copy : copies) hit.host += copy.begin < found ? copy.bytes : 0;
  hit.host_tokens = static_cast<int>(found) - hit.tokens;
  hit.tokens = static_cast<int>(found);
}

/// Extends the hit by blocks from the tiers.
void KvPool::look_up_tiers(const PrefixBlocks& prefix, std::int64_t most, Hit& hit) const {
  const KvTiers::Found found = tiers_.look_up(prefix, hit.tokens, most);
  hit.host += found.bytes;
  hit.host_tokens += static_cast<int>(found.tokens);
  hit.tier_tokens = static_cast<int>(found.tokens);
  hit.tier_time = found.time;
  hit.tokens += hit.tier_tokens;
}

/// Whether the windows before token `tokens` are on the GPU or in host memory. Adds the bytes in host memory to `host`.
bool KvPool::windows_there(const PrefixBlocks& prefix, std::int64_t tokens, std::int64_t& host) const {
  host = 0;
  for (std::size_t w = 0; w < layout_.windows().size(); ++w) {
    for (std::size_t i = prefix.begun(tokens); i-- > 0 && prefix.end(i) > tokens - layout_.windows()[w].needed;) {
      const std::uint64_t key = window_key(prefix.hashes[i], w);
      if (cache_.find(key) >= 0) continue;
      const PrefixCache::Entry there = host_.find(key);
      if (there < 0) return false;
      host += host_.bytes_of(there);
    }
  }
  return true;
}

/// The longest prefix of at most `most` tokens whose window `w` is cached without a gap.
std::int64_t KvPool::in_window(const PrefixBlocks& prefix, std::size_t w, std::int64_t most) const {
  const std::int64_t block = layout_.block(), needed = layout_.windows()[w].needed;
  std::int64_t best = 0, since = 0;
  for (std::size_t i = 0; i < prefix.hashes.size() && prefix.begin(i) < most; ++i) {
    const std::int64_t begin = prefix.begin(i), end = prefix.end(i);
    const PrefixCache::Entry entry = cache_.find(window_key(prefix.hashes[i], w));
    const std::int64_t there = entry < 0 ? begin : std::min(end, begin + cache_.tokens_of(entry));
    const std::int64_t until = std::min(there, most) / block * block;
    if (until > best && (since == 0 || until - needed >= since)) best = until;
    if (there < end) since = end;
  }
  return best;
}

/// The longest prefix of at most `most` tokens whose state is saved.
std::int64_t KvPool::at_state(const PrefixBlocks& prefix, std::int64_t most) const {
  for (std::int64_t at = most / state_step_ * state_step_; at > 0; at -= state_step_) {
    if (states().find(state_key(prefix, at)) >= 0) return at;
  }
  return 0;
}

/// Sets the leading blocks of the hit that the sequence shares. Later blocks, and partly cached ones, are copied.
void KvPool::share(const PrefixBlocks& prefix, Hit& hit) const {
  if (layout_.kept_bytes(layout_.block()) == 0) return;  // layers with windows only
  for (std::size_t i = 0; i < prefix.hashes.size(); ++i) {
    const PrefixCache::Entry entry = cache_.find(prefix.hashes[i]);
    if (entry < 0 || prefix.begin(i) + cache_.tokens_of(entry) > hit.tokens) break;
    hit.blocks = i + 1;
    hit.bytes += cache_.bytes_of(entry);
    if (!cache_.pinned(entry)) hit.unpinned += cache_.bytes_of(entry);
    if (prefix.begin(i) + cache_.tokens_of(entry) < prefix.end(i)) break;
  }
}

/// The last token of a prompt is always computed, because it produces the first output token. A fully cached prompt
/// therefore recomputes its last block, as in vLLM.
KvPool::Hit KvPool::look_up(const PrefixBlocks* prefix, int target) const {
  Hit hit;
  if (!caches_prefixes_ || prefix == nullptr) return hit;
  const std::int64_t block = layout_.block(), most = (target - 1) / block * block;
  std::int64_t found = std::min(most, prefix->tokens);
  if (layout_.kept_bytes(block) > 0) {
    std::int64_t there = 0;
    for (std::size_t i = 0; i < prefix->hashes.size() && there == prefix->begin(i); ++i) {
      const PrefixCache::Entry entry = cache_.find(prefix->hashes[i]);
      if (entry >= 0) there = std::min(prefix->end(i), there + cache_.tokens_of(entry));
    }
    found = std::min(found, there);
  }
  found = found / block * block;
  hit.branch = found;
  for (std::int64_t before = -1; before != found;) {  // each group of layers may shorten the prefix
    before = found;
    for (std::size_t w = 0; w < layout_.windows().size(); ++w) found = in_window(*prefix, w, found);
    if (state_step_ > 0) found = at_state(*prefix, found) / block * block;
  }
  if (state_step_ == 0 || found == hit.branch) hit.branch = 0;
  hit.tokens = static_cast<int>(found);
  share(*prefix, hit);
  if (host_capacity_ > 0 && state_step_ == 0) look_up_host(*prefix, most, hit);
  if (tiers_.any()) look_up_tiers(*prefix, most, hit);
  return hit;
}

/// Pins the shared blocks. The copied part of the hit becomes most recently used.
void KvPool::pin(PrefixBlocks& prefix, const Hit& hit) {
  for (std::size_t i = 0; i < hit.blocks; ++i) prefix.pinned.push_back(cache_.pin(prefix.hashes[i]));
  for (std::size_t w = 0; w < layout_.windows().size(); ++w) {
    const std::size_t last = prefix.begun(hit.tokens);
    for (std::size_t i = prefix.begun(std::max<std::int64_t>(0, hit.tokens - layout_.windows()[w].needed)); i < last;
         ++i) {
      const PrefixCache::Entry entry = cache_.find(window_key(prefix.hashes[i], w));
      if (entry >= 0) cache_.keep(window_key(prefix.hashes[i], w), cache_.bytes_of(entry), cache_.tokens_of(entry));
    }
  }
  prefix.branch = states_at_ends_ ? hit.branch / std::max<std::int64_t>(1, state_step_) * state_step_ : 0;
  if (state_step_ > 0 && hit.tokens > 0) keep_state(prefix, hit.tokens);
}

/// Publishes the first `tokens` tokens of a sequence, in at most `blocks` blocks.
std::int64_t KvPool::publish(PrefixBlocks& prefix, std::int64_t tokens, std::size_t blocks) {
  const std::int64_t moved = layout_.kept_bytes(layout_.block()) > 0 ? publish_shared(prefix, tokens, blocks) : 0;
  if (!layout_.windows().empty()) publish_windows(prefix, tokens, blocks);
  if (state_step_ > 0 && blocks > 0) publish_states(prefix, tokens, prefix.end(blocks - 1));
  make_room();
  return moved;
}

std::int64_t KvPool::publish_shared(PrefixBlocks& prefix, std::int64_t tokens, std::size_t blocks) {
  const std::int64_t whole = tokens / layout_.block() * layout_.block();
  std::int64_t moved = 0;
  const auto take_over = [&](std::int64_t bytes) {
    private_ -= bytes;
    moved += bytes;
  };
  // The last shared block may be cached only in part.
  for (std::size_t i = prefix.pinned.empty() ? 0 : prefix.pinned.size() - 1; i < blocks; ++i) {
    const std::int64_t begin = prefix.begin(i), end = std::min(prefix.end(i), whole);
    if (end <= begin) break;
    const std::int64_t bytes = layout_.kept_bytes(end) - layout_.kept_bytes(begin);
    if (i == prefix.pinned.size()) {
      const PrefixCache::Entry there = cache_.find(prefix.hashes[i]);
      if (there >= 0 && cache_.tokens_of(there) > end - begin) break;  // another sequence cached more of the block
      bool fresh = false;
      prefix.pinned.push_back(cache_.insert(prefix.hashes[i], bytes, end - begin, fresh));
      take_over(cache_.bytes_of(prefix.pinned.back()));
    }
    const PrefixCache::Entry entry = prefix.pinned[i];
    if (cache_.tokens_of(entry) < end - begin) {
      take_over(bytes - cache_.bytes_of(entry));
      cache_.grow(entry, bytes, end - begin);
    }
    if (tiers_.any()) tiers_.keep(prefix.hashes[i], bytes, end - begin);
    if (end < prefix.end(i)) break;
  }
  return moved;
}

void KvPool::publish_windows(const PrefixBlocks& prefix, std::int64_t tokens, std::size_t blocks) {
  const std::int64_t block = layout_.block(), whole = tokens / block * block;
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::int64_t begin = prefix.begin(i), end = std::min(prefix.end(i), whole);
    if (end <= begin) break;
    for (std::size_t w = 0; w < layout_.windows().size(); ++w) {
      const std::int64_t bytes = (end / block - begin / block) * layout_.windows()[w].block_bytes;
      cache_.keep(window_key(prefix.hashes[i], w), bytes, end - begin);
    }
  }
}

/// Publishes states within the first `known` tokens, which other sequences may share.
void KvPool::publish_states(const PrefixBlocks& prefix, std::int64_t tokens, std::int64_t known) {
  const std::int64_t last = tokens / state_step_ * state_step_;
  if (!states_at_ends_) {
    for (std::int64_t at = state_step_; at <= std::min(last, known); at += state_step_) keep_state(prefix, at);
    return;
  }
  if (prefix.branch > 0 && prefix.branch <= known) keep_state(prefix, prefix.branch);
  if (last > 0 && last <= known) keep_state(prefix, last);
}

void KvPool::keep_state(const PrefixBlocks& prefix, std::int64_t tokens) {
  PrefixCache& kept = states_apart_ ? states_ : cache_;
  kept.keep(state_key(prefix, tokens), state_bytes_, 1);
  if (states_apart_ && kept.evictable_bytes() > state_capacity_) kept.evict(kept.evictable_bytes() - state_capacity_);
}

std::int64_t KvPool::publish_prompt(PrefixBlocks& prefix, int prompt) {
  return caches_prefixes_ ? publish(prefix, prompt, std::min(prefix.given, prefix.begun(prompt))) : 0;
}

std::int64_t KvPool::publish_output(PrefixBlocks& prefix, int prompt, std::int64_t tokens) {
  if (!caches_prefixes_ || prefix.given == 0 || prefix.end(prefix.given - 1) <= prompt) return 0;
  return publish(prefix, tokens, prefix.given);
}

void KvPool::unpin(PrefixBlocks& prefix) {
  for (std::size_t i = prefix.pinned.size(); i-- > 0;) cache_.unpin(prefix.pinned[i]);
  prefix.pinned.clear();
}

std::int64_t KvPool::cached_blocks(std::span<const std::uint64_t> hashes) const {
  if (layout_.kept_bytes(layout_.block()) > 0 || layout_.windows().empty()) return cache_.match(hashes).blocks;
  return std::count_if(hashes.begin(), hashes.end(),
                       [&](std::uint64_t hash) { return cache_.find(window_key(hash, 0)) >= 0; });
}

}  // namespace roofcast
