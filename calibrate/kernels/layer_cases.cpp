// The matrix units alone, and the kernels between the GEMMs of a layer.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "calibrate/kernels/cuda_case.h"
#include "calibrate/kernels/launchers.h"
#include "calibrate/random_data.h"
#include "calibrate/reference.h"

namespace roofcast::calibrate::cuda {
namespace {

RateFormat rate_format(const std::string& dtype) {
  if (dtype == "bf16") return RateFormat::kBf16;
  if (dtype == "fp16") return RateFormat::kFp16;
  if (dtype == "fp8") return RateFormat::kFp8;
  if (dtype == "int8") return RateFormat::kInt8;
  throw Unsupported("no tensor-rate loop for " + dtype);
}

/// Rows of 32 bytes in one format, as words for the device and as values for the reference.
struct Rows32 {
  std::vector<std::uint32_t> words;
  std::vector<std::vector<double>> values;  ///< [row][k]
};

Rows32 random_rows(RateFormat format, std::size_t rows, std::uint32_t seed) {
  const bool wide = format == RateFormat::kBf16 || format == RateFormat::kFp16;
  const std::size_t k = wide ? 16 : 32;
  Rows32 out{std::vector<std::uint32_t>(rows * 8, 0), std::vector<std::vector<double>>(rows)};
  for (std::size_t i = 0; i < rows * k; ++i) {
    std::uint32_t bits = 0;
    double value = random_byte(seed, i);
    if (format == RateFormat::kInt8) {
      bits = static_cast<std::uint32_t>(random_byte(seed, i)) & 0xFFu;
    } else if (format == RateFormat::kFp8) {
      bits = random_e4m3(seed, i);
      value = static_cast<double>(e4m3_value(random_e4m3(seed, i)));
    } else {
      value /= 128.0;
      // fp16 of n / 128: the exponent bias changes from 127 to 15, the mantissa loses only zeros.
      const auto single = std::bit_cast<std::uint32_t>(static_cast<float>(value));
      const std::uint32_t half = (single & 0x7FFFFFFFu) == 0 ? 0 : ((single >> 13) & 0x3FFFFu) - ((127u - 15u) << 10);
      bits = format == RateFormat::kBf16 ? single >> 16 : ((single >> 16) & 0x8000u) | (half & 0x7FFFu);
    }
    out.words[wide ? i / 2 : i / 4] |= bits << (wide ? 16 * (i % 2) : 8 * (i % 4));
    out.values[i / k].push_back(value);
  }
  return out;
}

class RateCase final : public CudaCase {
 public:
  RateCase(const Context& context, const Point& point)
      : CudaCase(context),
        run_{rate_format(point.dtype), point.word("instruction") == "wgmma", 2 * context.sms(), 2048},
        a_(random_rows(run_.format, kRateSets * 16, kSeedX)),
        b_(random_rows(run_.format, kRateSets * kRateColumns, kSeedW)),
        d_(16 * kRateColumns * sizeof(float)),
        sink_(static_cast<std::size_t>(run_.blocks) * 256 * sizeof(float)) {
    if (run_.wgmma && context.properties.major != 9)
      throw Unsupported("wgmma is an instruction of compute capability 9.0");
    if (run_.format == RateFormat::kFp8 && context.capability() < 89)
      throw Unsupported("fp8 needs compute capability 8.9");
    upload(a_words_, a_.words.data(), a_.words.size() * 4);
    upload(b_words_, b_.words.data(), b_.words.size() * 4);
    flops_ = Flops{rate_flops(run_)};
    leave_warm();
  }
  std::string kernel() const override { return run_.wgmma ? "wgmma m64n128" : "mma m16n8"; }
  /// Two rounds: d is twice the sum of a b^T over the instructions of one round.
  std::string check() override {
    poison(d_);
    RateRun few = run_;
    few.rounds = 2;
    run_rate(context_.stream, few, a_words_.as<std::uint32_t>(), b_words_.as<std::uint32_t>(), d_.as<float>(),
             sink_.as<float>());
    context_.stream.wait();
    std::vector<double> want;
    std::vector<std::uint64_t> places;
    const std::size_t columns = run_.wgmma ? kRateColumns : 8;
    for (std::size_t row = 0; row < 16; ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        places.push_back(row * kRateColumns + column);
        const auto value = [](const std::vector<double>& of) { return [&of](std::uint64_t i) { return of[i]; }; };
        double sum = 0;
        for (int u = 0; u < kRateUnroll; ++u) {
          const std::vector<double>& a = a_.values[static_cast<std::size_t>(rate_sets(u).a) * 16 + row];
          const std::vector<double>& b = b_.values[static_cast<std::size_t>(rate_sets(u).b) * kRateColumns + column];
          sum += reference_dot(a.size(), value(a), value(b));
        }
        want.push_back(2.0 * sum);
      }
    }
    return differs(fetch(d_.as<float>(), places), want, 0.01, 10);
  }

 private:
  void enqueue(cudaStream_t stream, int) override {
    run_rate(stream, run_, a_words_.as<std::uint32_t>(), b_words_.as<std::uint32_t>(), d_.as<float>(),
             sink_.as<float>());
  }

