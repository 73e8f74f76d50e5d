// GEMMs by cuBLASLt, by our own kernels for few rows, and grouped by expert. Weights rotate, because a layer never
// finds its own in L2. Activations do not, because the previous kernel has just written them.

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "calibrate/kernels/cuda_case.h"
#include "calibrate/kernels/launchers.h"
#include "calibrate/random_data.h"
#include "calibrate/reference.h"

namespace roofcast::calibrate::cuda {
namespace {

ProductFormat format_of(const std::string& dtype) {
  if (dtype == "bf16") return ProductFormat::kBf16;
  if (dtype == "fp16") return ProductFormat::kFp16;
  if (dtype == "fp8") return ProductFormat::kFp8;
  if (dtype == "fp8_block") return ProductFormat::kFp8Block;
  if (dtype == "nvfp4") return ProductFormat::kNvfp4;
  if (dtype == "int8") return ProductFormat::kInt8;
  throw Unsupported("no GEMM in " + dtype);
}

Fill fill_of(ProductFormat format) {
  switch (format) {
    case ProductFormat::kBf16:
      return Fill::kBf16;
    case ProductFormat::kFp16:
      return Fill::kFp16;
    case ProductFormat::kFp8:
    case ProductFormat::kFp8Block:
      return Fill::kE4m3;
    case ProductFormat::kNvfp4:
      return Fill::kWords;  // eight codes per word, each a number
    case ProductFormat::kInt8:
      return Fill::kInt8;
  }
  throw Unsupported("no such format");
}

Element element_of(ProductFormat format, std::uint32_t seed, std::uint64_t offset) {
  if (format == ProductFormat::kInt8)
    return [=](std::uint64_t i) { return static_cast<double>(random_byte(seed, offset + i)); };
  if (format == ProductFormat::kNvfp4)
    return [=](std::uint64_t i) {
      const std::uint64_t at = offset + i;
      return static_cast<double>(e2m1_value(nibble_of(random_bits(seed, at / 8), static_cast<int>(at % 8))));
    };
  if (format == ProductFormat::kFp8 || format == ProductFormat::kFp8Block)
    return [=](std::uint64_t i) { return static_cast<double>(e4m3_value(random_e4m3(seed, offset + i))); };
  return [=](std::uint64_t i) { return static_cast<double>(random_unit(seed, offset + i)); };
}

/// y[m, n] = x[m, k] w[n, k]^T; 64 of its elements are checked.
class ProductCase : public CudaCase {
 public:
  ProductCase(const Context& context, const Point& point, ProductFormat format, double weight_bits)
      : CudaCase(context),
        format_(format),
        m_(whole(point, "m")),
        n_(whole(point, "n")),
        k_(whole(point, "k")),
        weight_bytes_(static_cast<std::size_t>(static_cast<double>(elements(n_, k_)) * weight_bits / 8.0)) {
    flops_ = Flops{2.0 * m_ * static_cast<double>(n_) * k_};
    x_ = DeviceMemory(bytes_of(format, elements(m_, k_)));
    y_ = DeviceMemory(elements(m_, n_) * output_bytes(format));
    slots_ = static_cast<std::size_t>(rotate(weight_bytes_));
    w_ = DeviceMemory(slots_ * weight_bytes_);
    fill(context_.stream, x_.as<void>(), filled(format, elements(m_, k_)), fill_of(format), kSeedX);
    bytes_ = Bytes{static_cast<double>(x_.bytes() + y_.bytes() + weight_bytes_)};
  }
  std::string check() override {
    poison(y_);
    run_once();
    const std::vector<std::uint64_t> places = sample_places(elements(m_, n_), 64, 1);
    std::vector<double> want;
    const auto n = static_cast<std::uint64_t>(n_), k = static_cast<std::uint64_t>(k_);
    for (const std::uint64_t i : places)
      want.push_back(reference_dot(k, element_of(format_, kSeedX, i / n * k), weight(i % n * k)));
    // some GPUs accumulate fp8 in about 14 bits: the fast accumulation that engines use
    const bool fp8 = format_ == ProductFormat::kFp8 || format_ == ProductFormat::kFp8Block;
    const double relative = fp8 ? 0.03 : format_ == ProductFormat::kInt8 ? 1e-9 : 0.003;
    return differs(read_output(places), want, relative, format_ == ProductFormat::kInt8 ? 40 : 7);
  }

