// Prices, fleets, and the products of claims.

#include "lecture.h"

using namespace lecture;

TEST_CASE("32 requests at once cost 94 % less a token than one on a 13B") {
  const auto usd = [](int batch) { return 1 / decode("llama-2-13b", "h100-sxm", batch, 1024).output_tokens_per_s; };
  CHECK(1 - usd(32) / usd(1) == within(0.938, 0.005));
}

TEST_CASE("output tokens over input tokens: prefill is bound by compute, decode by memory") {
  // A million input tokens at 2 x 13e9 FLOP over 989e12; a million outputs at 23.8 ms / 64: 13 times
  // the time, attention included.
  const Estimate e = of("llama-2-13b", "h100-sxm", request(64, 1024, 2, 1024));
  const double input = e.prefill.time.base() / (64 * 1024), output = e.decode.time.base() / 64;
  CHECK(output / input == within(12.9));
  // the ratios of the lecture's price list are 5, 4, 2, 5, 4
}

TEST_CASE("100 billion words a day are 1.5 million tokens a second: 573 H100s of a 13B at batch 64") {
  const double tokens_per_s = 100e9 * 4 / 3 / 86400;  // 4 tokens for 3 words
  CHECK(tokens_per_s / decode("llama-2-13b", "h100-sxm", 64, 1024).output_tokens_per_s == within(573));
}