  RateRun run_;
  Rows32 a_, b_;
  DeviceMemory a_words_, b_words_, d_, sink_;
};

constexpr float kEpsilon = 1e-5f;
constexpr double kRopeBase = 500000.0;

/// As between GEMMs: the input was just written and stays in L2.
class ElementwiseCase final : public CudaCase {
 public:
  ElementwiseCase(const Context& context, const Point& point)
      : CudaCase(context),
        operation_(point.word("operation")),
        rows_(whole(point, "tokens")),
        width_(whole(point, "width")) {
    const bool known =
        operation_ == "rmsnorm" || operation_ == "rope" || operation_ == "silu_mul" || operation_ == "quantize";
    if (!known || width_ % 128 != 0) throw Unsupported("no kernel " + operation_ + " of this width");
    const std::size_t elements = static_cast<std::size_t>(rows_) * static_cast<std::size_t>(width_);
    const std::size_t inputs = operation_ == "silu_mul" ? 2 * elements : elements;
    x_ = DeviceMemory(inputs * 2);
    w_ = DeviceMemory(static_cast<std::size_t>(width_) * 2);
    out_ = DeviceMemory(operation_ == "quantize" ? elements : elements * 2);
    scale_ = DeviceMemory(static_cast<std::size_t>(rows_) * sizeof(float));
    fill(context_.stream, x_.as<void>(), inputs, Fill::kBf16, kSeedX);
    fill(context_.stream, w_.as<void>(), static_cast<std::size_t>(width_), Fill::kBf16, kSeedW);
    context_.stream.wait();
    double bytes = static_cast<double>(x_.bytes() + out_.bytes());
    if (operation_ == "rope") bytes += make_table();
    bytes_ = Bytes{bytes};
    leave_warm();
  }
  std::string kernel() const override { return operation_ + ", one block per token"; }
  std::string check() override {
    poison(out_);
    poison(scale_);
    run_once();
    for (const std::uint64_t row : sample_places(static_cast<std::uint64_t>(rows_), 4, 1)) {
      std::string wrong = operation_ == "quantize" ? check_quantized(row) : check_row(row);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

 private:
  /// Cosines and sines of every row's position, [row][2][64]; returns their size in bytes.
  double make_table() {
    std::vector<float> table;
    for (int row = 0; row < rows_; ++row) {
      for (const bool sine : {false, true}) {
        for (int i = 0; i < 64; ++i) {
          const double angle = row * std::pow(kRopeBase, -i / 64.0);
          table.push_back(static_cast<float>(sine ? std::sin(angle) : std::cos(angle)));
        }
      }
    }
    upload(table_, table.data(), table.size() * sizeof(float));
    return static_cast<double>(table_.bytes());
  }
  std::vector<std::uint64_t> places(std::uint64_t row) const {
    std::vector<std::uint64_t> out;
    const auto width = static_cast<std::uint64_t>(width_);
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(width, 256); ++i) out.push_back(row * width + i);
    return out;
  }
  std::vector<double> input(std::uint64_t offset) const {
    std::vector<double> out;
    for (int i = 0; i < width_; ++i)
      out.push_back(static_cast<double>(random_unit(kSeedX, offset + static_cast<std::uint64_t>(i))));
    return out;
  }
  std::vector<double> expected(std::uint64_t row) const {
    const auto width = static_cast<std::uint64_t>(width_);
    std::vector<double> want;
    if (operation_ == "rmsnorm") {
      std::vector<double> w;
      for (std::uint64_t i = 0; i < width; ++i) w.push_back(static_cast<double>(random_unit(kSeedW, i)));
      want = reference_rmsnorm(input(row * width), w, static_cast<double>(kEpsilon));
    } else if (operation_ == "rope") {
      const std::vector<double> x = input(row * width);
      for (std::size_t head = 0; head < 2; ++head) {
        const auto one =
            reference_rope(std::span(x).subspan(head * 128 % x.size(), 128), static_cast<double>(row), kRopeBase);
        want.insert(want.end(), one.begin(), one.end());
      }
    } else {
      const std::vector<double> gate = input(2 * row * width), up = input((2 * row + 1) * width);
      for (std::size_t i = 0; i < gate.size(); ++i) want.push_back(reference_silu(gate[i]) * up[i]);
    }
    want.resize(places(row).size());
    return want;
  }
  std::string check_row(std::uint64_t row) const {
    return differs(fetch_bf16(out_.as<std::uint16_t>(), places(row)), expected(row), 1e-3, 7);
  }
  std::string check_quantized(std::uint64_t row) const {
    const double scale = fetch(scale_.as<float>(), {row})[0];
    std::vector<double> got = fetch(out_.as<std::int8_t>(), places(row)),
                        want = input(row * static_cast<std::uint64_t>(width_));
    double largest = 0;
    for (const double value : want) largest = std::max(largest, std::abs(value));
    want.resize(got.size());
    for (double& value : got) value *= scale;
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (!(std::abs(got[i] - want[i]) <= 0.51 * largest / 127))
        return fmt::format("{} is quantized as {}", want[i], got[i]);
    }
    return "";
  }
  void enqueue(cudaStream_t stream, int) override {
    const auto* const x = x_.as<Bf16>();
    if (operation_ == "rmsnorm") return rmsnorm(stream, x, w_.as<Bf16>(), out_.as<Bf16>(), rows_, width_, kEpsilon);
    if (operation_ == "rope") return rope(stream, x, table_.as<float>(), out_.as<Bf16>(), rows_, width_);
    if (operation_ == "silu_mul") return silu_mul(stream, x, out_.as<Bf16>(), rows_, width_);
    quantize(stream, x, out_.as<std::int8_t>(), scale_.as<float>(), rows_, width_);
  }

  std::string operation_;
  int rows_, width_;
  DeviceMemory x_, w_, out_, scale_, table_;
};

}  // namespace

std::unique_ptr<Case> make_rate_case(const Context& context, const Point& point) {
  return std::make_unique<RateCase>(context, point);
}
std::unique_ptr<Case> make_elementwise_case(const Context& context, const Point& point) {
  return std::make_unique<ElementwiseCase>(context, point);
}

}  // namespace roofcast::calibrate::cuda
