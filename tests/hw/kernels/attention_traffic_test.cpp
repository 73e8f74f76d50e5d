#include "hw/kernels/attention_traffic.h"

#include <doctest/doctest.h>

using namespace roofcast;

TEST_CASE("attention traffic: a head of 1024 tokens and 64 values in 16 bit") {
  const HeadShape head{.tokens = 1024, .head_dim = 64, .element_bytes = 2};
  CHECK(score_matrix(head) == Bytes(2'097'152));
  // q, k, v and the output once, and the matrix four times: written and read as scores and as probabilities
  CHECK(naive_traffic(head) == Bytes(4 * 131'072 + 4 * 2'097'152));
  // q and the output once, and k and v for each of 11 tiles of queries: 10 of 96 rows and one of 64
  CHECK(flash_traffic(head, 96) == Bytes(2 * 131'072 + 2 * 11 * 131'072));
  CHECK(flash_traffic(head, 1024) == Bytes(4 * 131'072));
}

TEST_CASE("attention traffic: a tile is as large as its queries, keys, values and scores have room") {
  const HeadShape head{.tokens = 1024, .head_dim = 64, .element_bytes = 2};
  CHECK(flash_tile_rows(Bytes(81'920), head) == 128);  // 2 (3 x 128 x 64 + 128^2)
  CHECK(flash_tile_rows(Bytes(81'919), head) == 64);
  CHECK(flash_tile_rows(Bytes(0), head) == 1);
}
