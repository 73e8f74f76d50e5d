#pragma once
// Assigns adapters to requests.

#include <algorithm>
#include <vector>

#include "sim/model/adapters.h"
#include "sim/serve/traces.h"
#include "sim/serve/workload.h"

namespace roofcast {

/// Draws an adapter by popularity for each request that names none. All turns of a session get the same adapter. Only
/// requests of one adapter share prefixes, because keys and values differ between adapters
/// (vllm/v1/core/kv_cache_utils.py, generate_block_hash_extra_keys).
class AdapterSource final : public RequestSource {
 public:
  AdapterSource(RequestSource& source, const AdapterSpec& adapters, std::uint64_t seed) : source_(source), seed_(seed) {
    for (const double share : adapter_shares(adapters))
      bounds_.push_back((bounds_.empty() ? 0 : bounds_.back()) + share);
  }
  bool next(Request& request) override {
    request.adapter = 0;
    return with_adapter(source_.next(request), request);
  }
  bool next_after(int session, Request& request) override {
    request.adapter = 0;
    return with_adapter(source_.next_after(session, request), request);
  }

 private:
  bool with_adapter(bool found, Request& request) {
    if (!found) return false;
    if (request.adapter == 0) request.adapter = draw(request);
    for (std::uint64_t& hash : request.prefix_blocks) hash ^= mix_bits(~static_cast<std::uint64_t>(request.adapter));
    return true;
  }

  int draw(const Request& request) const {
    const int session = request.root();
    const auto key = session >= 0 ? ~static_cast<std::uint64_t>(session) : static_cast<std::uint64_t>(request.id);
    const double place = static_cast<double>(mix_bits(key ^ mix_bits(seed_)) >> 11) * 0x1p-53;
    const auto found = std::upper_bound(bounds_.begin(), bounds_.end() - 1, place);
    return static_cast<int>(found - bounds_.begin()) + 1;
  }

  RequestSource& source_;
  std::uint64_t seed_;
  std::vector<double> bounds_;  ///< cumulative popularity
};

}  // namespace roofcast
