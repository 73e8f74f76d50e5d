// The CUDA kernels themselves, run on the CPU thread by thread and compared with the plain references. Emulation shows
// that the indexing, masking and summation are right; the instructions are the GPU's own affair.

#include "tests/calibrate/kernels/emulated_gpu.h"

#include <doctest/doctest.h>

#include "calibrate/kernels/attention.cuh"
#include "calibrate/kernels/products.cuh"
#include "calibrate/kernels/streaming.cuh"
#include "calibrate/random_data.h"
#include "calibrate/reference.h"

using namespace roofcast;
using namespace roofcast::calibrate;
using emulated::launch;
using kernels::Bf16;

namespace {

std::vector<Bf16> random_bf16(std::size_t count, std::uint32_t seed) {
  std::vector<Bf16> out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<Bf16>(std::bit_cast<std::uint32_t>(random_unit(seed, i)) >> 16);
  return out;
}

double value_of(Bf16 bits) { return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16)); }

Element from(std::uint32_t seed, std::uint64_t offset, std::uint64_t width, std::uint64_t stride) {
  return
      [=](std::uint64_t i) { return static_cast<double>(random_unit(seed, offset + i / width * stride + i % width)); };
}

std::vector<double> values_of(const std::vector<Bf16>& bits) {
  std::vector<double> out;
  for (const Bf16 b : bits) out.push_back(value_of(b));
  return out;
}

/// Every output of attention over tokens laid out [batch, tokens, kv_heads, d].
std::vector<double> attention_of(int batch, int queries, int tokens, int heads, int kv_heads, int d) {
  std::vector<double> want;
  for (int b = 0; b < batch; ++b) {
    for (int i = 0; i < queries; ++i) {
      for (int h = 0; h < heads; ++h) {
        const auto row = static_cast<std::uint64_t>(((b * queries + i) * heads + h) * d);
        const auto cache = static_cast<std::uint64_t>((b * tokens * kv_heads + h / (heads / kv_heads)) * d);
        const auto width = static_cast<std::uint64_t>(d), stride = static_cast<std::uint64_t>(kv_heads * d);
        const auto one =
            reference_attention(width, static_cast<std::size_t>(tokens - queries + i + 1), from(1, row, width, width),
                                from(2, cache, width, stride), from(3, cache, width, stride));
        want.insert(want.end(), one.begin(), one.end());
      }
    }
  }
  return want;
}

constexpr Bf16 kPoison = 0x7FC0;  // NaN

template <int D>
std::string decode(int batch, int context, int heads, int kv_heads, int splits) {
  const auto count = static_cast<std::size_t>(batch * context * kv_heads * D);
  const std::vector<Bf16> q = random_bf16(static_cast<std::size_t>(batch * heads * D), 1), k = random_bf16(count, 2),
                          v = random_bf16(count, 3);
  std::vector<Bf16> out(q.size(), kPoison);
  std::vector<float> partial(static_cast<std::size_t>(batch * heads * splits * (D + 2)), NAN);
  const int per_split = (context + splits - 1) / splits;
  const kernels::DecodeArgs args{q.data(),       k.data(), v.data(),  out.data(),
                                 partial.data(), heads,    kv_heads,  context,
                                 heads * D,      splits,   per_split, 1.442695041f / std::sqrt(static_cast<float>(D))};
  launch({static_cast<unsigned>(splits), static_cast<unsigned>(kv_heads), static_cast<unsigned>(batch)},
         kernels::kAttentionThreads, kernels::kDecodeSharedBytes<D>, [&] { kernels::decode_kernel<D>(args); });
  if (splits > 1) {
    launch({static_cast<unsigned>(batch * heads), 1, 1}, D, 0,
           [&] { kernels::combine_kernel<D>(partial.data(), out.data(), splits); });
  }
  return differs(values_of(out), attention_of(batch, 1, context, heads, kv_heads, D), 0.02, 7);
}

template <int D>
std::string prefill(int batch, int length, int heads, int kv_heads) {
  const auto count = static_cast<std::size_t>(batch * length * kv_heads * D);
  const std::vector<Bf16> q = random_bf16(static_cast<std::size_t>(batch * length * heads * D), 1),
                          k = random_bf16(count, 2), v = random_bf16(count, 3);
  std::vector<Bf16> out(q.size(), kPoison);
  const kernels::PrefillArgs args{q.data(), k.data(), v.data(), out.data(),
                                  heads,    kv_heads, length,   1.442695041f / std::sqrt(static_cast<float>(D))};
  const unsigned tiles = static_cast<unsigned>(length + kernels::kPrefillTile - 1) / kernels::kPrefillTile;
  launch({tiles, static_cast<unsigned>(heads), static_cast<unsigned>(batch)}, kernels::kAttentionThreads,
         kernels::kPrefillSharedBytes<D>, [&] { kernels::prefill_kernel<D>(args); });
  return differs(values_of(out), attention_of(batch, length, length, heads, kv_heads, D), 0.02, 7);
}

}  // namespace

