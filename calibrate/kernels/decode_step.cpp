// One decode step of a model shaped like Llama-3.1-8B (meta-llama/Llama-3.1-8B, config.json) with random weights, as
// one CUDA graph. It shows the GPU time of an engine's step, to compare with `roofcast estimate`. It has cuBLASLt
// GEMMs, our attention, and our kernels between them. Small parts are left out: embedding look-up, residual additions
// (engines fuse them into the norm), appending the new key and value, sampling.

#include <array>

#include <fmt/format.h>

#include "calibrate/kernels/cuda_case.h"
#include "calibrate/kernels/launchers.h"
#include "calibrate/random_data.h"
#include "calibrate/reference.h"

namespace roofcast::calibrate::cuda {
namespace {

constexpr int kLayers = 32, kHidden = 4096, kInter = 14336, kHeads = 32, kKvHeads = 8, kHeadDim = 128,
              kVocabulary = 128256;
constexpr int kQkv = (kHeads + 2 * kKvHeads) * kHeadDim;
/// Layers with their own memory, used in turn by the 32 layers. The weights of eight layers are 3.5 GB, so none is in
/// L2 when it is used again.
constexpr int kDistinct = 8;
constexpr float kEpsilon = 1e-5f;

struct Layer {
  DeviceMemory norm, qkv, out, gate_up, down, k, v;
};

class DecodeStep final : public CudaCase {
 public:
  DecodeStep(const Context& context, const Point& point, const std::shared_ptr<const CublasLt>& lib)
      : CudaCase(context),
        batch_(whole(point, "batch")),
        tokens_(whole(point, "context")),
        attention_{batch_, tokens_, kHeads, kKvHeads, kHeadDim, kQkv, context.sms()},
        qkv_(lib, context, ProductFormat::kBf16, batch_, kQkv, kHidden),
        out_(lib, context, ProductFormat::kBf16, batch_, kHidden, kHeads * kHeadDim),
        gate_up_(lib, context, ProductFormat::kBf16, batch_, 2 * kInter, kHidden),
        down_(lib, context, ProductFormat::kBf16, batch_, kHidden, kInter),
        head_(lib, context, ProductFormat::kBf16, batch_, kVocabulary, kHidden) {
    allocate();
    count();
    leave_warm();  // gigabytes of weights flush L2
  }
  std::string kernel() const override {
    return fmt::format("{} of {} layers with their own weights", kDistinct, kLayers);
  }

  /// Each kernel is checked as a point of its own. Here, every logit must be a number, and sampled logits must be the
  /// product of the head and the last hidden state on the device.
  std::string check() override {
    for (const DeviceMemory* memory : {&hidden_, &normed_, &qkv_out_, &turned_, &attended_, &wide_, &inner_, &logits_})
      poison(*memory);
    cuda::check(cudaMemcpy(hidden_.as<void>(), start_.as<void>(), hidden_.bytes(), cudaMemcpyDeviceToDevice),
                "copying");
    run_once();
    std::vector<std::uint16_t> last(kHidden);
    cuda::check(cudaMemcpy(last.data(), normed_.as<void>(), last.size() * 2, cudaMemcpyDeviceToHost),
                "reading a result");
    const std::vector<std::uint64_t> places = sample_places(kVocabulary, 32, 1);
    std::vector<double> want;
    for (const std::uint64_t column : places) {
      want.push_back(reference_dot(
          kHidden, [&](std::uint64_t i) { return bf16_value(last[i]); },
          [&](std::uint64_t i) { return static_cast<double>(random_unit(kSeedV, column * kHidden + i)); }));
    }
    return differs(fetch_bf16(logits_.as<std::uint16_t>(), places), want, 0.003, 7);
  }

