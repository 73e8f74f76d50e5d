#pragma once
// An indexer scores the cached tokens and leaves the best of them to the attention (DeepSeek-V3.2, 2025).

#include "sim/model/operator_list.h"
#include "sim/model/weights.h"

namespace roofcast {

/// Tokens that queries at positions P+1 .. P+q see on average when they see min(position, most), 0 = all:
///   mean of min(P + i, most) over i = 1..q.
double mean_visible(double before, double query, double most);

/// All heads are on every GPU, over one key of `dim` fp8 values per token. Without heads there is no indexer, and its
/// functions add nothing.
struct Indexer {
  double heads = 0, dim = 0;

  void add_weights(LayerWeights& out, double query_width, double hidden) const;
  /// Bytes of a cached key: fp8 with an fp32 scale every 128 values, 132 B for 128.
  double cache_bytes() const;
  /// Norm of the key, rotation, quantization of queries and key, the key's cache write, scaling of the heads' weights.
  void add_token_operators(OperatorList& list, double count, double tokens) const;
  /// Scores of every visible cached token (or group of `compression` tokens), and the choice of the best.
  void add_prefill(OperatorList& list, double count, const PrefillShape& shape, double compression) const;
  void add_decode(OperatorList& list, double count, const DecodeShape& shape, double compression) const;
};

}  // namespace roofcast
