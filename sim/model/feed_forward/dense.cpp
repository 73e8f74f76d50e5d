// A dense feed-forward block.

#include <fmt/format.h>

#include "sim/model/feed_forward/parts.h"
#include "sim/model/feed_forward_model.h"
#include "sim/model/hf_config.h"

namespace roofcast {
namespace {

class DenseModel final : public FeedForwardModel {
 public:
  explicit DenseModel(const DenseFeedForward& f) : f_(f) {}

  std::string name() const override { return "dense"; }
  FeedForwardFacts facts() const override { return {.present = true, .dense = true, .experts = 0, .top_k = 0}; }
  DenseFeedForward dense_like(double) const override { return f_; }

  void check(const HfConfig& in) const override {
    if (f_.inter < 1) in.fail("intermediate_size", "must be at least 1");
  }
  void check_sharding(const std::string& model, const Sharding& s, const ShardingLocations& locations) const override {
    refuse(s.tp > f_.inter, locations.tp,
           fmt::format("tp {} is more than the width {} of a feed-forward block of {}", s.tp, f_.inter, model));
  }

  void add_weights(LayerWeights& out, double hidden, const Sharding& s) const override {
    add_block_weights(out, "", f_, hidden, s);
  }
  /// Gate, up and their product; a compiled engine writes the product in place.
  FeedForwardBuffers buffers(double, const Sharding& s, double tokens) const override {
    return {.routed = 0,
            .routed_operands = 0,
            .rest = tokens * (f_.gated ? 3.0 : 2.0) * f_.inter / s.tp * kHalfBytes,
            .compiled = tokens * (f_.gated ? 2.0 : 1.0) * f_.inter / s.tp * kHalfBytes};
  }

  void add_operators(OperatorList& list, double count, const BlockTokens& rows) const override {
    add_activation(list, "activation", f_, count, rows.tokens, rows.written);
  }
  bool add_exchange(OperatorList&, double, const BlockTokens&) const override { return true; }

 private:
  DenseFeedForward f_;
};

}  // namespace

std::unique_ptr<const FeedForwardModel> make_model(const DenseFeedForward& block) {
  return std::make_unique<DenseModel>(block);
}

}  // namespace roofcast
