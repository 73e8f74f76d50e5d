// Sizes of caches, and the cost of computing without one.

#include "lecture.h"
#include "sim/plan/lectures/cache_waste.h"

using namespace lecture;

TEST_CASE("Llama-2-70B, 4096 tokens: 2 x 80 x 8 x 128 x 4096 x 2 bytes") {
  CHECK(cache_bytes("llama-2-70b", 4096) == 1'342'177'280.0);  // one lecture prints 2.5 GB
}

TEST_CASE("64 sequences of 32,768 tokens: 687.2 GB, 4.9 times the weights (a lecture: 171.8 GB, 1.2)") {
  const double cache = 64 * cache_bytes("llama-2-70b", 32768);
  CHECK(cache == 687'194'767'360.0);  // 1.34 GB x 64 x 8
  CHECK(cache / 140e9 == within(4.9));
  CHECK(cache_bytes("llama-2-70b", 4096) / 140e9 == within(0.0096, 0.01));  // "about 1 %"
}

TEST_CASE("Llama-70B at 32,000 tokens: 10.49 GB, with 64 key-value heads 83.9 GB: less than the 140 GB of weights") {
  CHECK(cache_bytes("llama-2-70b", 32000) == 10'485'760'000.0);
  CHECK(cache_bytes("{name: llama-2-70b, num_key_value_heads: 64}", 32000) == 83'886'080'000.0);
  CHECK(deploy("{name: llama-2-70b, num_key_value_heads: 64}", "h100-sxm")->memory.weights.base() > 83.9e9);
}

TEST_CASE("quiz: 8 of 64 heads keep an eighth; one head keeps a 64th") {
  const double mha = cache_bytes("{name: llama-2-70b, num_key_value_heads: 64}", 1);
  CHECK(mha / cache_bytes("llama-2-70b", 1) == 8.0);
  CHECK(mha / cache_bytes("{name: llama-2-70b, num_key_value_heads: 1}", 1) == 64.0);
}

TEST_CASE("Llama-2-7B, 4096 tokens: 2 GiB") { CHECK(cache_bytes("llama-2-7b", 4096) == 2.0 * 1024 * 1024 * 1024); }

TEST_CASE("Llama-3-8B: 131,072 bytes a token (a lecture: 2.5 MB), 16 GiB at 131,072 (a lecture: 320 GB)") {
  CHECK(cache_bytes("llama-3-8b", 1) == 2.0 * 32 * 8 * 128 * 2);
  CHECK(cache_bytes("llama-3-8b", 131072) == 16.0 * 1024 * 1024 * 1024);
  CHECK(cache_bytes("llama-3-8b", 128000) / 1e9 == within(16.78, 0.001));  // "16 GB" at 128,000
  CHECK(deploy("llama-3-8b", "h100-sxm")->memory.weights.in(kGigabyte) ==
        within(16.06));  // about the weights, not more
}

TEST_CASE("Llama-2-13B: 838.9 MB a sequence of 1024; 819.2 MB of 1000 (a lecture: 1.28 GB)") {
  CHECK(cache_bytes("llama-2-13b", 1024) == 838'860'800.0);
  CHECK(cache_bytes("llama-2-13b", 1000) == 819'200'000.0);
}

TEST_CASE("without a cache 256 tokens after 4096 pass 1,081,216 tokens through the layers") {
  // 256 x 4096 + (0 + 1 + ... + 255) = 1,048,576 + 32,640; 4,224 a token
  CHECK(processed_tokens(4096, 256, false) == 1'081'216.0);
  CHECK(processed_tokens(4096, 256, false) / 256 == within(4223.5, 1e-6));
  CHECK(processed_tokens(4096, 256, true) == 4352.0);
}

TEST_CASE("from an empty prompt: 1 + 2 + ... + n against n, so step 100 computes 100 tokens or one") {
  CHECK(processed_tokens(1, 100, false) == 100.0 * 101 / 2);
  CHECK(processed_tokens(1, 101, false) - processed_tokens(1, 100, false) == 101.0);
  // the visualizer's counter: computed 101 tokens' keys instead of 5151, 98 % saved
  CHECK(1 - processed_tokens(1, 100, true) / processed_tokens(1, 100, false) == within(0.98));
}

TEST_CASE("quiz: token 200 after a prompt of 500 passes one token through the layers, with 700 in the cache") {
  const Estimate cached = decode("llama-2-13b", "h100-sxm", 1, 700);
  const Estimate naive = decode("llama-2-13b", "h100-sxm", 1, 700, "engine: {name: vllm, kv_cache: false}");
  CHECK(naive.decode.flops / cached.decode.flops == within(700, 0.03));
}

TEST_CASE("contiguous allocation for 2048 tokens wastes 80 % and more on chat, paging 4 %") {
  // ShareGPT as Kwon et al. measured it (2023, arXiv:2309.06180, section 6.1): 161 tokens in, 338 out
  const double held = mean_tokens_held(161, 338);  // 161 + 169
  CHECK(held == 330.0);
  CHECK(1 - contiguous_usage(held, 2048) == within(0.84));
  CHECK(paged_usage(held, 16) == within(0.978));
  CHECK(paged_usage(held, 1) == 1.0);
}
