#include "sim/model/mixers/indexer.h"

#include <algorithm>
#include <cmath>

namespace roofcast {
namespace {}  // namespace

double mean_visible(double before, double query, double most) {
  if (most <= 0) return before + (query + 1.0) / 2.0;
  const double rising = std::clamp(most - before, 0.0, query);  // queries that see all earlier tokens
  return (rising * (before + (rising + 1.0) / 2.0) + (query - rising) * most) / query;
}

void Indexer::add_weights(LayerWeights& out, double query_width, double hidden) const {
  if (heads <= 0) return;
  const auto add = [&](const char* name, double k, double n, WeightRole role) {
    out.matrices.push_back({.name = name, .k = k, .n = n, .role = role, .input = ProductInput::kEarlier});
  };
  add("indexer_q_proj", query_width, heads * dim, WeightRole::kMixer);
  add("indexer_k_proj", hidden, dim, WeightRole::kMixer);
  add("indexer_weights_proj", hidden, heads, WeightRole::kOther);
  out.vectors += 2 * dim;
}

double Indexer::cache_bytes() const { return heads > 0 ? dim + 4.0 * std::ceil(dim / 128.0) : 0.0; }

/// Six kernels (vllm/model_executor/models/deepseek_v2.py, sglang/srt/layers/attention/nsa/nsa_indexer.py).
void Indexer::add_token_operators(OperatorList& list, double count, double tokens) const {
  if (heads <= 0) return;
  list.stream("indexer_inputs", count, tokens * (heads + 1) * dim * (3.0 * kHalfBytes + 1.0), 6.0);
}

/// DeepSeek-V3.2 (2025), eq. 1: sum over the heads of w relu(q k), in fp8.
///   work = 2 q heads dim visible: priced as the first half of multi-query attention. Scores of all heads are summed in
///   registers; one fp32 per pair is written, and read again by the top-k selection.
void Indexer::add_prefill(OperatorList& list, double count, const PrefillShape& shape, double compression) const {
  if (heads <= 0 || count <= 0) return;
  const AttentionHeads scores{.heads = heads / compression,
                              .kv_heads = 1,
                              .head_dim = dim,
                              .value_dim = 0,
                              .compute = Dtype::kFp8,
                              .kv = Dtype::kFp8};
  list.add("indexer_scores", count, PrefillWork{shape, scores});
  const double visible = mean_visible(shape.context_before, shape.query_len, 0) / compression;
  list.stream("indexer_top_k", count, shape.batch * shape.query_len * visible * 2.0 * 4.0);
}

/// In decode this is a product of few rows over many keys; a GPU without fp8 units dequantizes them.
void Indexer::add_decode(OperatorList& list, double count, const DecodeShape& shape, double compression) const {
  if (heads <= 0 || count <= 0) return;
  const double visible = shape.mean_context / compression;
  list.add("indexer_scores", count,
           GemmShape{.m = shape.query_len * heads,
                     .n = std::max(1.0, shape.batch * visible),
                     .k = dim,
                     .weights = Dtype::kFp8,
                     .activations = list.context().indexer_format,
                     .output_bytes = 4.0 / heads});
  list.stream("indexer_top_k", count, shape.batch * shape.query_len * visible * 2.0 * 4.0);
}

}  // namespace roofcast
