#pragma once
// The KV cache memory of one attention-DP rank: blocks of running sequences, and blocks kept for later requests.

#include <utility>
#include <vector>

#include "sim/serve/kv_layout.h"
#include "sim/serve/kv_tiers.h"
#include "sim/serve/live_request.h"
#include "sim/serve/prefix_cache.h"

namespace roofcast {

struct Deployment;

/// A prompt reuses whole blocks: 16 tokens where blocks are hashed (vLLM, TensorRT-LLM), one token in a radix tree
/// (SGLang, whose block_size is 1). Reusing a prefix requires
///   in layers without a window: all of its blocks, which are then shared;
///   in layers with a window: the blocks of the window (vLLM, v1/core/single_type_kv_cache_manager.py);
///   in layers with a recurrent state: the state after exactly that prefix, saved by an earlier request.
/// Window blocks and saved states are stored separately from those of running sequences, which copy what they reuse.
///
/// Bytes in use = private (owned by one sequence) + pinned (prefix blocks in use) + evictable (unused prefix blocks).
/// A sequence of T tokens owns layout.bytes(T) minus its pinned blocks as private bytes. With EngineSpec::kv_offload,
/// evicted blocks move to host memory (evicted there least recently used first), from which later prompts copy them
/// back. Copies to the host overlap with steps; steps wait for copies back.
class KvPool {
 public:
  explicit KvPool(const Deployment& deployment, const SharedTiers& shared = {});

  const KvLayout& layout() const { return layout_; }
  std::int64_t capacity() const { return capacity_; }
  std::int64_t watermark() const { return watermark_; }
  bool caches_prefixes() const { return caches_prefixes_; }

  /// Bytes that can be allocated, evictable blocks included.
  std::int64_t room() const { return capacity_ - private_ - cache_.pinned_bytes(); }
  std::int64_t private_bytes() const { return private_; }
  std::int64_t pinned_bytes() const { return cache_.pinned_bytes(); }
  double usage() const {
    return capacity_ > 0 ? static_cast<double>(capacity_ - room()) / static_cast<double>(capacity_) : 0.0;
  }

  void take(std::int64_t bytes);  ///< evicts as needed; SIM_CHECKs that the bytes fit
  void give(std::int64_t bytes) { private_ -= bytes; }
  void forget();  ///< drops unused prefixes, in host memory too

  /// The cached part of the prefix of a prompt of `target` tokens: the tokens whose prefill is skipped (whole blocks,
  /// fewer than the target) and the number of leading hash blocks to share.
  struct Hit {
    int tokens = 0;
    std::size_t blocks = 0;
    std::int64_t bytes = 0;     ///< of the shared blocks
    std::int64_t unpinned = 0;  ///< the part that is evictable until it is pinned
    std::int64_t host = 0;      ///< further bytes, copied back from host memory
    int host_tokens = 0;        ///< part of `tokens` that comes from host memory
    int tier_tokens = 0;        ///< part of host_tokens that comes from tiers beyond host memory
    Seconds tier_time{};        ///< time to load them into host memory
    std::int64_t branch = 0;    ///< tokens whose blocks were found without the state that follows them
  };
  Hit look_up(const PrefixBlocks* prefix, int target) const;
  void pin(PrefixBlocks& prefix, const Hit& hit);
  std::int64_t take_stored() { return std::exchange(stored_, 0); }  ///< bytes copied to host memory since the last call
  /// After prefill the blocks of the prompt can be shared, including the whole KV blocks of the last, partial hash
  /// block. Returns the bytes that changed from private to pinned.
  std::int64_t publish_prompt(PrefixBlocks& prefix, int prompt);
  /// At the end of a sequence: publishes the blocks that continue into the output, if the hashes do (sessions).
  std::int64_t publish_output(PrefixBlocks& prefix, int prompt, std::int64_t tokens);
  /// For a preempted sequence: publishes its whole blocks up to `tokens`; they are evictable.
  std::int64_t publish_computed(PrefixBlocks& prefix, std::int64_t tokens) {
    return publish(prefix, tokens, prefix.hashes.size());
  }
  void unpin(PrefixBlocks& prefix);
  /// Cached blocks of `hashes`, for routers: the leading ones, or all of them if every layer has a window.
  std::int64_t cached_blocks(std::span<const std::uint64_t> hashes) const;

 private:
  std::int64_t publish(PrefixBlocks& prefix, std::int64_t tokens, std::size_t blocks);
  std::int64_t publish_shared(PrefixBlocks& prefix, std::int64_t tokens, std::size_t blocks);
  void publish_windows(const PrefixBlocks& prefix, std::int64_t tokens, std::size_t blocks);
  void publish_states(const PrefixBlocks& prefix, std::int64_t tokens, std::int64_t known);
  void keep_state(const PrefixBlocks& prefix, std::int64_t tokens);
  void make_room();
  void keep_in_host(const std::vector<PrefixCache::Evicted>& gone);
  void look_up_tiers(const PrefixBlocks& prefix, std::int64_t most, Hit& hit) const;
  void look_up_host(const PrefixBlocks& prefix, std::int64_t most, Hit& hit) const;
  bool windows_there(const PrefixBlocks& prefix, std::int64_t tokens, std::int64_t& host) const;
  std::int64_t in_window(const PrefixBlocks& prefix, std::size_t window, std::int64_t most) const;
  std::int64_t at_state(const PrefixBlocks& prefix, std::int64_t most) const;
  const PrefixCache& states() const { return states_apart_ ? states_ : cache_; }
  void share(const PrefixBlocks& prefix, Hit& hit) const;

  KvLayout layout_;
  std::int64_t capacity_, watermark_;
  std::int64_t state_step_;  ///< tokens between saved states; 0: the model has none
  bool states_at_ends_;      ///< states are saved where prompts end or diverge; false: every state_step_ tokens
  bool states_apart_;        ///< states have separate memory
  bool caches_prefixes_;
  std::int64_t private_ = 0;
  PrefixCache cache_;
  std::int64_t host_capacity_ = 0, stored_ = 0;
  PrefixCache host_;  ///< blocks in host memory, never pinned
  std::int64_t state_bytes_ = 0, state_capacity_ = 0;
  PrefixCache states_;  ///< saved states, if they have separate memory; never pinned
  KvTiers tiers_;
};

}  // namespace roofcast
