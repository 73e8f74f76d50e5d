// Our own attention kernels, with caches that rotate so that none is found in L2.

#include <algorithm>

#include <fmt/format.h>

#include "calibrate/kernels/cuda_case.h"
#include "calibrate/kernels/launchers.h"
#include "calibrate/random_data.h"
#include "calibrate/reference.h"

namespace roofcast::calibrate::cuda {
namespace {

/// Element i of the keys or values of one head: rows of `width` elements, `stride` elements apart.
Element strided(std::uint32_t seed, std::uint64_t offset, std::uint64_t width, std::uint64_t stride) {
  return
      [=](std::uint64_t i) { return static_cast<double>(random_unit(seed, offset + i / width * stride + i % width)); };
}

/// Prompts of `length` tokens; with `queries` = 1, one token after `length` - 1 others.
class AttentionCase final : public CudaCase {
 public:
  AttentionCase(const Context& context, const Point& point, bool prompt)
      : CudaCase(context),
        prompt_(prompt),
        shape_{.batch = whole(point, "batch"),
               .context = whole(point, prompt ? "seq_len" : "context_len"),
               .heads = whole(point, "heads"),
               .kv_heads = whole(point, "kv_heads"),
               .head_dim = whole(point, "head_dim"),
               .query_stride = 0,
               .sms = context.sms()} {
    if (shape_.heads % shape_.kv_heads != 0) throw Unsupported("heads must be a multiple of kv_heads");
    shape_.query_stride = shape_.heads * shape_.head_dim;
    const double tokens = static_cast<double>(shape_.batch) * shape_.context;
    const double queries = prompt ? tokens : shape_.batch;
    const double pairs = prompt ? tokens * (shape_.context + 1) / 2 : tokens;
    flops_ = Flops{4.0 * pairs * shape_.heads * shape_.head_dim};
    bytes_ = Bytes{4.0 * shape_.head_dim * (queries * shape_.heads + tokens * shape_.kv_heads)};
    query_elements_ = static_cast<std::size_t>(queries) * static_cast<std::size_t>(shape_.query_stride);
    cache_elements_ = static_cast<std::size_t>(tokens) * static_cast<std::size_t>(shape_.kv_heads * shape_.head_dim);
    allocate();
  }
  std::string kernel() const override {
    return prompt_ ? "causal tiles of 64 x 64" : fmt::format("{} splits of the context", decode_splits(shape_));
  }
  std::string check() override {
    poison(out_);
    poison(partial_);
    run_once();
    const auto d = static_cast<std::uint64_t>(shape_.head_dim), heads = static_cast<std::uint64_t>(shape_.heads);
    const auto kv_heads = static_cast<std::uint64_t>(shape_.kv_heads),
               tokens = static_cast<std::uint64_t>(shape_.context);
    std::vector<std::uint64_t> places;
    std::vector<double> want;
    // One row of a long context costs the CPU as much as many rows of a short one.
    const std::size_t rows = std::clamp<std::size_t>(16384 / tokens, 1, 8) + 1;
    for (const std::uint64_t row : sample_places(query_elements_ / d, rows, 1)) {
      const std::uint64_t query = row / heads, head = row % heads;
      const std::uint64_t sequence = prompt_ ? query / tokens : query, visible = prompt_ ? query % tokens + 1 : tokens;
      const std::uint64_t cache = (sequence * tokens * kv_heads + head / (heads / kv_heads)) * d;
      const std::vector<double> one =
          reference_attention(d, visible, strided(kSeedX, row * d, d, d), strided(kSeedW, cache, d, kv_heads * d),
                              strided(kSeedV, cache, d, kv_heads * d));
      want.insert(want.end(), one.begin(), one.end());
      for (std::uint64_t i = 0; i < d; ++i) places.push_back(row * d + i);
    }
    return differs(fetch_bf16(out_.as<Bf16>(), places), want, 0.05, 7);
  }

 private:
  void allocate() {
    slots_ = static_cast<std::size_t>(rotate(4 * cache_elements_));
    q_ = DeviceMemory(query_elements_ * 2);
    out_ = DeviceMemory(query_elements_ * 2);
    k_ = DeviceMemory(slots_ * cache_elements_ * 2);
    v_ = DeviceMemory(slots_ * cache_elements_ * 2);
    if (!prompt_) partial_ = DeviceMemory(decode_workspace(shape_));
    fill(context_.stream, q_.as<void>(), query_elements_, Fill::kBf16, kSeedX);
    fill(context_.stream, k_.as<void>(), slots_ * cache_elements_, Fill::kBf16, kSeedW);
    fill(context_.stream, v_.as<void>(), slots_ * cache_elements_, Fill::kBf16, kSeedV);
    context_.stream.wait();
  }
  void enqueue(cudaStream_t stream, int slot) override {
    const std::size_t offset = static_cast<std::size_t>(slot) * cache_elements_ * 2;
    if (prompt_) {
      prefill_attention(stream, shape_.batch, shape_.context, shape_.heads, shape_.kv_heads, shape_.head_dim,
                        q_.as<Bf16>(), k_.as<Bf16>(offset), v_.as<Bf16>(offset), out_.as<Bf16>());
    } else {
      decode_attention(stream, shape_, q_.as<Bf16>(), k_.as<Bf16>(offset), v_.as<Bf16>(offset), out_.as<Bf16>(),
                       partial_.as<float>());
    }
  }

  bool prompt_;
  DecodeShape shape_;
  std::size_t query_elements_ = 0, cache_elements_ = 0, slots_ = 1;
  DeviceMemory q_, k_, v_, out_, partial_;
};

}  // namespace

std::unique_ptr<Case> make_attention_case(const Context& context, const Point& point) {
  if (point.dtype != "bf16") throw Unsupported("our attention kernels support only bf16");
  return std::make_unique<AttentionCase>(context, point, point.op == "attention_prefill");
}

}  // namespace roofcast::calibrate::cuda
