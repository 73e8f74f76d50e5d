#include "sim/model/cut_blocks.h"

#include <cmath>

#include "sim/model/weights.h"

namespace roofcast {
namespace {

constexpr double kBlock = 128;  // rows and columns of a block (DeepSeek-V3, arXiv:2412.19437, section 3.3.2)

std::string part_of(const WeightMatrix& matrix) {
  if (matrix.role == WeightRole::kExpert) return "the experts";
  if (matrix.role == WeightRole::kMixer)
    return matrix.name == "o_proj" ? "the attention's output" : "the layers with a state";
  return matrix.name.starts_with("shared_") ? "the shared expert" : "the feed-forward";
}

}  // namespace

/// Checks the products that are split by rows; gate and up before them are split by columns to the same width. Merged
/// columns of q, k and v may end within a block (vllm/model_executor/layers/linear.py,
/// _maybe_allow_fp8_block_shape_mismatch, since December 2025).
std::vector<CutBlocks> cut_blocks(const ModelSpec& model, const Precision& p, const Sharding& s) {
  constexpr Dtype kFormat = Dtype::kFp8Block;
  std::vector<CutBlocks> cut;
  if (p.weights != kFormat && p.expert_weights != kFormat && p.attention_weights != kFormat) return cut;
  for (const LayerKind& kind : model.layers) {
    const std::vector<WeightMatrix> mine = layer_weights(model, kind, s).matrices,
                                    all = layer_weights(model, kind, {}).matrices;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const double share = mine[i].k, whole = all[i].k;
      if (share == whole || std::fmod(share, kBlock) == 0.0 || dtype_of(mine[i].role, p) != kFormat) continue;
      cut.push_back({part_of(mine[i]), mine[i].role == WeightRole::kExpert, whole, share});
    }
  }
  return cut;
}

}  // namespace roofcast
