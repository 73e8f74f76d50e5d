#pragma once
// The interface of a kind of feed-forward block. Each kind is one class in its own file in sim/model/feed_forward/.
// Nothing here has a default, so a kind that omits something does not compile.

#include <memory>
#include <string>

#include "sim/model/operator_list.h"
#include "sim/model/weights.h"

namespace roofcast {

class HfConfig;

/// Facts about a block that engines, kernel rules and pages need.
struct FeedForwardFacts {
  bool present;    ///< false: the layer has no block
  bool dense;      ///< a single block for all tokens
  double experts;  ///< routed experts; 0 = none
  double top_k;    ///< routed experts per token
};

/// Memory of a running block for `tokens` tokens on one GPU.
struct FeedForwardBuffers {
  double routed;           ///< bytes of the routed experts
  double routed_operands;  ///< operand values of both products of the routed experts
  double rest;             ///< bytes of the rest
  double compiled;         ///< total bytes in an engine that plans memory once for the whole graph
};

/// Numbers of tokens in a block.
struct BlockTokens {
  double tokens;        ///< tokens of the most loaded rank
  double group_tokens;  ///< tokens of all attention-DP ranks
  bool prompts;         ///< some of them belong to prompts
  double written;       ///< bytes of the activation's output relative to 16 bit
};

class FeedForwardModel {
 public:
  virtual ~FeedForwardModel() = default;

  virtual std::string name() const = 0;  ///< "dense", "8 of 256 experts" ...
  virtual FeedForwardFacts facts() const = 0;
  /// A dense block as wide as the active part of this one for one token.
  virtual DenseFeedForward dense_like(double hidden) const = 0;

  /// Throws ConfigError for invalid sizes, at their key in the config.
  virtual void check(const HfConfig& in) const = 0;
  /// Throws CannotSplit for widths and experts that cannot be split; the message names `model`.
  virtual void check_sharding(const std::string& model, const Sharding& sharding,
                              const ShardingLocations& locations) const = 0;

  /// Adds the matrices and vectors on one GPU.
  virtual void add_weights(LayerWeights& out, double hidden, const Sharding& sharding) const = 0;
  virtual FeedForwardBuffers buffers(double hidden, const Sharding& sharding, double tokens) const = 0;

  /// Adds the kernels of `count` layers, except projections that every token passes.
  virtual void add_operators(OperatorList& list, double count, const BlockTokens& rows) const = 0;
  /// Adds the exchange among attention-DP ranks (dispatch, combine). Returns whether partial sums still need an
  /// all-reduce.
  virtual bool add_exchange(OperatorList& list, double count, const BlockTokens& rows) const = 0;
};

std::unique_ptr<const FeedForwardModel> model_of(const FeedForward& block);
inline FeedForwardFacts facts_of(const FeedForward& block) { return model_of(block)->facts(); }

}  // namespace roofcast
