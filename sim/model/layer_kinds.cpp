// Which layers are equal, and what they are called.

#include <fmt/format.h>

#include "sim/model/hf_config.h"

namespace roofcast {
namespace {

bool same(const StateMixer& a, const StateMixer& b) {
  return a.kind == b.kind && a.heads == b.heads && a.key_heads == b.key_heads && a.key_dim == b.key_dim &&
         a.value_dim == b.value_dim && a.conv_width == b.conv_width && a.conv_channels == b.conv_channels &&
         a.chunk == b.chunk && a.state == b.state;
}

bool same(const StateLayer& a, const StateLayer& b) {
  return same(a.mixer, b.mixer) && a.in_features == b.in_features && a.out_features == b.out_features &&
         a.extra_parameters == b.extra_parameters && a.extra_projection == b.extra_projection;
}
template <class T>
bool same(const T& a, const T& b) {
  return a == b;
}

bool same_mixer(const Mixer& a, const Mixer& b) {
  return std::visit(
      [&b](const auto& mine) {
        const auto* other = std::get_if<std::decay_t<decltype(mine)>>(&b);
        return other != nullptr && same(mine, *other);
      },
      a);
}

bool same_kind(const LayerKind& a, const LayerKind& b) {
  return same_mixer(a.mixer, b.mixer) && a.feed_forward == b.feed_forward && a.norms == b.norms &&
         a.norm_bias == b.norm_bias && a.parallel_block == b.parallel_block && a.streams == b.streams &&
         a.extra_parameters == b.extra_parameters;
}

std::string name_of(const StateMixer& mixer) {
  switch (mixer.kind) {
    case StateMixer::Kind::kMamba1:
      return "mamba1";
    case StateMixer::Kind::kMamba2:
      return "mamba2";
    case StateMixer::Kind::kGatedDelta:
      return "gated delta net";
    case StateMixer::Kind::kLightning:
      return "lightning attention";
    case StateMixer::Kind::kConvolution:
      return "short convolution";
  }
  return "state";
}

std::string name_of(const Mixer& mixer) {
  if (const auto* a = std::get_if<GroupedAttention>(&mixer)) {
    std::string name = a->owns_cache ? "attention" : "attention, shared cache";
    if (a->window > 0) name += fmt::format(", {} {}", a->chunked ? "chunk" : "window", a->window);
    if (a->sparse_tokens > 0) name += fmt::format(", sparse {}", a->sparse_tokens);
    return name;
  }
  if (const auto* l = std::get_if<LatentAttention>(&mixer)) {
    std::string name = "latent attention";
    if (l->compression > 1) name += fmt::format(", compressed {}", l->compression);
    if (l->indexer_top_k > 0) name += fmt::format(", sparse {}", l->indexer_top_k);
    return name;
  }
  if (const auto* state = std::get_if<StateLayer>(&mixer)) return name_of(state->mixer);
  return "no mixer";
}

std::string name_of(const FeedForward& block) {
  if (std::holds_alternative<DenseFeedForward>(block)) return "dense";
  if (const auto* experts = std::get_if<ExpertFeedForward>(&block)) {
    return fmt::format("{} of {} experts", experts->top_k, experts->experts);
  }
  return "no feed-forward";
}

}  // namespace

void append_layer(ModelSpec& model, LayerKind kind) {
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    if (same_kind(model.layers[i], kind)) {
      model.layers[i].count += 1;
      model.order.push_back(static_cast<int>(i));
      return;
    }
  }
  kind.name = name_of(kind.mixer) + "; " + name_of(kind.feed_forward);
  kind.count = 1;
  model.order.push_back(static_cast<int>(model.layers.size()));
  model.layers.push_back(std::move(kind));
}

}  // namespace roofcast
