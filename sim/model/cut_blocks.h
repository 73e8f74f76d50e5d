#pragma once
// Scale blocks of block fp8 that tensor parallelism splits.

#include <string>
#include <vector>

#include "sim/model/precision.h"
#include "sim/model/sharding.h"

namespace roofcast {

/// A product in block fp8 (one scale per 128 x 128 weights) whose share per GPU is not a whole number of blocks.
struct CutBlocks {
  std::string part;             ///< part of the model: "the experts", "the feed-forward" ...
  bool experts = false;         ///< routed experts
  double whole = 0, share = 0;  ///< width of the matrix, and of the share of one GPU
};
/// One entry per kind of layer with split blocks. Parts that are not sharded are not listed.
std::vector<CutBlocks> cut_blocks(const ModelSpec& model, const Precision& precision, const Sharding& sharding);

}  // namespace roofcast
