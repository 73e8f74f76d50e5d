// A layer without a feed-forward block.

#include "sim/model/feed_forward_model.h"

namespace roofcast {
namespace {

class NoFeedForwardModel final : public FeedForwardModel {
 public:
  std::string name() const override { return "no feed-forward"; }
  FeedForwardFacts facts() const override { return {.present = false, .dense = false, .experts = 0, .top_k = 0}; }
  /// A block of typical width.
  DenseFeedForward dense_like(double hidden) const override { return {.inter = 4 * hidden}; }

  void check(const HfConfig&) const override {}
  void check_sharding(const std::string&, const Sharding&, const ShardingLocations&) const override {}

  void add_weights(LayerWeights&, double, const Sharding&) const override {}
  FeedForwardBuffers buffers(double, const Sharding&, double) const override {
    return {.routed = 0, .routed_operands = 0, .rest = 0, .compiled = 0};
  }

  void add_operators(OperatorList&, double, const BlockTokens&) const override {}
  bool add_exchange(OperatorList&, double, const BlockTokens&) const override { return true; }
};

}  // namespace

std::unique_ptr<const FeedForwardModel> make_model(const NoFeedForward&) {
  return std::make_unique<NoFeedForwardModel>();
}

}  // namespace roofcast