 protected:
  static std::size_t elements(int rows, int columns) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  }
  static std::size_t bytes_of(ProductFormat format, std::size_t elements) {
    return static_cast<std::size_t>(static_cast<double>(elements) * input_bytes(format));
  }
  /// The number of units that fill() writes: words of eight elements for nvfp4.
  static std::size_t filled(ProductFormat format, std::size_t elements) {
    return format == ProductFormat::kNvfp4 ? elements / 8 : elements;
  }
  /// A weight of slot 0, by its position.
  virtual Element weight(std::uint64_t offset) const { return element_of(format_, kSeedW, offset); }
  std::vector<double> read_output(const std::vector<std::uint64_t>& places) const {
    if (format_ == ProductFormat::kInt8) return fetch(y_.as<std::int32_t>(), places);
    if (format_ != ProductFormat::kFp16) return fetch_bf16(y_.as<std::uint16_t>(), places);
    std::vector<double> values = fetch(y_.as<std::uint16_t>(), places);
    for (double& value : values) value = half_value(static_cast<std::uint16_t>(value));
    return values;
  }
  const void* slot_of_weights(int slot) const { return w_.as<void>(static_cast<std::size_t>(slot) * weight_bytes_); }

  ProductFormat format_;
  int m_, n_, k_;
  std::size_t weight_bytes_, slots_ = 1;
  DeviceMemory x_, w_, y_;
};

class LtCase final : public ProductCase {
 public:
  LtCase(const Context& context, const Point& point, std::shared_ptr<const CublasLt> lib)
      : ProductCase(context, point, format_of(point.dtype), 8.0 * input_bytes(format_of(point.dtype))),
        product_(std::move(lib), context, format_, m_, n_, k_) {
    fill(context_.stream, w_.as<void>(), filled(format_, slots_ * elements(n_, k_)), fill_of(format_), kSeedW);
    context_.stream.wait();
  }
  std::string engine() const override { return product_.engine(); }
  std::string kernel() const override { return product_.kernel(); }

 private:
  void enqueue(cudaStream_t stream, int slot) override {
    product_.run(stream, x_.as<void>(), slot_of_weights(slot), y_.as<void>());
  }
  LtProduct product_;
};

void require_few_rows(const Point& point) {
  if (point.number("m") > 16 || point.number("n") % 16 != 0 || point.number("k") % 128 != 0)
    throw Unsupported("our kernel supports up to 16 rows, n a multiple of 16 and k a multiple of 128");
}

class SkinnyCase final : public ProductCase {
 public:
  SkinnyCase(const Context& context, const Point& point) : ProductCase(context, point, ProductFormat::kBf16, 16) {
    require_few_rows(point);
    fill(context_.stream, w_.as<void>(), slots_ * elements(n_, k_), Fill::kBf16, kSeedW);
    context_.stream.wait();
  }
  std::string kernel() const override { return "16 weight rows per block"; }

 private:
  void enqueue(cudaStream_t stream, int slot) override {
    skinny_product(stream, x_.as<Bf16>(), static_cast<const Bf16*>(slot_of_weights(slot)), y_.as<Bf16>(), m_, n_, k_);
  }
};

/// 4-bit weights, packed as in random_data.h, with one bf16 scale per 128 weights.
class Int4Case final : public ProductCase {
 public:
  Int4Case(const Context& context, const Point& point) : ProductCase(context, point, ProductFormat::kBf16, 4) {
    require_few_rows(point);
    const std::size_t scales = elements(n_, k_) / 128;
    scale_ = DeviceMemory(scales * 2);
    fill(context_.stream, w_.as<void>(), w_.bytes() / 4, Fill::kWords, kSeedW);
    fill(context_.stream, scale_.as<void>(), scales, Fill::kBf16, kSeedScale);
    context_.stream.wait();
    bytes_ += Bytes{static_cast<double>(scale_.bytes())};
  }
  std::string kernel() const override { return "dequantizing, 16 weight rows per block"; }

