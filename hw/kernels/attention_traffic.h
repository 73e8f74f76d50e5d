#pragma once
// Memory traffic of softmax(Q K^T) V over N tokens for one head, and how the on-chip tile changes it.

#include "base/units.h"

namespace roofcast {

/// One head of full (not causal) attention.
struct HeadShape {
  double tokens = 0;      ///< N, of queries and of keys
  double head_dim = 128;  ///< d
  double element_bytes = 2;
};

/// The N x N score matrix: e N^2.
Bytes score_matrix(const HeadShape& shape);

/// Three kernels (Q K^T, softmax, P V) write the scores, read them, write the weights and read them:
///   e (4 N d + 4 N^2).   Source: Dao et al., 2022, arXiv:2205.14135, algorithm 0.
Bytes naive_traffic(const HeadShape& shape);

/// Rows of the largest square tile, a power of two, whose queries, keys, values and scores fit in SRAM:
///   e (3 r d + r^2) <= M.
double flash_tile_rows(Bytes sram, const HeadShape& shape);

/// Each tile of r queries is loaded once and reads all keys and values; no N x N matrix leaves the chip:
///   e (2 N d + ceil(N / r) 2 N d), of order N^2 d^2 e^2 / M.   Source: Dao, 2023, arXiv:2307.08691, section 3.1.
/// This is the memory traffic if L2 keeps nothing. If all keys and values fit in L2, it is e 4 N d.
Bytes flash_traffic(const HeadShape& shape, double tile_rows);

}  // namespace roofcast
