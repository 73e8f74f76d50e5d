#pragma once
// What a kind of feed-forward block says about itself. Each kind has one class, in a file of its own under
// sim/model/feed_forward/. Nothing here has a default: a kind that leaves something out does not compile.

#include <memory>
#include <string>

#include "sim/model/operator_list.h"
#include "sim/model/weights.h"

namespace roofcast {

class HfConfig;

/// What engines, rules and pages ask about a block.
struct FeedForwardFacts {
  bool present;    ///< false: the layer has no block
  bool dense;      ///< one block that every token passes, and nothing else
  double experts;  ///< routed ones, 0 = none
  double top_k;    ///< of them, for each token
};

/// What a block holds of `tokens` tokens on one GPU while it runs.
struct FeedForwardBuffers {
  double routed;           ///< bytes of the routed experts
  double routed_operands;  ///< values that both of their products read
  double rest;             ///< bytes of everything else
  double compiled;         ///< bytes of all in an engine that plans its memory once for the whole graph
};

/// Tokens that pass a block.
struct BlockTokens {
  double tokens;        ///< of the fullest rank
  double group_tokens;  ///< of all attention-DP ranks
  bool prompts;         ///< some are of prompts
  double written;       ///< bytes of the activation's output, over those of 16 bit
};

class FeedForwardModel {
 public:
  virtual ~FeedForwardModel() = default;

  virtual std::string name() const = 0;  ///< "dense", "8 of 256 experts" ...
  virtual FeedForwardFacts facts() const = 0;
  /// A dense block as wide as what one token passes here.
  virtual DenseFeedForward dense_like(double hidden) const = 0;

  /// Refuses sizes that no reader may let through, at their key in the config.
  virtual void check(const HfConfig& in) const = 0;
  /// Refuses widths and experts that cannot be split; `model` is its name.
  virtual void check_sharding(const std::string& model, const Sharding& sharding, const ShardingMarks& marks) const = 0;

  /// Matrices and vectors of one GPU.
  virtual void add_weights(LayerWeights& out, double hidden, const Sharding& sharding) const = 0;
  virtual FeedForwardBuffers buffers(double hidden, const Sharding& sharding, double tokens) const = 0;

  /// Kernels of `count` layers, without the products that every token passes.
  virtual void add_operators(OperatorList& list, double count, const BlockTokens& rows) const = 0;
  /// What attention-DP ranks exchange around the block; whether its partial sums are still to be reduced.
  virtual bool add_exchange(OperatorList& list, double count, const BlockTokens& rows) const = 0;
};

std::unique_ptr<const FeedForwardModel> model_of(const FeedForward& block);
inline FeedForwardFacts facts_of(const FeedForward& block) { return model_of(block)->facts(); }

}  // namespace roofcast