 private:
  static DeviceMemory random(const Context& context, std::size_t elements, std::uint32_t seed) {
    DeviceMemory memory(elements * 2);
    fill(context.stream, memory.as<void>(), elements, Fill::kBf16, seed);
    return memory;
  }
  void allocate() {
    const auto rows = static_cast<std::size_t>(batch_),
               cache = rows * static_cast<std::size_t>(tokens_) * kKvHeads * kHeadDim;
    std::size_t left = 0, total = 0;
    cuda::check(cudaMemGetInfo(&left, &total), "asking for free memory");
    const double wanted = 4.0 * kDistinct * static_cast<double>(cache) + 5e9;
    if (wanted > static_cast<double>(left))
      throw OutOfMemory(fmt::format("{:.1f} GB do not fit the {:.1f} GB that are free", wanted / 1e9,
                                    static_cast<double>(left) / 1e9));
    for (std::uint32_t i = 0; i < kDistinct; ++i) {
      Layer layer;
      layer.norm = random(context_, kHidden, 200 + 10 * i);
      layer.qkv = random(context_, std::size_t{kQkv} * kHidden, 201 + 10 * i);
      layer.out = random(context_, std::size_t{kHidden} * kHeads * kHeadDim, 202 + 10 * i);
      layer.gate_up = random(context_, std::size_t{2} * kInter * kHidden, 203 + 10 * i);
      layer.down = random(context_, std::size_t{kHidden} * kInter, 204 + 10 * i);
      layer.k = random(context_, cache, 205 + 10 * i);
      layer.v = random(context_, cache, 206 + 10 * i);
      layers_.push_back(std::move(layer));
    }
    head_weights_ = random(context_, std::size_t{kVocabulary} * kHidden, kSeedV);
    start_ = random(context_, rows * kHidden, kSeedX);
    hidden_ = random(context_, rows * kHidden, kSeedX);
    std::vector<float> table;  // cosine and sine of a zero rotation, which costs as much as any other
    for (std::size_t row = 0; row < rows; ++row) {
      table.insert(table.end(), kHeadDim / 2, 1.0f);
      table.insert(table.end(), kHeadDim / 2, 0.0f);
    }
    upload(table_, table.data(), table.size() * sizeof(float));
    normed_ = DeviceMemory(rows * kHidden * 2);
    qkv_out_ = DeviceMemory(rows * kQkv * 2);
    turned_ = DeviceMemory(rows * kQkv * 2);
    attended_ = DeviceMemory(rows * kHeads * kHeadDim * 2);
    partial_ = DeviceMemory(decode_workspace(attention_));
    wide_ = DeviceMemory(rows * 2 * kInter * 2);
    inner_ = DeviceMemory(rows * kInter * 2);
    logits_ = DeviceMemory(rows * kVocabulary * 2);
    context_.stream.wait();
  }
  void count() {
    const double weights =
        kLayers * (1.0 * kQkv * kHidden + 1.0 * kHidden * kHeads * kHeadDim + 3.0 * kInter * kHidden) +
        1.0 * kVocabulary * kHidden;
    const double cached = 1.0 * batch_ * tokens_;
    flops_ = Flops{2.0 * batch_ * weights + kLayers * 4.0 * cached * kHeads * kHeadDim};
    bytes_ = Bytes{2.0 * weights + kLayers * 4.0 * cached * kKvHeads * kHeadDim};
  }
  void enqueue(cudaStream_t stream, int) override {
    for (int i = 0; i < kLayers; ++i) run_layer(stream, layers_[static_cast<std::size_t>(i % kDistinct)]);
    rmsnorm(stream, hidden_.as<Bf16>(), layers_[0].norm.as<Bf16>(), normed_.as<Bf16>(), batch_, kHidden, kEpsilon);
    head_.run(stream, normed_.as<void>(), head_weights_.as<void>(), logits_.as<void>());
  }
  void run_layer(cudaStream_t stream, const Layer& layer) {
    rmsnorm(stream, hidden_.as<Bf16>(), layer.norm.as<Bf16>(), normed_.as<Bf16>(), batch_, kHidden, kEpsilon);
    qkv_.run(stream, normed_.as<void>(), layer.qkv.as<void>(), qkv_out_.as<void>());
    rope(stream, qkv_out_.as<Bf16>(), table_.as<float>(), turned_.as<Bf16>(), batch_, kQkv);
    decode_attention(stream, attention_, turned_.as<Bf16>(), layer.k.as<Bf16>(), layer.v.as<Bf16>(),
                     attended_.as<Bf16>(), partial_.as<float>());
    out_.run(stream, attended_.as<void>(), layer.out.as<void>(), hidden_.as<void>());
    rmsnorm(stream, hidden_.as<Bf16>(), layer.norm.as<Bf16>(), normed_.as<Bf16>(), batch_, kHidden, kEpsilon);
    gate_up_.run(stream, normed_.as<void>(), layer.gate_up.as<void>(), wide_.as<void>());
    silu_mul(stream, wide_.as<Bf16>(), inner_.as<Bf16>(), batch_, kInter);
    down_.run(stream, inner_.as<void>(), layer.down.as<void>(), hidden_.as<void>());
  }

  int batch_, tokens_;
  DecodeShape attention_;
  LtProduct qkv_, out_, gate_up_, down_, head_;
  std::vector<Layer> layers_;
  DeviceMemory head_weights_, start_, hidden_, normed_, qkv_out_, turned_, attended_, partial_, wide_, inner_, logits_,
      table_;
};

}  // namespace

std::unique_ptr<Case> make_decode_step(const Context& context, const Point& point,
                                       std::shared_ptr<const CublasLt> lib) {
  return std::make_unique<DecodeStep>(context, point, lib);
}

}  // namespace roofcast::calibrate::cuda
