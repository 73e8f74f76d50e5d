#pragma once
// The interface of a kind of feed-forward block. Each kind is one class in a file of its own in
// sim/model/feed_forward/. Nothing here has a default, so a kind that leaves something out does not compile.

#include <memory>
#include <string>

#include "sim/model/operator_list.h"
#include "sim/model/weights.h"

namespace roofcast {

class HfConfig;

/// Facts that engines, rules and pages need about a block.
struct FeedForwardFacts {
  bool present;    ///< false: the layer has no block
  bool dense;      ///< a single block that every token passes
  double experts;  ///< routed experts; 0 = none
  double top_k;    ///< routed experts per token
};

/// Memory of a block for `tokens` tokens on one GPU while it runs.
struct FeedForwardBuffers {
  double routed;           ///< bytes of the routed experts
  double routed_operands;  ///< values that both products of the routed experts read
  double rest;             ///< bytes of the rest
  double compiled;         ///< bytes of everything in an engine that plans memory once for the whole graph
};

/// Numbers of tokens that pass a block.
struct BlockTokens {
  double tokens;        ///< of the fullest rank
  double group_tokens;  ///< of all attention-DP ranks
  bool prompts;         ///< whether some are of prompts
  double written;       ///< bytes of the activation's output relative to 16 bit
};

class FeedForwardModel {
 public:
  virtual ~FeedForwardModel() = default;

  virtual std::string name() const = 0;  ///< "dense", "8 of 256 experts" ...
  virtual FeedForwardFacts facts() const = 0;
  /// A dense block as wide as what one token passes in this one.
  virtual DenseFeedForward dense_like(double hidden) const = 0;

  /// Refuses invalid sizes, at their key in the config.
  virtual void check(const HfConfig& in) const = 0;
  /// Refuses widths and experts that cannot be split; `model` is the name for the message.
  virtual void check_sharding(const std::string& model, const Sharding& sharding, const ShardingMarks& marks) const = 0;

  /// Matrices and vectors on one GPU.
  virtual void add_weights(LayerWeights& out, double hidden, const Sharding& sharding) const = 0;
  virtual FeedForwardBuffers buffers(double hidden, const Sharding& sharding, double tokens) const = 0;

  /// Kernels of `count` layers, without the products that every token passes.
  virtual void add_operators(OperatorList& list, double count, const BlockTokens& rows) const = 0;
  /// Exchange among attention-DP ranks around the block; returns whether its partial sums must still be reduced.
  virtual bool add_exchange(OperatorList& list, double count, const BlockTokens& rows) const = 0;
};

std::unique_ptr<const FeedForwardModel> model_of(const FeedForward& block);
inline FeedForwardFacts facts_of(const FeedForward& block) { return model_of(block)->facts(); }

}  // namespace roofcast
