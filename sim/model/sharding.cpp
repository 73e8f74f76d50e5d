#include "sim/model/sharding.h"

#include <cmath>

#include <fmt/format.h>

#include "sim/model/weights.h"

namespace roofcast {
namespace {

bool divides(int parts, double whole) { return std::fmod(whole, parts) == 0.0; }

void refuse(bool wrong, const Mark& mark, const std::string& message) {
  if (wrong) throw ConfigError(mark, message);
}

void check_mixer(const ModelSpec& model, const Mixer& mixer, int tp, const Mark& mark) {
  double heads = 0;
  if (const auto* grouped = std::get_if<GroupedAttention>(&mixer)) {
    heads = grouped->heads;
    const double kv = grouped->kv_heads;
    refuse(!divides(tp, kv) && std::fmod(tp, kv) != 0.0, mark,
           fmt::format("tp {} neither divides nor is a multiple of the {} key-value heads of {}", tp, kv, model.name));
  } else if (const auto* latent = std::get_if<LatentAttention>(&mixer)) {
    heads = latent->heads;
  } else if (const auto* state = std::get_if<StateLayer>(&mixer)) {
    heads = state->mixer.heads;
  }
  refuse(!divides(tp, heads), mark, fmt::format("tp {} does not divide the {} heads of {}", tp, heads, model.name));
}

}  // namespace

void check_sharding(const ModelSpec& model, const Sharding& s, const ShardingMarks& marks) {
  refuse(
      s.tp < 1 || s.pp < 1 || s.attention_dp < 1 || s.ep < 1, marks.tp,
      fmt::format("tp {}, pp {}, attention_dp {} and ep {} must all be at least 1", s.tp, s.pp, s.attention_dp, s.ep));
  refuse(s.pp > model.layer_count(), marks.pp,
         fmt::format("pp {} is more than the {} layers of {}", s.pp, model.layer_count(), model.name));
  refuse(s.tp * s.attention_dp % s.ep != 0, marks.ep,
         fmt::format("ep {} does not divide tp x attention_dp = {}", s.ep, s.tp * s.attention_dp));
  bool has_experts = false;
  for (const LayerKind& kind : model.layers) {
    check_mixer(model, kind.mixer, s.tp, marks.tp);
    if (const auto* dense = std::get_if<DenseFeedForward>(&kind.feed_forward)) {
      refuse(
          s.tp > dense->inter, marks.tp,
          fmt::format("tp {} is more than the width {} of a feed-forward block of {}", s.tp, dense->inter, model.name));
    }
    const auto* experts = std::get_if<ExpertFeedForward>(&kind.feed_forward);
    if (experts == nullptr) continue;
    has_experts = true;
    refuse(!divides(s.ep, experts->experts), marks.ep,
           fmt::format("ep {} does not divide the {} experts of {}", s.ep, experts->experts, model.name));
    refuse(
        !divides(s.expert_tp(), experts->inter),
        s.ep > 1             ? marks.ep
        : s.attention_dp > 1 ? marks.attention_dp
                             : marks.tp,
        fmt::format("the experts' tensor parallelism tp x attention_dp / ep = {} does not divide their width {} in {}",
                    s.expert_tp(), experts->inter, model.name));
  }
  refuse(!has_experts && s.ep > 1, marks.ep, fmt::format("ep {}: {} has no experts", s.ep, model.name));
  refuse(!has_experts && s.attention_dp > 1, marks.attention_dp,
         fmt::format("attention_dp {}: {} has no experts to share; use replicas", s.attention_dp, model.name));
}

void check_groups(const ModelSpec& model, const Precision& p, const Sharding& s, const Mark& mark) {
  const double group = p.weight_scales.group_size;
  if (group <= 0 || p.recipe.starts_with("gguf") || p.recipe == "nf4") return;
  for (const LayerKind& kind : model.layers) {
    for (const WeightMatrix& matrix : layer_weights(model, kind, s).matrices) {
      if (matrix.role == WeightRole::kOther || element_bits(dtype_of(matrix.role, p)) >= 16.0) continue;
      refuse(std::fmod(matrix.k, group) != 0.0, mark,
             fmt::format("groups of {} weights do not divide the {} inputs of {} in {}{}", group, matrix.k, matrix.name,
                         model.name, s.gpus() > 1 ? " on one GPU" : ""));
    }
  }
}

}  // namespace roofcast