TEST_CASE("kernels: decode attention equals the reference") {
  CHECK(decode<128>(1, 37, 4, 1, 1) == "");  // a cut-off group of 16 keys, a group of four heads
  CHECK(decode<64>(2, 70, 32, 2, 2) == "");  // 16 heads a group: all rows; splits put together
  CHECK(decode<64>(1, 1, 2, 2, 1) == "");    // one token: three warps see nothing
  CHECK(decode<64>(1, 40, 2, 1, 3) == "");   // splits of 14 tokens
}

TEST_CASE("kernels: prefill attention equals the reference") {
  CHECK(prefill<64>(2, 20, 2, 1) == "");   // less than a tile
  CHECK(prefill<128>(1, 70, 1, 1) == "");  // a second tile of 6 queries
}

TEST_CASE("kernels: skinny products equal the reference") {
  constexpr int m = 3, n = 32, k = 640;  // five steps of 128: one warp takes two
  const std::vector<Bf16> x = random_bf16(m * k, 1), w = random_bf16(n * k, 2);
  std::vector<Bf16> y(m * n, kPoison);
  launch({n / kernels::kSkinnyRows, 1, 1}, kernels::kSkinnyThreads, kernels::kSkinnySharedBytes<1>,
         [&] { kernels::skinny_kernel<1>(x.data(), w.data(), y.data(), m, n, k); });
  std::vector<double> want;
  for (std::uint64_t i = 0; i < m * n; ++i)
    want.push_back(reference_dot(k, from(1, i / n * k, k, k), from(2, i % n * k, k, k)));
  CHECK(differs(values_of(y), want, 1e-3, 8) == "");
}

TEST_CASE("kernels: 4-bit products equal the reference") {
  constexpr int m = 11, n = 16, k = 640;  // two tiles of 8 tokens, the second cut off; five steps of 128
  const std::vector<Bf16> x = random_bf16(m * k, 1), scale = random_bf16(n * k / 128, 4);
  std::vector<std::uint32_t> w(n * k / 8);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = random_bits(5, i);
  std::vector<Bf16> y(m * n, kPoison);
  launch({n / kernels::kSkinnyRows, 1, 1}, kernels::kSkinnyThreads, kernels::kSkinnySharedBytes<2>,
         [&] { kernels::int4_kernel<2>(x.data(), w.data(), scale.data(), y.data(), m, n, k); });
  std::vector<double> want;
  for (std::uint64_t i = 0; i < m * n; ++i) {
    const auto weight = [&](std::uint64_t e) {
      const std::uint64_t at = i % n * k + e;
      return (nibble_of(w[at / 8], nibble_place(static_cast<int>(at % 8))) - 8) * value_of(scale[at / 128]);
    };
    want.push_back(reference_dot(k, from(1, i / n * k, k, k), weight));
  }
  CHECK(differs(values_of(y), want, 1e-3, 8) == "");
}

TEST_CASE("kernels: products of experts equal the reference") {
  constexpr int n = 128, k = 192, rows = 70;  // six steps of 32, more than the stages
  const std::vector<Bf16> x = random_bf16(rows * k, 1), w = random_bf16(2 * n * k, 2);
  const std::vector<kernels::ExpertTile> tiles{{1, 0, 64}, {1, 64, 1}, {0, 65, 5}};
  std::vector<Bf16> y(rows * n, kPoison);
  launch({n / kernels::kExpertColumns, static_cast<unsigned>(tiles.size()), 1}, kernels::kExpertThreads,
         kernels::kExpertSharedBytes,
         [&] { kernels::expert_kernel(x.data(), w.data(), y.data(), tiles.data(), n, k); });
  std::vector<double> want;
  for (std::uint64_t i = 0; i < rows * n; ++i) {
    const std::uint64_t expert = i / n < 65 ? 1 : 0;
    want.push_back(reference_dot(k, from(1, i / n * k, k, k), from(2, (expert * n + i % n) * k, k, k)));
  }
  CHECK(differs(values_of(y), want, 1e-3, 8) == "");
}

