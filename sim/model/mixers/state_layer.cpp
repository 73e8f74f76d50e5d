// Mixers with a constant state per sequence: Mamba, gated delta net, lightning attention, short convolution.

#include <fmt/format.h>

#include "sim/model/mixer_model.h"
#include "sim/model/sharding.h"

namespace roofcast {
namespace {

class StateModel final : public MixerModel {
 public:
  explicit StateModel(const StateLayer& a) : a_(a) {}

  std::string name() const override {
    switch (a_.mixer.kind) {
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
      case StateMixer::Kind::kRgLru:
        return "RG-LRU";
      case StateMixer::Kind::kRwkv4:
        return "RWKV-4";
      case StateMixer::Kind::kRwkv6:
        return "RWKV-5/6";
      case StateMixer::Kind::kRwkv7:
        return "RWKV-7";
      case StateMixer::Kind::kS4:
        return "S4";
    }
    return "state";
  }
  MixerFacts facts() const override {
    return {.cache = TokenCache::kNothing,
            .present = true,
            .indexer = false,
            .chosen_tokens = 0,
            .norms_keys = false,
            .captured_prefill = false,
            .fused_nvfp4 = false,
            .borrows_cache = false,
            .query_group = 0};
  }
  std::optional<CachedHeads> cached_heads() const override { return std::nullopt; }
  std::optional<AbsorbedProjection> absorbed() const override { return std::nullopt; }

  void check(const HfConfig&) const override {}
  void check_sharding(const std::string& model, int tp, const SourceLocation& location) const override {
    refuse(tp > 1 && a_.gated_output, location,
           fmt::format("tp {}: the gate after {}'s layers reads whole rows, so they are not split", tp, model));
    check_heads(model, a_.mixer.heads, tp, location);
  }
  Mixer without_wide_window(double) const override { return a_; }

  /// Groups that cannot be split further are replicated, with their columns of the input projection.
  void add_weights(LayerWeights& out, double hidden, const Sharding& s) const override {
    const StateMixer mine = mixer_of(a_.mixer, s);
    const double replicated = 2.0 * (mine.key_heads - a_.mixer.key_heads / s.tp) * a_.mixer.key_dim;
    const bool grouped = a_.mixer.kind != StateMixer::Kind::kMamba1;
    if (a_.in_features > 0) {
      out.matrices.push_back({.name = "in_proj",
                              .k = hidden,
                              .n = a_.in_features / s.tp + (grouped ? replicated : 0.0),
                              .role = WeightRole::kMixer});
    }
    if (a_.extra_projection > 0) {
      out.matrices.push_back({.name = "state_proj",
                              .k = a_.out_features / s.tp,
                              .n = a_.extra_projection / a_.out_features,
                              .role = WeightRole::kMixer});
    }
    out.matrices.push_back({.name = "out_proj",
                            .k = a_.out_features / s.tp,
                            .n = a_.gated_output ? 2.0 * hidden : hidden,
                            .role = WeightRole::kMixer,
                            .stage = Stage::kCore});
    out.vectors += (a_.extra_parameters - a_.extra_projection) / s.tp;
  }
  LayerCache cache(const Precision&, const Sharding& s) const override {
    return {.state = state_bytes(mixer_of(a_.mixer, s)).base()};
  }
  double activation_values(const Sharding& s) const override {
    return (a_.in_features + a_.mixer.conv_channels + 2.0 * a_.out_features) / s.tp;
  }
  double scoring_heads(const Sharding&) const override { return 0; }

  /// The output of the scan passes a gated norm; a short convolution has one gate before and one after.
  void add_token_operators(OperatorList& list, double count, double tokens) const override {
    const double bytes = tokens * a_.out_features / list.context().sharding.tp * 3.0 * kHalfBytes;
    if (a_.mixer.kind == StateMixer::Kind::kConvolution) return list.stream("gates", 2.0 * count, bytes);
    list.stream("gated_norm", count, bytes);
  }
  void add_prefill(OperatorList& list, double count, const PrefillShape& shape) const override {
    list.add("state_mixer", count,
             StatePrefillWork{shape.batch, shape.query_len, mixer_of(a_.mixer, list.context().sharding)});
  }
  void add_decode(OperatorList& list, double count, const DecodeShape& shape) const override {
    list.add("state_mixer", count,
             StateDecodeWork{shape.batch * shape.query_len, mixer_of(a_.mixer, list.context().sharding)});
  }
  void add_encoded(OperatorList&, double, double) const override {}

 private:
  StateLayer a_;
};

}  // namespace

std::unique_ptr<const MixerModel> make_model(const StateLayer& layer) { return std::make_unique<StateModel>(layer); }

}  // namespace roofcast
