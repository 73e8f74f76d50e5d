// Latency and throughput of decode against the batch: Llama-2-13B on an H100, and the 70B examples.

#include "lecture.h"

using namespace lecture;

namespace {

struct Row {
  int batch;
  double memory_gb, step_ms, tokens_per_s;
};

/// 2 bytes x 13.016 B parameters + batch x context x 819,200 B over 3.35 TB/s; the embedding table (0.33 GB) is not
/// read, which is 1.3 % at most.
void check(const Row& row, int context, const std::string& model = "llama-2-13b") {
  const Estimate e = decode(model, "h100-sxm", row.batch, context);
  CAPTURE(row.batch);
  const double cache = deploy(model, "h100-sxm")->memory.layout.sequence_bytes(context).in(kGigabyte)*row.batch;
  CHECK(e.memory.weights.in(kGigabyte) + cache == within(row.memory_gb));
  CHECK(e.decode.time.in(kMillisecond) == within(row.step_ms));
  CHECK(e.output_tokens_per_s == within(row.tokens_per_s));
  CHECK(e.decode.bound == Bound::kMemory);
}

}  // namespace

TEST_CASE("Llama-2-13B, S = 1024") {
  check({1, 26.84, 8.01, 124.8}, 1024);
  check({64, 79.7, 23.8, 2690}, 1024);
  check({256, 240.7, 71.87, 3562}, 1024);  // a lecture: 71.6 ms and 3,575, from 214 GB rounded
}

TEST_CASE("Llama-2-13B, S = 1000: a lecture prints 46.5 GB, 38.4 ms, 416 tok/s at B = 16") {
  check({1, 26.82, 8.0, 124.9}, 1000);  // "27.3 GB, 8.0 ms, 124"
  check({16, 39.1, 11.7, 1371}, 1000);
  check({64, 78.4, 23.4, 2734}, 1000);    // "108.1 GB, 146.9 ms, 436"
  check({256, 235.7, 70.4, 3638}, 1000);  // "354.3 GB, 587.8 ms, 436"
}

TEST_CASE(
    "GQA 1:5, 8 key-value heads for 40: 39.1 to 28.6 GB, 1,371 to 1,873 tok/s (a lecture: 46.5 to 30.9, 416 to 671)") {
  // The figures shrink the cache alone. A model built so has smaller K and V projections too:
  // 40 x 2 x 5120 x 4096 of them fewer, 3.36 GB less to read.
  const double weights = 26.0, cache = 16 * 0.8192 / 5;
  CHECK(weights + cache == within(28.6));
  CHECK(16 / ((weights + cache) / 3350) == within(1873));
  const Estimate e = decode("{name: llama-2-13b, num_key_value_heads: 8}", "h100-sxm", 16, 1000);
  CHECK(e.memory.weights.in(kGigabyte) == within(26.03 - 3.36));
  CHECK(e.decode.time.in(kMillisecond) == within((26.03 - 3.36 - 0.33 + cache) / 3.35));
}

TEST_CASE("64 times the batch gives 21 times the throughput, 4 times more of it 1.3 times") {
  const auto throughput = [](int batch) { return decode("llama-2-13b", "h100-sxm", batch, 1024).output_tokens_per_s; };
  CHECK(throughput(64) / throughput(1) == within(21.5));
  CHECK(throughput(256) / throughput(64) == within(1.324));
  // never above bandwidth over the cache of a sequence: 3.35e12 / 838.9e6 = 3993 tok/s
  CHECK(throughput(100000) < 3994);
}

TEST_CASE("B = 256 does not fit the 85 GB of an H100; 69 sequences do") {
  const Estimate e = decode("llama-2-13b", "h100-sxm", 256, 1024);
  CHECK_FALSE(e.memory.fits);
  // (85.0 - 26.03) / 0.8397 for 1025 tokens is 70; buffers of 0.93 GB leave 69
  CHECK(e.memory.max_batch == 69);
}

TEST_CASE("the configurator's example: 13B, B = 32, S = 2048 takes 79.7 GB and 23.8 ms") {
  const Estimate e = decode("llama-2-13b", "h100-sxm", 32, 2048);
  CHECK(e.decode.time.in(kMillisecond) == within(23.8));
  CHECK(e.output_tokens_per_s == within(1345));
}