 private:
  Element weight(std::uint64_t offset) const override {
    return [=](std::uint64_t i) {
      const std::uint64_t at = offset + i;
      const int value = nibble_of(random_bits(kSeedW, at / 8), nibble_place(static_cast<int>(at % 8))) - 8;
      return value * static_cast<double>(random_unit(kSeedScale, at / 128));
    };
  }
  void enqueue(cudaStream_t stream, int slot) override {
    int4_product(stream, x_.as<Bf16>(), static_cast<const std::uint32_t*>(slot_of_weights(slot)), scale_.as<Bf16>(),
                 y_.as<Bf16>(), m_, n_, k_);
  }
  DeviceMemory scale_;
};

/// gate+up, activation and down of routed experts. Tokens are spread evenly and already sorted by expert.
class ExpertCase final : public CudaCase {
 public:
  ExpertCase(const Context& context, const Point& point)
      : CudaCase(context),
        hidden_(whole(point, "hidden_size")),
        inter_(whole(point, "inter_size")),
        experts_(whole(point, "experts")),
        rows_(whole(point, "tokens") * whole(point, "top_k")) {
    if (hidden_ % 128 != 0 || inter_ % 128 != 0) throw Unsupported("widths must be multiples of 128");
    make_tiles();
    const std::size_t up = size(2 * inter_) * size(hidden_), down = size(hidden_) * size(inter_);
    slots_ = static_cast<std::size_t>(rotate(static_cast<std::size_t>(touched_) * (up + down) * 2));
    up_ = DeviceMemory(slots_ * size(experts_) * up * 2);
    down_ = DeviceMemory(slots_ * size(experts_) * down * 2);
    x_ = DeviceMemory(size(rows_) * size(hidden_) * 2);
    gate_up_ = DeviceMemory(size(rows_) * size(2 * inter_) * 2);
    inner_ = DeviceMemory(size(rows_) * size(inter_) * 2);
    y_ = DeviceMemory(size(rows_) * size(hidden_) * 2);
    fill(context_.stream, up_.as<void>(), up_.bytes() / 2, Fill::kBf16, kSeedW);
    fill(context_.stream, down_.as<void>(), down_.bytes() / 2, Fill::kBf16, kSeedV);
    fill(context_.stream, x_.as<void>(), x_.bytes() / 2, Fill::kBf16, kSeedX);
    context_.stream.wait();
    flops_ = Flops{2.0 * rows_ * static_cast<double>(up + down)};
    bytes_ = Bytes{static_cast<double>(touched_) * static_cast<double>((up + down) * 2) +
                   static_cast<double>(x_.bytes() + 2 * gate_up_.bytes() + 2 * inner_.bytes() + y_.bytes())};
  }
  std::string kernel() const override { return "grouped tiles of 64 x 128, mma"; }
  /// Checks the first GEMM on x, and the second on its input as rounded by the device.
  std::string check() override {
    for (const DeviceMemory* memory : {&gate_up_, &inner_, &y_}) poison(*memory);
    run_once();
    std::string wrong = check_product(gate_up_, 2 * inter_, hidden_, kSeedW, [&](std::uint64_t row) {
      return Element(
          [=, this](std::uint64_t i) { return static_cast<double>(random_unit(kSeedX, row * size(hidden_) + i)); });
    });
    if (!wrong.empty()) return "gate and up: " + wrong;
    wrong = check_product(y_, hidden_, inter_, kSeedV, [&](std::uint64_t row) {
      std::vector<std::uint64_t> places(size(inter_));
      std::iota(places.begin(), places.end(), row * size(inter_));
      return Element([values = fetch_row(places)](std::uint64_t i) { return values[i]; });
    });
    return wrong.empty() ? "" : "down: " + wrong;
  }

