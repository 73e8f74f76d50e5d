#include "calibrate/kernels/cuda_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <thread>

#include "base/error.h"
#include "calibrate/kernels/cuda_case.h"
#include "calibrate/kernels/launchers.h"
#include "calibrate/kernels/nvml.h"

namespace roofcast::calibrate {
namespace {

using namespace cuda;

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

/// Throws Unavailable with the reason if there is no usable device.
void require_device(int device) {
  int count = 0, driver = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  (void)cudaDriverGetVersion(&driver);
  if (status == cudaErrorInsufficientDriver || driver == 0) {
    throw Unavailable(driver == 0
                          ? std::string("calibrate measure: no CUDA driver on this machine; --backend cpu works")
                          : fmt::format("calibrate measure: the driver is for CUDA {}, too old for CUDA {}",
                                        version_text(driver), version_text(CUDART_VERSION)));
  }
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0))
    throw Unavailable("calibrate measure: no CUDA device on this machine; --backend cpu works");
  cuda::check(status, "looking for devices");
  if (device >= count)
    throw Unavailable(fmt::format("calibrate measure: --device {}: there are {} CUDA devices, from 0", device, count));
}

constexpr double kLeastMemory = 4e9;

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(int device) {
    require_device(device);
    cuda::check(cudaSetDevice(device), "choosing the device");
    context_ = std::make_unique<Context>();
    context_->device = device;
    cuda::check(cudaGetDeviceProperties(&context_->properties, device), "asking for the device");
    std::array<char, 64> bus{};
    cuda::check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device), "asking for the device");
    nvml_.emplace(bus.data());
    describe();
    try {
      empty_kernel(context_->stream);
      context_->stream.wait();
    } catch (const std::runtime_error& error) {
      throw Unavailable(
          fmt::format("calibrate measure: {} has compute capability {}; this roofcast has no kernels for it ({})",
                      device_.name, device_.compute_capability, error.what()));
    }
    require_memory();
    try {
      lt_ = std::make_shared<const CublasLt>();
    } catch (const std::runtime_error& error) {  // reported by each of its points
      no_lt_ = error.what();
    }
  }

  Device device() const override { return device_; }
  DeviceState state() override { return nvml_->state(); }
  bool throttled() override { return nvml_->throttled(); }
  bool sees_throttling() const override { return nvml_->sees_throttling(); }
  void wait(Seconds time) override { std::this_thread::sleep_for(std::chrono::duration<double>(time.base())); }
  bool knows(const std::string&) const override { return true; }
  Seconds now() const override {
    return Seconds{std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count()};
  }
  std::unique_ptr<Case> prepare(const Point& point) override {
    const Context& c = *context_;
    if (point.op == "stream" || point.op == "copy" || point.op == "launch") return make_memory_case(c, point);
    if (point.op == "tensor_rate") return make_rate_case(c, point);
    if (point.op == "elementwise") return make_elementwise_case(c, point);
    const bool by_library = point.op == "decode_step" || (point.op == "gemm" && point.dtype != "int4_wo");
    if (by_library && !lt_) throw Unsupported(no_lt_);
    if (point.op == "gemm" || point.op == "skinny_gemm") return make_product_case(c, point, lt_);
    if (point.op == "attention_decode" || point.op == "attention_prefill") return make_attention_case(c, point);
    if (point.op == "moe") return make_expert_case(c, point);
    if (point.op == "decode_step") return make_decode_step(c, point, lt_);
    if (point.op == "all_reduce") return make_all_reduce_case(c, point, nccl_);
    throw Unsupported("no kernel for " + point.op);
  }

 private:
  void describe() {
    int driver = 0, count = 1;
    (void)cudaDriverGetVersion(&driver);
    (void)cudaGetDeviceCount(&count);
    std::size_t left = 0, total = 0;
    cuda::check(cudaMemGetInfo(&left, &total), "asking for memory");
    const cudaDeviceProp& p = context_->properties;
    device_ = {.name = p.name,
               .driver = nvml_->driver_version(),
               .cuda = version_text(CUDART_VERSION),
               .compute_capability = fmt::format("{}.{}", p.major, p.minor),
               .sm_count = p.multiProcessorCount,
               .devices = context_->device == 0 ? count : 1,
               .memory_bytes = static_cast<double>(total),
               .l2_bytes = static_cast<double>(p.l2CacheSize)};
    free_ = static_cast<double>(left);
  }
  void require_memory() {
    if (free_ < kLeastMemory)
      throw Unavailable(fmt::format("calibrate measure: {:.1f} GB of the memory of {} are free, {:.0f} are needed",
                                    free_ / 1e9, device_.name, kLeastMemory / 1e9));
    context_->flush = DeviceMemory(std::max<std::size_t>(2 * context_->l2_bytes(), 16));
    fill(context_->stream, context_->flush.as<void>(), context_->flush.bytes() / 4, Fill::kWords, 1);
    context_->flush_sums = DeviceMemory(read_sums(kFlushBlocksPerSm * context_->sms()) * sizeof(std::uint32_t));
    // the size that PyTorch gives cuBLAS on Hopper (aten/src/ATen/cuda/CublasHandlePool.cpp)
    context_->workspace = DeviceMemory(std::size_t{32} << 20);
  }

  std::unique_ptr<Context> context_;
  std::optional<Nvml> nvml_;
  std::shared_ptr<const CublasLt> lt_;
  std::string no_lt_;  ///< why cuBLASLt is missing
  NcclGroups nccl_;    ///< created once, because that takes seconds
  Device device_;
  double free_ = 0;
};

}  // namespace

std::unique_ptr<Backend> open_cuda_backend(int device) {
  try {
    return std::make_unique<CudaBackend>(device);
  } catch (const std::runtime_error& error) {  // any error: nothing can be measured without the device
    const std::string why = error.what();
    throw Unavailable(why.starts_with("calibrate measure: ") ? why : "calibrate measure: " + why);
  }
}

}  // namespace roofcast::calibrate
