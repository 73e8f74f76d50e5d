// The table of KV methods, and architectures beside the transformer.

#include "lecture.h"

using namespace lecture;

namespace {

/// Cached values a token and layer, K and V together.
double values(const std::string& model, double layers) { return cache_bytes(model, 1) / 2 / layers; }

}  // namespace

TEST_CASE("64 heads of 128: 8192 values of K alone, 16,384 with V; GQA 8 keeps 2048, MQA 256") {
  CHECK(values("{name: llama-2-70b, num_key_value_heads: 64}", 80) == 2 * 8192);
  CHECK(values("llama-2-70b", 80) == 2 * 1024);
  CHECK(values("{name: llama-2-70b, num_key_value_heads: 1}", 80) == 2 * 128);
}

TEST_CASE("MLA keeps 512 + 64 values: 28 times less than 64 heads of 128 keep, K and V") {
  CHECK(values("deepseek-v2", 60) == 576);
  // 2 x 64 x 128 / 576 = 28.4; a lecture: from 16,000 to 512
  CHECK(values("{name: llama-2-70b, num_key_value_heads: 64}", 80) / values("deepseek-v2", 60) == within(28.4));
}

TEST_CASE("GQA shrinks the cache, not the weights: a batch of 1 hardly notices, 64 do") {
  const auto gain = [](int batch) {
    return decode("llama-2-13b", "h100-sxm", batch, 4096).decode.time /
           decode("{name: llama-2-13b, num_key_value_heads: 8}", "h100-sxm", batch, 4096).decode.time;
  };
  CHECK(gain(1) < 1.3);
  CHECK(gain(64) > 3.5);
}
