#include "sim/model/feed_forward/parts.h"

#include <cmath>

namespace roofcast {

void add_block_weights(LayerWeights& out, const std::string& prefix, const DenseFeedForward& block, double hidden,
                       const Sharding& s) {
  const double width = std::ceil(block.inter / s.tp);
  const double columns = width * (block.gated ? 2.0 : 1.0);
  out.matrices.push_back({.name = prefix + (block.gated ? "gate_up_proj" : "up_proj"),
                          .k = hidden,
                          .n = columns,
                          .input = block.gated ? ProductInput::kNorm : ProductInput::kAnything,
                          .stage = Stage::kShared,
                          .merges = block.gated ? std::vector{width, width} : std::vector<double>{}});
  out.matrices.push_back({.name = prefix + "down_proj", .k = width, .n = hidden, .stage = Stage::kShared});
  if (block.bias) out.vectors += columns + hidden;
}

void add_activation(OperatorList& list, const std::string& name, const DenseFeedForward& block, double count,
                    double tokens, double written) {
  const double values = (block.gated ? 2.0 : 1.0) + written;
  const double bytes = tokens * block.inter / list.context().sharding.tp * values * kHalfBytes;
  if (block.gated) return list.add_module(Module::kGatedActivation, name, count, bytes);
  list.stream(name, count, bytes);
}

}  // namespace roofcast
