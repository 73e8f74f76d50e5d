#pragma once
// CPU reference computations for the microkernels, in double precision. Inputs are functions of their index; outputs
// are computed one at a time, because a check only takes a sample.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace roofcast::calibrate {

/// Element of a matrix or a cache by its position.
using Element = std::function<double(std::uint64_t index)>;

/// sum of a[i] b[i] over i < k.
double reference_dot(std::size_t k, const Element& a, const Element& b);

/// softmax(q K^T / sqrt(d)) V for one query: `length` keys and values of `d` elements, row by row.
std::vector<double> reference_attention(std::size_t d, std::size_t length, const Element& q, const Element& k,
                                        const Element& v);

/// x_i / sqrt(mean(x^2) + epsilon) * w_i
std::vector<double> reference_rmsnorm(std::span<const double> x, std::span<const double> w, double epsilon);
/// Rotates pairs (i, i + d/2) by position / base^(2 i / d): the rotary embedding of GPT-NeoX and Llama.
std::vector<double> reference_rope(std::span<const double> x, double position, double base);
double reference_silu(double x);

/// The values of a bf16 and of an IEEE half with these bits.
double bf16_value(std::uint16_t bits);
double half_value(std::uint16_t bits);

/// Compares `got` with `want`. Empty if every element is within `relative` of the root mean square of `want`, plus
/// rounding to `mantissa_bits`; else "element 3 is 0.5, expected 0.25". NaN and infinity are always wrong.
std::string differs(std::span<const double> got, std::span<const double> want, double relative, int mantissa_bits);

/// `count` positions in [0, size): the first, the last, and others drawn evenly.
std::vector<std::uint64_t> sample_places(std::uint64_t size, std::size_t count, std::uint32_t seed);

}  // namespace roofcast::calibrate
