#pragma once
// Requests that are in flight.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/serve/prefix_cache.h"
#include "sim/serve/sim_time.h"
#include "sim/serve/workload.h"

namespace roofcast {

using Slot = std::int32_t;
inline constexpr Slot kNoSlot = -1;

enum class Phase : std::uint8_t { kWaiting, kPrefill, kDecode, kEnded };

/// The state of one request from its sending to its last token; about 160 bytes.
struct LiveRequest {
  std::int64_t id = 0;
  SimTime arrival, scheduled, first_token;
  SimTime last_token;             ///< while not running: time of its latest token
  SimTime prefilled;              ///< if `remote`: when its prefill on the replica `source` ended
  std::int64_t base = 0;          ///< tokens in its cache; while decoding, less the replica's step counter
  std::int64_t finish = 0;        ///< while decoding: the step counter at which its last token is out
  std::int64_t reserved = 0;      ///< bytes that admission reserved for it, without the pinned prefix
  std::int64_t held_bytes = 0;    ///< on the prefill replica `source`, until the cache is sent
  std::int64_t pinned_bytes = 0;  ///< bytes of its pinned blocks in the prefix cache
  int prompt = 0, output = 0;
  int produced = 0;  ///< output tokens when it last started to decode
  int target = 0;    ///< tokens that its prefill has to reach
  int cached = 0;    ///< prompt tokens found in the cache when first admitted
  int session = -1, root_session = -1;
  int priority = 0;
  std::int32_t blocks = -1;               ///< index in RequestTable::prefix; -1: it shares nothing
  Slot older = kNoSlot, newer = kNoSlot;  ///< neighbours in the list of running requests, in order of admission
  std::uint32_t epoch = 0;                ///< raised whenever its heap entries become stale
  std::uint16_t preemptions = 0;
  std::uint16_t replica = 0, source = 0;
  std::uint16_t rank = 0, source_rank = 0;  ///< attention-DP rank on `replica` and on `source`
  std::uint16_t adapter = 0;                ///< its adapter, from 1 on; 0: none
  std::uint16_t client = 0;
  std::uint8_t level = 0;  ///< windows it has filled, while decoding
  Phase phase = Phase::kWaiting;
  bool swapped : 1 = false;  ///< its cache waits in host memory
  bool remote : 1 = false;   ///< its cache waits on the prefill replica `source`
  bool held : 1 = false;     ///< `source` still holds its cache, waiting or in transfer
  bool counted : 1 = true;   ///< false: a warm-up request
  bool started : 1 = false;
  bool cancelled : 1 = false;        ///< its client has given up; it leaves when the current step ends
  bool encoded : 1 = false;          ///< its images and audio have been encoded in this prefill
  bool forks : 1 = false;            ///< other sequences start when its prompt is prefilled
  bool arrived : 1 = false;          ///< while waiting: it has reached the replica's queue
  bool waits_for_cache : 1 = false;  ///< counted in RequestQueue::some_only_need_cache()
  std::int32_t family = -1;          ///< number of the group of sequences that answer one prompt; -1: none
};

/// Whether the cache of `r` is in transfer; it runs as soon as the cache has arrived.
inline bool landing(const LiveRequest& r) { return r.phase == Phase::kPrefill && r.base == r.target; }

/// Whether `r` waits only for memory to bring its cache back: nothing is left to prefill.
inline bool only_needs_cache(const LiveRequest& r) { return (r.swapped || r.remote) && r.base == r.target; }

/// The cache is lost before the decode replica received it. The client receives a first token together with the cache.
inline void lose_remote_cache(LiveRequest& r) {
  r.remote = false;
  if (r.produced > 1) return;
  r.produced = 0;
  r.first_token = SimTime();
}

static_assert(sizeof(LiveRequest) <= 160, "ten million live requests fit in memory");

/// Prefix hashes of a request and the blocks it holds pinned.
struct PrefixBlocks {
  std::vector<std::uint64_t> hashes;
  int block_tokens = 0;
  /// A hash block ends early at `cut` and at `branched` (where its session branched); the next block ends on the
  /// regular grid. 0: none.
  std::int64_t cut = 0, branched = 0;
  std::int64_t tokens = 0;  ///< tokens that the hashes cover
  std::size_t given = 0;    ///< hashes that came with the request; later blocks are private
  std::int64_t branch = 0;  ///< tokens after which its prefill saves the state for other requests; 0: never
  std::vector<PrefixCache::Entry> pinned;  ///< leading blocks

  /// The first token of block `i`, and the one after its last.
  std::int64_t begin(std::size_t i) const {
    const std::int64_t at = begin_by_cut(i);
    if (branched == 0 || at < branched || i == 0) return at;
    return std::max(branched, begin_by_cut(i - 1));
  }
  std::int64_t end(std::size_t i) const { return std::min(begin(i + 1), tokens); }
  /// Number of blocks that the first `n` tokens reach into.
  std::size_t begun(std::int64_t n) const;

 private:
  std::int64_t begin_by_cut(std::size_t i) const {
    const auto n = static_cast<std::int64_t>(i);
    if (cut == 0 || n * block_tokens < cut) return n * block_tokens;
    return std::max(cut, (n - 1) * block_tokens);
  }
};

/// Stores the requests in slots. A slot is reused after its request has ended.
class RequestTable {
 public:
  Slot add(const Request& request);
  void remove(Slot slot);
  LiveRequest& operator[](Slot slot) {
    const auto i = static_cast<std::size_t>(slot);
    return pages_[i / kPage][i % kPage];
  }
  const LiveRequest& operator[](Slot slot) const {
    const auto i = static_cast<std::size_t>(slot);
    return pages_[i / kPage][i % kPage];
  }
  /// Adds another sequence with `output` tokens for the prompt of `of`; it shares the blocks of the prompt.
  Slot fork(Slot of, int output);
  PrefixBlocks* prefix(Slot slot) {
    const std::int32_t i = (*this)[slot].blocks;
    return i < 0 ? nullptr : &prefixes_[static_cast<std::size_t>(i)];
  }
  /// The hashes of its cache: those that came with the request, then private blocks of `block_tokens` tokens if it came
  /// with none.
  PrefixBlocks& own_blocks(Slot slot, std::int64_t tokens, int block_tokens);
  std::size_t live() const { return slots_ - free_.size(); }

 private:
  PrefixBlocks& add_blocks(LiveRequest& live, int block_tokens);

  static constexpr std::size_t kPage = 1024;
  std::vector<std::unique_ptr<LiveRequest[]>> pages_;  ///< requests never move
  std::size_t slots_ = 0;
  std::vector<Slot> free_;
  std::vector<PrefixBlocks> prefixes_;
  std::vector<std::int32_t> free_prefixes_;
  std::uint64_t next_own_ = 0;
};

}  // namespace roofcast
