#pragma once
// Decode over a cache that several GPUs share token by token.

#include <algorithm>

#include "sim/model/operator_list.h"

namespace roofcast {

/// What one rank decodes: all ranks' heads over its part of the tokens; of contexts shorter than the ranks, the new
/// ones.
inline DecodeShape part_of_context(DecodeShape shape, const Sharding& s) {
  const auto part = [&](double context) {
    return std::max(context / s.dcp, std::min<double>(context, shape.query_len));
  };
  shape.mean_context = part(shape.mean_context);
  shape.max_context = part(shape.max_context);
  return shape;
}

/// Ranks gather the queries of all heads, `query_dim` values each, and the sums of their softmaxes in fp32, correct
/// their outputs and add them up, each for its own heads. Source: vLLM, attention/ops/common.py (cp_lse_ag_out_rs).
/// `heads` are those of one rank before the gather. Nothing without context parallelism.
void add_context_exchange(OperatorList& list, double count, double rows, double heads, double query_dim,
                          double output_dim);

/// Before a chunk of a prompt attends to what was cached of it, ranks gather that: `bytes` of one layer.
void add_context_gather(OperatorList& list, double count, double bytes);

}  // namespace roofcast