TEST_CASE("Llama-2-70B reads 140 GB a token: 42 ms on an H100's bandwidth, which cannot hold it") {
  const Estimate e = decode("llama-2-70b", "h100-sxm", 1, 100);
  CHECK(e.memory.weights.in(kGigabyte) == within(140));
  CHECK(e.decode.time.in(kMillisecond) == within(140 / 3.35));
  CHECK(e.output_tokens_per_s == within(24, 0.03));  // 68.98 B parameters, less the embedding table
  CHECK_FALSE(e.memory.fits);
  CHECK(e.memory.reason.find("does not fit") != std::string::npos);
}

TEST_CASE("its first token after 100 takes the 41.8 ms that the weights take, not 30") {
  // compute: 2 x 69e9 x 100 / 989e12 = 14 ms
  const Estimate e = of("llama-2-70b", "h100-sxm", request(1, 100, 50));
  CHECK(e.ttft.in(kMillisecond) == within(41.8));
  CHECK(e.prefill.bound == Bound::kMemory);
  // end to end over first token of a reply of 50: 48, where a lecture says 5 to 10
  CHECK(e.request_latency / e.ttft == within(48));
}

TEST_CASE("about 0.1 s for 150 GB at 1.5 TB/s; an 80 GB A100 has 2.04 TB/s: 0.074 s") {
  const Estimate e = decode("{name: llama-2-70b, num_key_value_heads: 8}", "a100-sxm", 1, 32000);
  CHECK(e.decode.bytes.in(kGigabyte) == within(150));  // 140 + 10.5
  CHECK(e.decode.time.base() == within(0.074));
}

TEST_CASE("a forward pass is 2 x tokens x parameters; 6 is training's") {
  const Estimate e = of("llama-2-13b", "h100-sxm", request(1, 1024, 1));
  // 2 x 12.69 B in the layers x 1024 + causal attention 2 x 40 x 1024^2 x 5120 + one row of the head
  const double layers = 2 * 12.687e9 * 1024, attention = 2.0 * 40 * 1024 * 1024 * 5120;
  CHECK(e.prefill.flops.base() == within(layers + attention, 0.005));
  CHECK(e.prefill.bound == Bound::kCompute);
}

TEST_CASE("a prefill of 500 tokens is bound by compute, the decode after it by memory") {
  const Estimate e = of("llama-2-13b", "h100-sxm", request(1, 500, 128));
  CHECK(e.prefill.bound == Bound::kCompute);
  CHECK(e.decode.bound == Bound::kMemory);
  // FLOP a byte read of the weights: about 1 in decode
  CHECK(e.decode.flops / e.decode.bytes / FlopsPerByte(1) == within(1, 0.05));
}

TEST_CASE("replicas multiply throughput and leave latency alone") {
  EstimateRequest r = request(16, 1024, 128);
  const Estimate one = of("llama-2-13b", "h100-sxm", r);
  r.replicas = 5;
  const Estimate five = of("llama-2-13b", "h100-sxm", r);
  CHECK(five.output_tokens_per_s == doctest::Approx(5 * one.output_tokens_per_s));
  CHECK(five.tpot == one.tpot);
  CHECK(five.ttft == one.ttft);
}

TEST_CASE("a thousand users need no thousand GPUs: two H100s decode for 76 sequences of 1000 tokens at once") {
  // The lecture gives each user a GPU: 1,000 x 2 USD/h. Weights of 140 GB on two GPUs leave 30 GB of 85 x 2:
  // 30 / 0.328 GB = 88 sequences of 1000 tokens, at (140 + 29) / 6.7 TB/s = 25 ms, 40 tok/s each.
  const Estimate e = decode("llama-2-70b", "h100-sxm", 88, 1000, "parallelism: {tp: 2}");
  CHECK(e.memory.fits);
  CHECK(e.tpot.in(kMillisecond) < 1000.0 / 24);  // faster than the lecture's own 24 tok/s
  // 1000 / 88 x 2 = 23 GPUs in all
}
