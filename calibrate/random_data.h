#pragma once
// Data that device and CPU generate identically, element by element. The device fills its buffers, the reference
// computes single elements, and nothing is copied. Values are exact in their format, and random, because zeros run
// faster.

#include <cstdint>

#if defined(__CUDACC__)
#define ROOFCAST_BOTH __host__ __device__ inline
#else
#define ROOFCAST_BOTH inline
#endif

namespace roofcast::calibrate {

/// 32 well mixed bits for an element (the finalizer of MurmurHash3, public domain).
ROOFCAST_BOTH std::uint32_t random_bits(std::uint32_t seed, std::uint64_t index) {
  std::uint64_t x = index + 0x9E3779B97F4A7C15ull * (seed + 1ull);
  x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCDull;
  x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53ull;
  return static_cast<std::uint32_t>(x >> 32);
}

/// -128 ... 127: an int8 value; divided by 128, a bf16 or fp16 value in [-1, 1).
ROOFCAST_BOTH int random_byte(std::uint32_t seed, std::uint64_t index) {
  return static_cast<int>(random_bits(seed, index) & 0xFFu) - 128;
}
ROOFCAST_BOTH float random_unit(std::uint32_t seed, std::uint64_t index) {
  return static_cast<float>(random_byte(seed, index)) / 128.0f;
}

/// An e4m3 code with exponent 2^-4 ... 2^-1, so its magnitude is 0.0625 to 0.9375.
ROOFCAST_BOTH std::uint8_t random_e4m3(std::uint32_t seed, std::uint64_t index) {
  const std::uint32_t bits = random_bits(seed, index);
  return static_cast<std::uint8_t>((bits & 0x80u) | ((3u + (bits >> 8) % 4u) << 3) | (bits & 7u));
}
/// Value of a normal e4m3 code: (-1)^s 2^(e - 7) (1 + m / 8).
ROOFCAST_BOTH float e4m3_value(std::uint8_t code) {
  const int exponent = (code >> 3) & 15;
  float value = 1.0f + static_cast<float>(code & 7) / 8.0f;
  for (int e = exponent; e < 7; ++e) value *= 0.5f;
  for (int e = 7; e < exponent; ++e) value *= 2.0f;
  return (code & 0x80) ? -value : value;
}

/// The value of an e2m1 code, 0 ... 15: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives (OCP Microscaling Formats,
/// 5.3.3).
ROOFCAST_BOTH float e2m1_value(int code) {
  const int exponent = (code >> 1) & 3, mantissa = code & 1;
  const float size = exponent == 0
                         ? 0.5f * static_cast<float>(mantissa)
                         : (1.0f + 0.5f * static_cast<float>(mantissa)) * static_cast<float>(1 << (exponent - 1));
  return (code & 8) ? -size : size;
}

/// The nibble of element e among 8 packed 4-bit weights: even elements in nibbles 0 to 3, odd ones in 4 to 7, so that
/// one shift and one mask give a pair.
ROOFCAST_BOTH constexpr int nibble_place(int e) { return e / 2 + 4 * (e % 2); }

/// 4 bits, 0 ... 15; the weight is nibble - 8.
ROOFCAST_BOTH int nibble_of(std::uint32_t word, int place) { return static_cast<int>((word >> (4 * place)) & 15u); }

}  // namespace roofcast::calibrate