 private:
  static std::size_t size(int count) { return static_cast<std::size_t>(count); }
  std::vector<double> fetch_row(const std::vector<std::uint64_t>& places) const {
    std::vector<std::uint16_t> bits(places.size());
    cuda::check(
        cudaMemcpy(bits.data(), inner_.as<std::uint16_t>() + places.front(), bits.size() * 2, cudaMemcpyDeviceToHost),
        "reading a result");
    std::vector<double> out;
    for (const std::uint16_t b : bits) out.push_back(bf16_value(b));
    return out;
  }
  /// Choices go to the experts in turn, so that the load is as even as possible.
  void make_tiles() {
    touched_ = std::min(rows_, experts_);
    std::vector<int> tiles;
    for (int expert = 0, row = 0; expert < touched_; ++expert) {
      const int mine = rows_ / experts_ + (expert < rows_ % experts_ ? 1 : 0);
      for (int first = 0; first < mine; first += kExpertTileRows) {
        tiles.insert(tiles.end(), {expert, row + first, std::min(kExpertTileRows, mine - first)});
        ++tile_count_;
      }
      for (int i = 0; i < mine; ++i) expert_of_.push_back(expert);
      row += mine;
    }
    upload(tiles_, tiles.data(), tiles.size() * sizeof(int));
  }
  template <class RowOf>
  std::string check_product(const DeviceMemory& y, int n, int k, std::uint32_t seed, RowOf row_of) const {
    const std::vector<std::uint64_t> places = sample_places(size(rows_) * size(n), 16, 1);
    std::vector<double> want;
    for (const std::uint64_t i : places) {
      const std::uint64_t row = i / size(n);
      const std::uint64_t weights = (size(expert_of_[row]) * size(n) + i % size(n)) * size(k);
      want.push_back(reference_dot(
          size(k), row_of(row), [=](std::uint64_t e) { return static_cast<double>(random_unit(seed, weights + e)); }));
    }
    return differs(fetch_bf16(y.as<std::uint16_t>(), places), want, 0.003, 7);
  }
  void enqueue(cudaStream_t stream, int slot) override {
    const std::size_t matrix = size(experts_) * size(hidden_) * size(inter_) * 2;  // bytes of down; half of gate and up
    const int* const tiles = tiles_.as<int>();
    expert_product(stream, x_.as<Bf16>(), up_.as<Bf16>(size(slot) * 2 * matrix), gate_up_.as<Bf16>(), tiles,
                   tile_count_, 2 * inter_, hidden_);
    silu_mul(stream, gate_up_.as<Bf16>(), inner_.as<Bf16>(), rows_, inter_);
    expert_product(stream, inner_.as<Bf16>(), down_.as<Bf16>(size(slot) * matrix), y_.as<Bf16>(), tiles, tile_count_,
                   hidden_, inter_);
  }

  int hidden_, inter_, experts_, rows_, touched_ = 0, tile_count_ = 0;
  std::size_t slots_ = 1;
  std::vector<int> expert_of_;  ///< by row
  DeviceMemory tiles_, up_, down_, x_, gate_up_, inner_, y_;
};

}  // namespace

std::unique_ptr<Case> make_product_case(const Context& context, const Point& point,
                                        std::shared_ptr<const CublasLt> lib) {
  if (point.op == "skinny_gemm") return std::make_unique<SkinnyCase>(context, point);
  if (point.dtype == "int4_wo") return std::make_unique<Int4Case>(context, point);
  return std::make_unique<LtCase>(context, point, std::move(lib));
}
std::unique_ptr<Case> make_expert_case(const Context& context, const Point& point) {
  return std::make_unique<ExpertCase>(context, point);
}

}  // namespace roofcast::calibrate::cuda
