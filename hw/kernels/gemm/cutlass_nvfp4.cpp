// nvfp4: CUTLASS and cuBLASLt kernels, which FlashInfer and TensorRT-LLM tune at start-up. TensorRT-LLM's table has
// untuned ones: on a B200 its GEMMs alone take longer than whole measured steps.

#include "hw/kernels/gemm/gemm_kernel.h"

namespace roofcast {
namespace {

struct Constants : GemmParameters {
  static std::span<const Parameter<Constants>> fields() {
    static constexpr auto kFields = joined(kTileLoopFields<Constants>);
    return kFields;
  }
};

class CutlassNvfp4 final : public MatmulKernelOf<Constants> {
 public:
  using MatmulKernelOf::MatmulKernelOf;
  GemmTiling tiling(const GpuSpec& gpu, double m, double, double) const override { return all_tiles(gpu, false, m); }

 private:
  /// The constants of a B200.
  void adjust(GemmParameters& prior, const GpuSpec&) const override {
    prior.gemv_us = 0.0;
    prior.k_step_us = 0.15;
  }
};

}  // namespace

const MatmulKernel& cutlass_nvfp4_untuned() {
  static const CutlassNvfp4 kernel(
      {.name = "cutlass_nvfp4_untuned",
       .help = "CUTLASS and cuBLASLt, nvfp4, before they are tuned, as timed by a benchmark",
       .form = kGemmForm,
       .unexplained = kGemmUnexplained});
  return kernel;
}
const MatmulKernel& cutlass_nvfp4() {
  static const CutlassNvfp4 kernel({.name = "cutlass_nvfp4",
                                    .help = "CUTLASS and cuBLASLt, nvfp4, tuned at start-up",
                                    .form = kGemmForm,
                                    .unexplained = kGemmUnexplained,
                                    .lenders = {&cutlass_nvfp4_untuned()}});
  return kernel;
}

}  // namespace roofcast
