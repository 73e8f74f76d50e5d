// Weights of any width that are unpacked to 16-bit activations: Marlin and Machete under vLLM, TensorRT-LLM's fpA_intB
// (cpp/tensorrt_llm/kernels/cutlass_kernels/fpA_intB_gemm), which has a GEMV for few rows.

#include "hw/kernels/gemm/gemm_kernel.h"

namespace roofcast {
namespace {

struct Constants : GemmParameters {
  static std::span<const Parameter<Constants>> fields() {
    static constexpr auto kFields =
        joined(kTileLoopFields<Constants>, kPairedTileFields<Constants>, kOneRowField<Constants>);
    return kFields;
  }
};

class WeightOnly final : public MatmulKernelOf<Constants> {
 public:
  using MatmulKernelOf::MatmulKernelOf;
  GemmTiling tiling(const GpuSpec& gpu, double m, double, double) const override { return all_tiles(gpu, false, m); }
  double gemv_rows() const override { return 8.0; }

 private:
  void adjust(GemmParameters& prior, const GpuSpec& gpu) const override {
    prior.gemv_us = 0.0;
    if (has_mma_sync_only(gpu)) prior.ramp_k_steps = 30;
  }
};

}  // namespace

const MatmulKernel& weight_only() {
  static const WeightOnly kernel({.name = "weight_only",
                                  .help = "weights unpacked to 16-bit activations",
                                  .form = kGemmForm,
                                  .unexplained = kGemmUnexplained});
  return kernel;
}

}  // namespace roofcast
