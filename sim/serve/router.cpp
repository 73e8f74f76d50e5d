#include "sim/serve/router.h"

#include <algorithm>
#include <array>

#include "sim/serve/named_row.h"

namespace roofcast {
namespace {

class RoundRobin final : public Router {
 public:
  int pick(const Request&, const ReplicaView& view) override { return next_++ % view.replicas(); }
  bool uses_state() const override { return false; }

 private:
  int next_ = 0;
};

/// The first replica with the fewest outstanding requests.
int least_loaded(const ReplicaView& view) {
  int best = 0;
  for (int i = 1; i < view.replicas(); ++i) {
    if (view.outstanding(i) < view.outstanding(best)) best = i;
  }
  return best;
}

class LeastLoaded final : public Router {
 public:
  int pick(const Request&, const ReplicaView& view) override { return least_loaded(view); }
};

/// The replica that caches most of the prefix, unless it has many more requests than the least loaded one (SGLang's
/// router has the same two limits, absolute and relative).
class PrefixAware final : public Router {
 public:
  int pick(const Request& request, const ReplicaView& view) override {
    constexpr int kSurplus = 64;
    constexpr double kRatio = 1.5;
    const int idlest = least_loaded(view);
    int best = idlest;
    std::int64_t most = view.cached_blocks(idlest, request);
    for (int i = 0; i < view.replicas(); ++i) {
      const std::int64_t cached = view.cached_blocks(i, request);
      if (cached > most || (cached == most && view.outstanding(i) < view.outstanding(best))) most = cached, best = i;
    }
    const int surplus = view.outstanding(best) - view.outstanding(idlest);
    const bool uneven = surplus > kSurplus && view.outstanding(best) > kRatio * view.outstanding(idlest);
    return uneven ? idlest : best;
  }
};

/// The replica with the fewest tokens to hold and to prefill after it gets the request: prompt tokens of its requests,
/// plus the uncached tokens of this one (the objective of NVIDIA Dynamo's KV router, which does not count output
/// either).
class KvAware final : public Router {
 public:
  int pick(const Request& request, const ReplicaView& view) override {
    int best = 0;
    std::int64_t least = 0;
    for (int i = 0; i < view.replicas(); ++i) {
      const std::int64_t kept = view.cached_blocks(i, request) * request.prefix_block_tokens;
      const std::int64_t cost = view.outstanding_tokens(i) - kept;
      if (i == 0 || cost < least) least = cost, best = i;
    }
    return best;
  }
};

/// Rendezvous hashing of the session, else of the first prefix block, else of the request. The replica with the largest
/// hash wins, so that adding or removing a replica moves only its own share.
class ConsistentHash final : public Router {
 public:
  bool uses_state() const override { return false; }
  int pick(const Request& request, const ReplicaView& view) override {
    std::uint64_t key = static_cast<std::uint64_t>(request.id);
    if (!request.prefix_blocks.empty()) key = request.prefix_blocks.front();
    const int session = request.root();
    if (session >= 0) key = ~static_cast<std::uint64_t>(session);
    int best = 0;
    std::uint64_t largest = 0;
    for (int i = 0; i < view.replicas(); ++i) {
      const std::uint64_t hash = mix(key ^ mix(static_cast<std::uint64_t>(i) + 1));
      if (hash > largest) largest = hash, best = i;
    }
    return best;
  }

 private:
  /// The finalizer of splitmix64.
  static std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }
};

template <class T>
std::unique_ptr<Router> make() {
  return std::make_unique<T>();
}

constexpr std::array kRouters{
    RouterKind{"round_robin", "one replica after another", make<RoundRobin>},
    RouterKind{"least_loaded", "the replica with the fewest outstanding requests", make<LeastLoaded>},
    RouterKind{"kv_aware", "the replica with the fewest prompt tokens, minus what it caches of this prompt's prefix",
               make<KvAware>},
    RouterKind{"prefix_aware", "the replica that caches most of the prompt's prefix, unless it is overloaded",
               make<PrefixAware>},
    RouterKind{"consistent_hash", "by a hash of the session, else of the first prefix block", make<ConsistentHash>},
};

}  // namespace

std::span<const RouterKind> routers() { return kRouters; }

std::unique_ptr<Router> make_router(const std::string& name) { return named_row(kRouters, "router", name).make(); }

}  // namespace roofcast
