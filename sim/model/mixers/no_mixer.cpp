// A layer without a mixer.

#include "sim/model/mixer_model.h"

namespace roofcast {
namespace {

class NoMixerModel final : public MixerModel {
 public:
  std::string name() const override { return "no mixer"; }
  MixerFacts facts() const override {
    return {.cache = TokenCache::kNothing,
            .present = false,
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
  void check_sharding(const std::string&, int, const SourceLocation&) const override {}
  Mixer without_wide_window(double) const override { return NoMixer{}; }

  void add_weights(LayerWeights&, double, const Sharding&) const override {}
  LayerCache cache(const Precision&, const Sharding&) const override { return {}; }
  double activation_values(const Sharding&) const override { return 0; }
  double scoring_heads(const Sharding&) const override { return 0; }

  void add_token_operators(OperatorList&, double, double) const override {}
  void add_prefill(OperatorList&, double, const PrefillShape&) const override {}
  void add_decode(OperatorList&, double, const DecodeShape&) const override {}
  void add_encoded(OperatorList&, double, double) const override {}
};

}  // namespace

std::unique_ptr<const MixerModel> make_model(const NoMixer&) { return std::make_unique<NoMixerModel>(); }

}  // namespace roofcast
