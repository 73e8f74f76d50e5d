#pragma once
// What tensor parallelism cuts within the blocks of block fp8.

#include <string>
#include <vector>

#include "sim/model/precision.h"
#include "sim/model/sharding.h"

namespace roofcast {

/// A product in block fp8, whose 128 x 128 weights have one scale, of which a GPU's share is not whole blocks.
struct CutBlocks {
  std::string part;             ///< of the model: "the experts", "the feed-forward" ...
  bool experts = false;         ///< routed ones
  double whole = 0, share = 0;  ///< width, and what a GPU has of it
};
/// Those of each kind of layer. What no GPUs share is not among them: an engine reads it as it was stored.
std::vector<CutBlocks> cut_blocks(const ModelSpec& model, const Precision& precision, const Sharding& sharding);

}  // namespace roofcast
