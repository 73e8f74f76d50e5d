#include "sim/model/mixers/context_parallel.h"

namespace roofcast {

void add_context_exchange(OperatorList& list, double count, double rows, double heads, double query_dim,
                          double output_dim) {
  constexpr double kFloat = 4.0;  // bytes
  const int ranks = list.context().sharding.dcp;
  if (ranks <= 1) return;
  const double outputs = rows * heads * ranks * output_dim * kHalfBytes;
  list.exchange(Collective::kAllGather, "query_gather", count, rows * heads * query_dim * kHalfBytes, ranks);
  list.exchange(Collective::kAllGather, "softmax_gather", count, rows * heads * ranks * kFloat, ranks);
  list.stream("context_merge", count, 2.0 * outputs);
  list.exchange(Collective::kReduceScatter, "context_scatter", count, outputs, ranks);
}

void add_context_gather(OperatorList& list, double count, double bytes) {
  const int ranks = list.context().sharding.dcp;
  if (bytes > 0) list.exchange(Collective::kAllGather, "context_gather", count, bytes / ranks, ranks);
}

}  // namespace roofcast