TEST_CASE("kernels: streams read, write and copy every word once") {
  constexpr std::size_t count = 9001;  // blocks of 4096 words, the last cut off
  std::vector<uint4> in(count), out(count, uint4{0, 0, 0, 0});
  std::uint32_t all = 0;
  for (std::size_t i = 0; i < count; ++i) {
    in[i] = {random_bits(1, 4 * i), random_bits(1, 4 * i + 1), random_bits(1, 4 * i + 2), random_bits(1, 4 * i + 3)};
    all ^= in[i].x ^ in[i].y ^ in[i].z ^ in[i].w;
  }
  constexpr unsigned blocks = 2;
  std::vector<std::uint32_t> sums(blocks * kernels::kStreamThreads / 32, 0xFFFFFFFFu);
  launch({blocks, 1, 1}, kernels::kStreamThreads, 0, [&] { kernels::read_kernel(in.data(), count, sums.data(), 3); });
  for (const std::uint32_t sum : sums) all ^= sum;
  CHECK(all == 0);
  launch({blocks, 1, 1}, kernels::kStreamThreads, 0, [&] { kernels::copy_kernel(in.data(), out.data(), count, 2); });
  CHECK(std::memcmp(in.data(), out.data(), count * 16) == 0);
  launch({blocks, 1, 1}, kernels::kStreamThreads, 0, [&] { kernels::write_kernel(out.data(), count, 75, 3); });
  bool right = true;
  for (std::size_t i = 0; i < count; ++i) right = right && out[i].x == i && out[i].z == i && out[i].w == 77;
  CHECK(right);
}

TEST_CASE("kernels: norm, rope, activation and quantization equal their references") {
  constexpr int rows = 2, width = 2176;  // 272 words of 16 bytes: a second round of 16 threads; 17 heads of 128
  const std::vector<Bf16> x = random_bf16(rows * 2 * width, 1), w = random_bf16(width, 2);
  const std::vector<double> values = values_of(x);
  std::vector<Bf16> out(rows * width, kPoison);
  const auto row = [&](int r, int of) { return std::span(values).subspan(static_cast<std::size_t>(r * of), width); };

  launch({rows, 1, 1}, kernels::kRowThreads, 32,
         [&] { kernels::rmsnorm_kernel(x.data(), w.data(), out.data(), width, 1e-5f); });
  std::vector<double> want;
  for (int r = 0; r < rows; ++r) {
    const auto one = reference_rmsnorm(row(r, width), values_of(w), 1e-5);
    want.insert(want.end(), one.begin(), one.end());
  }
  CHECK(differs(values_of(out), want, 1e-4, 8) == "");

  std::vector<float> table;
  for (int r = 0; r < rows; ++r) {
    for (int part = 0; part < 2; ++part) {
      for (int i = 0; i < 64; ++i) {
        const double angle = (r + 5) * std::pow(10000.0, -i / 64.0);
        table.push_back(static_cast<float>(part ? std::sin(angle) : std::cos(angle)));
      }
    }
  }
  launch({rows, 1, 1}, kernels::kRowThreads, 0,
         [&] { kernels::rope_kernel(x.data(), table.data(), out.data(), width); });
  want.clear();
  for (int h = 0; h < rows * width / 128; ++h) {
    const auto one = reference_rope(std::span(values).subspan(static_cast<std::size_t>(h * 128), 128),
                                    h / (width / 128) + 5, 10000.0);
    want.insert(want.end(), one.begin(), one.end());
  }
  CHECK(differs(values_of(out), want, 1e-4, 8) == "");

  launch({rows, 1, 1}, kernels::kRowThreads, 0, [&] { kernels::silu_mul_kernel(x.data(), out.data(), width); });
  want.clear();
  for (int i = 0; i < rows * width; ++i) {
    const auto gate = static_cast<std::size_t>(i / width * 2 * width + i % width);
    want.push_back(reference_silu(values[gate]) * values[gate + width]);
  }
  CHECK(differs(values_of(out), want, 1e-4, 8) == "");

  std::vector<std::int8_t> bytes(rows * width, 0);
  std::vector<float> scale(rows, NAN);
  launch({rows, 1, 1}, kernels::kRowThreads, 32,
         [&] { kernels::quantize_kernel(x.data(), bytes.data(), scale.data(), width); });
  double worst = 0;
  for (int i = 0; i < rows * width; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const double step = static_cast<double>(scale[at / width]);
    worst = std::max(worst, std::abs(bytes[at] * step - values[at]) / step);
  }
  CHECK(worst < 0.501);  // rounded to the nearest step
  CHECK(static_cast<double>(scale[0]) ==
        doctest::Approx(1.0 / 127).epsilon(0.01));  // the largest of 2176 is 1 or 127/128
}
