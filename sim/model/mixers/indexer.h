#pragma once
// An indexer scores the cached tokens and selects the best of them for attention (DeepSeek-V3.2, 2025).

#include "sim/model/operator_list.h"
#include "sim/model/weights.h"

namespace roofcast {

/// Mean number of visible tokens for queries at positions P+1 .. P+q that see min(position, most) tokens; most 0: all.
///   mean of min(P + i, most) over i = 1..q.
double mean_visible(double before, double query, double most);

/// The indexer is replicated on every GPU, with one key of `dim` fp8 values per token. Without heads there is no
/// indexer, and its functions add nothing.
struct Indexer {
  double heads = 0, dim = 0;

  void add_weights(LayerWeights& out, double query_width, double hidden) const;
  /// Bytes of a cached key: fp8 plus an fp32 scale per 128 values; 132 B for 128 values.
  double cache_bytes() const;
  /// Key norm, rotary embedding, quantization of queries and key, cache write of the key, scaling of the head weights.
  void add_token_operators(OperatorList& list, double count, double tokens) const;
  /// Scores of every visible cached token (or group of `compression` tokens), and the top-k selection.
  void add_prefill(OperatorList& list, double count, const PrefillShape& shape, double compression) const;
  void add_decode(OperatorList& list, double count, const DecodeShape& shape, double compression) const;
};

}  // namespace roofcast
