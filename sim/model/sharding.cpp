#include "sim/model/sharding.h"

#include <cmath>

#include <fmt/format.h>

#include "sim/model/feed_forward_model.h"
#include "sim/model/mixer_model.h"

namespace roofcast {
bool divides(int parts, double whole) { return std::fmod(whole, parts) == 0.0; }

void refuse(bool wrong, const SourceLocation& location, const std::string& message) {
  if (wrong) throw CannotSplit(location, message);
}

void check_heads(const std::string& model, double heads, int tp, const SourceLocation& location) {
  refuse(!divides(tp, heads), location, fmt::format("tp {} does not divide the {} heads of {}", tp, heads, model));
}

namespace {

/// GPUs of a tensor-parallel group that store the same token of a layer; 0 if the layer caches none.
double copies_of_token(const LayerKind& kind, const Sharding& s) {
  const auto bytes = [&](int tp) {
    const LayerCache cache = model_of(kind.mixer)->cache(Precision{}, {.tp = tp});
    return cache.all_tokens + cache.windowed;
  };
  return bytes(1) > 0 ? std::round(s.tp * bytes(s.tp) / bytes(1)) : 0.0;
}

/// As in vLLM (config/parallel.py, decode_context_parallel_size): only tokens that tensor parallelism would store
/// several times are split.
void check_context_parallel(const ModelSpec& model, const Sharding& s, const SourceLocation& location) {
  if (s.dcp == 1) return;
  refuse(!divides(s.dcp, s.tp), location, fmt::format("dcp {} does not divide tp {}", s.dcp, s.tp));
  bool keeps_tokens = false;
  for (const LayerKind& kind : model.layers) {
    const double copies = copies_of_token(kind, s);
    keeps_tokens |= copies > 0;
    refuse(copies == 1, location,
           fmt::format("dcp {}: tp {} keeps each token of {} once, so there is nothing to share", s.dcp, s.tp,
                       model.name));
    refuse(copies > 0 && !divides(s.dcp, copies), location,
           fmt::format("dcp {} does not divide the {} copies of each token that tp {} keeps of {}", s.dcp, copies, s.tp,
                       model.name));
  }
  refuse(!keeps_tokens, location, fmt::format("dcp {}: {} caches no tokens", s.dcp, model.name));
}

}  // namespace

void check_sharding(const ModelSpec& model, const Sharding& s, const ShardingLocations& locations) {
  if (s.tp < 1 || s.pp < 1 || s.attention_dp < 1 || s.ep < 1) {
    throw ConfigError(locations.tp, fmt::format("tp {}, pp {}, attention_dp {} and ep {} must all be at least 1", s.tp,
                                                s.pp, s.attention_dp, s.ep));
  }
  refuse(s.pp > model.layer_count(), locations.pp,
         fmt::format("pp {} is more than the {} layers of {}", s.pp, model.layer_count(), model.name));
  refuse(s.pp > 1 && model.attends_to_encoder(), locations.pp,
         fmt::format("pp {}: {} is an encoder-decoder, which engines keep in one stage (TensorRT-LLM, "
                     "docs/source/models/encoder-decoder.md: no pipeline parallelism)",
                     s.pp, model.name));
  refuse(s.tp * s.attention_dp % s.ep != 0, locations.ep,
         fmt::format("ep {} does not divide tp x attention_dp = {}", s.ep, s.tp * s.attention_dp));
  bool has_experts = false;
  for (const LayerKind& kind : model.layers) {
    model_of(kind.mixer)->check_sharding(model.name, s.tp, locations.tp);
    const auto block = model_of(kind.feed_forward);
    block->check_sharding(model.name, s, locations);
    has_experts = has_experts || block->facts().experts > 0;
  }
  check_context_parallel(model, s, locations.dcp);
  refuse(!has_experts && s.ep > 1, locations.ep, fmt::format("ep {}: {} has no experts", s.ep, model.name));
  refuse(!has_experts && s.attention_dp > 1, locations.attention_dp,
         fmt::format("attention_dp {}: {} has no experts to share; use replicas", s.attention_dp, model.name));
}

void check_groups(const ModelSpec& model, const Precision& p, const Sharding& s, const SourceLocation& location) {
  const double group = p.weight_scales.group_size;
  if (group <= 0 || p.recipe.starts_with("gguf") || p.recipe == "nf4") return;
  for (const LayerKind& kind : model.layers) {
    for (const WeightMatrix& matrix : layer_weights(model, kind, s).matrices) {
      if (matrix.role == WeightRole::kOther || element_bits(dtype_of(matrix.role, p)) >= 16.0) continue;
      refuse(std::fmod(matrix.k, group) != 0.0, location,
             fmt::format("groups of {} weights do not divide the {} inputs of {} in {}{}", group, matrix.k, matrix.name,
                         model.name, s.gpus() > 1 ? " on one GPU" : ""));
    }
  }
}

}  // namespace roofcast
