#include "hw/dtype.h"

#include <doctest/doctest.h>

#include <string>

using namespace roofcast;

TEST_CASE("dtype: names and formats are one to one") {
  REQUIRE(dtype_names().size() == kDtypeCount);
  for (std::size_t i = 0; i < kDtypeCount; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    CHECK(name_of(dtype) == dtype_names()[i]);
    CHECK(parse_dtype(dtype_names()[i], {}) == dtype);
  }
  CHECK(name_of(Dtype::kFp8Block) == "fp8_block");
  CHECK(name_of(Dtype::kTernary) == "ternary");
}

TEST_CASE("dtype: the names that checkpoints use are understood") {
  CHECK(parse_dtype("bfloat16", {}) == Dtype::kBf16);
  CHECK(parse_dtype("float16", {}) == Dtype::kFp16);
  CHECK(parse_dtype("half", {}) == Dtype::kFp16);
  CHECK(parse_dtype("float32", {}) == Dtype::kFp32);
  CHECK(parse_dtype("e4m3", {}) == Dtype::kFp8);
  CHECK(parse_dtype("NVFP4", {}) == Dtype::kNvfp4);
}

TEST_CASE("dtype: an unknown name is refused at its place with the nearest one") {
  try {
    parse_dtype("bf15", SourceLocation{"model.yaml", 3, 12});
    FAIL("bf15 is no number format");
  } catch (const ConfigError& error) {
    const std::string message = error.what();
    CHECK(message.starts_with("model.yaml:3:12: "));
    CHECK(message.find("'bf15'") != std::string::npos);
    CHECK(message.find("nearest is 'bf16'") != std::string::npos);
  }
}

TEST_CASE("dtype: bytes of a stored element, scales included") {
  CHECK(bytes_per_element(Dtype::kFp32) == 4.0);
  CHECK(bytes_per_element(Dtype::kTf32) == 4.0);  // tf32 is how fp32 is multiplied, not how it is stored
  CHECK(bytes_per_element(Dtype::kBf16) == 2.0);
  CHECK(bytes_per_element(Dtype::kFp8) == 1.0);
  CHECK(bytes_per_element(Dtype::kInt4) == 0.5);
  // fp8_block: 8 + 32/(128*128) bits = 8.001953125 bits
  CHECK(bytes_per_element(Dtype::kFp8Block) == doctest::Approx(8.001953125 / 8).epsilon(1e-12));
  // nvfp4: 4 + 8/16 = 4.5 bits = 0.5625 B; mxfp4: 4 + 8/32 = 4.25 bits = 0.53125 B
  CHECK(bytes_per_element(Dtype::kNvfp4) == doctest::Approx(0.5625).epsilon(1e-12));
  CHECK(bytes_per_element(Dtype::kMxfp4) == doctest::Approx(0.53125).epsilon(1e-12));
  // BitNet b1.58: 1.58 bits
  CHECK(bytes_per_element(Dtype::kTernary) == doctest::Approx(0.1975).epsilon(1e-12));
}

TEST_CASE("dtype: a recipe's own groups replace the format's scales") {
  // AWQ: int4 in groups of 128, one fp16 scale and one 4-bit zero point: 4 + (16 + 4)/128 = 4.15625 bits
  const Scales awq{.group_size = 128, .bits = 16, .zero_point_bits = 4};
  CHECK(bytes_per_element(Dtype::kInt4, awq) == doctest::Approx(4.15625 / 8).epsilon(1e-12));
  // no groups: scales of a tensor or a channel are not worth counting
  CHECK(bytes_per_element(Dtype::kInt8, Scales{.group_size = 0, .bits = 16}) == 1.0);
  // smaller groups never take less
  double previous = 0.0;
  for (const double group : {1024.0, 256.0, 128.0, 64.0, 32.0}) {
    const double bytes = bytes_per_element(Dtype::kInt4, Scales{.group_size = group});
    CHECK(bytes > previous);
    previous = bytes;
  }
}
