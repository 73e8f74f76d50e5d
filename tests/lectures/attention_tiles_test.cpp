// FlashAttention: sizes of matrices and tiles, traffic against SRAM.

#include "hw/kernels/attention_traffic.h"

#include "lecture.h"

using namespace lecture;

TEST_CASE("the attention matrix: 134 MB a head at 8192 in fp16, 16.8 M entries at 4096, 4.3 GB at 32,768 in fp32") {
  CHECK(score_matrix({.tokens = 8192}).base() == 134'217'728.0);
  CHECK(score_matrix({.tokens = 4096, .element_bytes = 1}).base() == 16'777'216.0);
  CHECK(score_matrix({.tokens = 32768, .element_bytes = 4}).in(kGigabyte) == within(4.295, 0.001));
}

TEST_CASE("about 8 GB a layer at 8192: 64 heads in fp16") {
  CHECK(64 * score_matrix({.tokens = 8192}).in(kGigabyte) == within(8.59, 0.001));
}

TEST_CASE("a 256 x 256 tile is 131 kB, but with its queries, keys and values it fits no SM") {
  CHECK(score_matrix({.tokens = 256}).base() == 131'072.0);
  const HeadShape head{.tokens = 8192, .head_dim = 128};
  const Bytes a100 = deploy("llama-2-7b", "a100-sxm")->gpu.shared_memory_per_sm;
  const Bytes h100 = deploy("llama-2-7b", "h100-sxm")->gpu.shared_memory_per_sm;
  CHECK(flash_tile_rows(a100, head) == 128);
  CHECK(flash_tile_rows(h100, head) == 128);  // 2 (3 x 128 x 128 + 128^2) = 131 kB; twice the rows: 328 kB of 233
  // ... nor does an 8 x 8 grid over 4096, tiles of 512: 2 x 512^2 = 524 kB. The 20 MB are those of all SMs together.
  CHECK(score_matrix({.tokens = 512}) > h100);
  CHECK(deploy("llama-2-7b", "a100-sxm")->gpu.sm_count * a100.in(kMebibyte) == within(17.3));
}

TEST_CASE("traffic of one head, N = 4096, d = 128") {
  const HeadShape head{.tokens = 4096};
  CHECK(naive_traffic(head).base() == 2.0 * (4 * 4096 * 128 + 4.0 * 4096 * 4096));  // 138.4 MB
  CHECK(flash_traffic(head, 128).base() == 2.0 * 2 * 4096 * 128 * 33);              // 69.2 MB, L2 left out
  CHECK(flash_traffic(head, 4096).base() == 2.0 * 4 * 4096 * 128);                  // 4.2 MB: keys and values once
}

TEST_CASE("more SRAM never moves more bytes, and twice the rows halve the streamed bytes") {
  const HeadShape head{.tokens = 8192, .head_dim = 64};
  Bytes last(1e18);
  for (double kib : {16.0, 48.0, 100.0, 164.0, 228.0, 1000.0}) {
    const Bytes moved = flash_traffic(head, flash_tile_rows(Bytes(kib * 1024), head));
    CHECK(moved <= last);
    CHECK(moved < naive_traffic(head));
    last = moved;
  }
  CHECK(flash_traffic(head, 64) / flash_traffic(head, 128) == within(2.0));
}

TEST_CASE("a prefill without the score matrix: the gain of attention on an H100") {
  const auto attention = [](const std::string& kernel) {
    const Estimate e =
        of("llama-2-7b", "h100-sxm", request(1, 4096, 1), "engine: {name: vllm, attention_kernel: " + kernel + "}");
    Seconds time{};
    for (const OperatorTime& op : e.prefill.operators) {
      if (op.family == OperatorFamily::kAttentionPrefill) time += op.cost.time;
    }
    return time;
  };
  // flash: half of 4 x 4096^2 x 4096 FLOP a layer, 0.142 ms; naive: 32 heads x 138.4 MB, 1.32 ms
  CHECK(attention("flash").in(kMillisecond) / 32 == within(0.142));
  CHECK(attention("naive").in(kMillisecond) / 32 == within(1.32));
}
