#include "sim/model/families/cache_sharing.h"

#include <algorithm>

#include <fmt/format.h>

namespace roofcast {
namespace {

std::string seen_by(const GroupedAttention& a) {
  const std::string visible = a.window > 0 ? fmt::format("a window of {} tokens", a.window) : "all tokens";
  return fmt::format("{} with {} key-value heads of {}", visible, a.kv_heads, a.head_dim);
}

bool fits(const GroupedAttention& reader, const GroupedAttention& owner) {
  return reader.window == owner.window && reader.chunked == owner.chunked && reader.kv_heads == owner.kv_heads &&
         reader.head_dim == owner.head_dim && reader.value_dim == owner.value_dim;
}

/// Layers share within their kind. In models with windows, sliding-window layers share with neighbours between global
/// layers, and global layers share across these groups.
void share_in_groups(HfConfig& in, std::vector<GroupedAttention>& layers) {
  const int factor = share_factor(in, 2);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto alike = [&](const GroupedAttention& earlier) { return fits(layers[i], earlier); };
    const auto before = std::count_if(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(i), alike);
    layers[i].owns_cache = before % factor == 0;
  }
}

void share_last(HfConfig& in, std::vector<GroupedAttention>& layers, int shared) {
  const int count = static_cast<int>(layers.size());
  if (shared >= count) in.fail("num_kv_shared_layers", fmt::format("must be less than the {} layers", count));
  const std::size_t first = layers.size() - static_cast<std::size_t>(shared);
  for (std::size_t i = first; i < layers.size(); ++i) {
    bool found = false;
    for (std::size_t owner = first; owner > 0 && !found; --owner) found = fits(layers[i], layers[owner - 1]);
    if (!found) {
      in.fail("num_kv_shared_layers", fmt::format("layer {} sees {}; no layer before layer {} keeps such a cache", i,
                                                  seen_by(layers[i]), first));
    }
    layers[i].owns_cache = false;
  }
}

}  // namespace

int share_factor(HfConfig& in, int default_value) {
  const int factor = in.integer({"cla_share_factor"}, default_value);
  if (factor < 1) in.fail("cla_share_factor", fmt::format("must be at least 1, got {}", factor));
  return factor;
}

void share_caches(HfConfig& in, std::vector<GroupedAttention>& layers, int shared) {
  if (in.flag({"use_cla"}, in.has({"cla_share_factor"}))) {
    share_in_groups(in, layers);
  } else {
    in.integer({"cla_share_factor"}, 1);
  }
  share_last(in, layers, in.integer({"num_kv_shared_layers"}, shared));
}

}  // namespace roofcast
