#include "sim/model/pruned_layers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "sim/model/feed_forward_model.h"
#include "sim/model/mixer_model.h"

namespace roofcast {
namespace {

std::set<int> layers_named(HfConfig& in, std::string_view key, int layers) {
  std::set<int> out;
  for (const double at : in.numbers({key})) {
    if (at != std::floor(at) || at < 0 || at >= layers)
      in.fail(key, fmt::format("there is no layer {}; layers are numbered from 0 to {}", at, layers - 1));
    out.insert(static_cast<int>(at));
  }
  return out;
}

/// Whether layers read keys and values, or latents, of other layers.
bool reads_other_caches(const ModelSpec& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const LayerKind& kind) { return facts_of(kind.mixer).borrows_cache; });
}

}  // namespace

ModelSpec without_pruned(const ModelSpec& model, HfConfig& in) {
  static constexpr std::array<std::string_view, 2> kSparsities{"none", "2:4"};
  ModelSpec out = model;
  const std::string sparsity = in.text({"sparsity"}, "none");
  if (std::find(kSparsities.begin(), kSparsities.end(), sparsity) == kSparsities.end())
    in.fail("sparsity",
            fmt::format("'{}' is unknown (valid: none, 2:4, which is two zeros in any four weights)", sparsity));
  out.precision.two_of_four = out.precision.two_of_four || sparsity == "2:4";
  const int count = model.layer_count();
  const std::set<int> whole = layers_named(in, "drop_layers", count),
                      attention = layers_named(in, "drop_attention", count),
                      blocks = layers_named(in, "drop_feed_forward", count);
  if (whole.empty() && attention.empty() && blocks.empty()) return out;
  if (reads_other_caches(model) && !(whole.empty() && attention.empty()))
    in.fail(whole.empty() ? "drop_attention" : "drop_layers",
            fmt::format("some layers of {} read the caches of others, so its layers and attention cannot be dropped",
                        model.name));
  out.layers.clear();
  out.order.clear();
  for (int i = 0; i < count; ++i) {
    LayerKind kind = model.layers[static_cast<std::size_t>(model.order[static_cast<std::size_t>(i)])];
    const bool mixes = facts_of(kind.mixer).present && !attention.contains(i);
    const bool feeds = facts_of(kind.feed_forward).present && !blocks.contains(i);
    if (whole.contains(i) || (!mixes && !feeds)) continue;
    const bool halved = (attention.contains(i) && facts_of(kind.mixer).present) ||
                        (blocks.contains(i) && facts_of(kind.feed_forward).present);
    if (halved && !kind.parallel_block) kind.norms /= 2;
    if (halved) kind.parallel_block = false;
    if (!mixes) kind.mixer = NoMixer{};
    if (!feeds) kind.feed_forward = NoFeedForward{};
    append_layer(out, std::move(kind));
  }
  if (out.order.empty()) in.fail("drop_layers", "no layer is left");
  return out;
}

}  // namespace roofcast
