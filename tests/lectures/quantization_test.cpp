// Formats: worked examples of rounding, sizes of models, and which models fit.

#include <array>
#include <cmath>

#include "lecture.h"
#include "sim/plan/lectures/rounding.h"
#include "sim/step/deployment.h"

using namespace lecture;

namespace {

double weights_gb(const std::string& model, const std::string& format) {
  return deploy(model, "h100-sxm", "precision: " + format)->memory.weights.in(kGigabyte);
}

}  // namespace

TEST_CASE("INT8 of 0.5, -0.2, 0, -1: 64, -25, 0, -127, and a largest error of 0.0039 (a lecture: 0.001)") {
  const std::array w{0.5, -0.2, 0.0, -1.0};
  const QuantizedGroup g = quantize_absmax(w);
  CHECK(g.scale == doctest::Approx(0.007874).epsilon(1e-4));  // 1 / 127
  CHECK(g.integers == std::vector{64, -25, 0, -127});
  CHECK(g.value(0) == doctest::Approx(0.5039).epsilon(1e-3));
  CHECK(largest_error(w, g) == doctest::Approx(0.0039).epsilon(0.02));
  CHECK(g.bytes(32).base() == 8.0);  // 4 + 4, of 16 in FP32
}

TEST_CASE("INT8 of a row of five: 66, -127, 8, 58, -19, 9 bytes of 20, largest error 0.0012") {
  const std::array w{0.42, -0.81, 0.05, 0.37, -0.12};
  const QuantizedGroup g = quantize_absmax(w);
  CHECK(g.scale == doctest::Approx(0.00638).epsilon(1e-3));
  CHECK(g.integers == std::vector{66, -127, 8, 58, -19});
  const std::array printed{0.421, -0.810, 0.051, 0.370, -0.121};
  for (std::size_t i = 0; i < printed.size(); ++i) CHECK(g.value(i) == doctest::Approx(printed[i]).epsilon(0.002));
  CHECK(largest_error(w, g) == doctest::Approx(0.00118).epsilon(0.01));
  CHECK(g.bytes(32).base() == 9.0);
}

TEST_CASE("no error exceeds half a scale, and an outlier of 1000 rounds everything near zero away") {
  const std::array small{0.3, -0.7, 1.1, -0.2};
  CHECK(largest_error(small, quantize_absmax(small)) <= quantize_absmax(small).scale / 2);
  const std::array outlier{0.3, -0.7, 1.1, -0.2, 1000.0};
  CHECK(quantize_absmax(outlier).integers == std::vector{0, 0, 0, 0, 127});
}

TEST_CASE("NF4: 16 levels from -1 to 1, with zero, eight above it") {
  const auto levels = nf4_levels();
  REQUIRE(levels.size() == 16);
  CHECK(levels.front() == doctest::Approx(-1.0));
  CHECK(levels[7] == 0.0);
  CHECK(levels.back() == doctest::Approx(1.0));
  // arXiv:2305.14314, appendix E
  CHECK(levels[1] == doctest::Approx(-0.6961928009986877).epsilon(1e-4));
  CHECK(levels[8] == doctest::Approx(0.07958029955625534).epsilon(1e-4));
  CHECK(levels[14] == doctest::Approx(0.7229568362236023).epsilon(1e-4));
}

TEST_CASE("Llama-3-70B in 32, 16, 8 and 4 bits: 280, 140, 70 and 35 GB less what recipes leave in 16 bit") {
  CHECK(weights_gb("llama-3-70b", "fp32") == within(280));
  CHECK(weights_gb("llama-3-70b", "bf16") == within(140));
  // 70.55 B less 2.1 B of embedding and head, 1 byte each, and those in 2
  CHECK(weights_gb("llama-3-70b", "int8") == within(68.45 + 2 * 2.1));
  CHECK(weights_gb("llama-3-70b", "awq") == within(68.45 * (4 + 20.0 / 128) / 8 + 2 * 2.1));
}

TEST_CASE("280 GB need four A100s of 80 GB, 140 two, 72.6 one") {
  const double room = deploy("llama-3-70b", "a100-sxm", "parallelism: {tp: 8}")->gpu.memory_capacity.in(kGigabyte);
  const auto gpus = [&](const std::string& format) { return std::ceil(weights_gb("llama-3-70b", format) / room); };
  CHECK(gpus("fp32") == 4);
  CHECK(gpus("bf16") == 2);
  CHECK(gpus("int8") == 1);
}

TEST_CASE("70B in int4 fits no consumer GPU of 24 or 32 GB") {
  const auto d = deploy("llama-3-70b", "rtx-4090", "precision: awq");
  REQUIRE(d->memory.infeasible.has_value());
  CHECK(d->memory.weights.in(kGigabyte) > 35.0);
  // 32 GiB are 34.4 GB: even 4 bits flat do not fit
}

TEST_CASE("a 7B in the lecture's formats") {
  CHECK(weights_gb("llama-2-7b", "fp16") == within(13.48));                                 // "14"
  CHECK(weights_gb("llama-2-7b", "smoothquant") == within(6.476 + 2 * 0.262));              // "7"
  CHECK(weights_gb("llama-2-7b", "gptq") == within(6.476 * (4 + 20.0 / 128) / 8 + 0.524));  // "3.5": scales, head
  CHECK(weights_gb("llama-2-7b", "awq") == within(3.89));
  CHECK(weights_gb("llama-2-7b", "gguf_q4_k_m") == within(4.08));                  // "~4"; the file is 4.08
  CHECK(weights_gb("llama-2-7b", "bitnet") == within(6.476 * 1.585 / 8 + 0.524));  // "~1.5"
}

TEST_CASE("decode is bound by reading weights: half the bytes, half the time") {
  const auto step = [](const std::string& format) {
    return decode("llama-2-13b", "h100-sxm", 1, 1, "precision: " + format).decode.time;
  };
  const Seconds bf16 = step("bf16");
  CHECK(step("fp32") / bf16 == within(2.0));
  CHECK(bf16 / step("fp8") == within(1.95, 0.03));
  CHECK(bf16 / step("awq") == within(3.65, 0.03));  // "up to 4x": scales and the head stay
}

TEST_CASE("fp32 to int4 is 8 times; AWQ to 3 bits is 5.3 times, not the 4 a lecture prints") {
  CHECK(bytes_per_element(Dtype::kFp32) / bytes_per_element(Dtype::kInt4, {}) == within(8.0));
  CHECK(bytes_per_element(Dtype::kBf16) / bytes_per_element(Dtype::kInt3, {}) == within(5.33, 0.001));
}
