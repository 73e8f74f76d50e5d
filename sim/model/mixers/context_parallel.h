#pragma once
// Decode context parallelism: several GPUs each hold part of the tokens of a cache.

#include <algorithm>

#include "sim/model/operator_list.h"

namespace roofcast {

/// The decode shape of one rank: the heads of all ranks over its share of the tokens. Contexts shorter than the number
/// of ranks keep the new tokens.
inline DecodeShape part_of_context(DecodeShape shape, const Sharding& s) {
  const auto part = [&](double context) {
    return std::max(context / s.dcp, std::min<double>(context, shape.query_len));
  };
  shape.mean_context = part(shape.mean_context);
  shape.max_context = part(shape.max_context);
  return shape;
}

/// Each rank all-gathers the queries of all heads, `query_dim` values per head, and the fp32 log-sum-exps, corrects its
/// outputs, and reduce-scatters them by head. Source: vLLM, attention/ops/common.py (cp_lse_ag_out_rs). `heads` are
/// those of one rank before the gather. Adds nothing without context parallelism.
void add_context_exchange(OperatorList& list, double count, double rows, double heads, double query_dim,
                          double output_dim);

/// Before a prefill chunk attends to cached tokens, ranks all-gather them: `bytes` per layer.
void add_context_gather(OperatorList& list, double count, double bytes);

}  // namespace roofcast
