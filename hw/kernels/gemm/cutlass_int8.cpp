// W8A8: TensorRT-LLM's SmoothQuant (cpp/tensorrt_llm/kernels/cutlass_kernels/int8_gemm), whose kernel for up to four
// rows works without tiles, and vLLM's CUTLASS (csrc/quantization/w8a8/cutlass).

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

class CutlassInt8 final : public MatmulKernelOf<Constants> {
 public:
  using MatmulKernelOf::MatmulKernelOf;
  GemmTiling tiling(const GpuSpec& gpu, double m, double, double) const override { return all_tiles(gpu, false, m); }
  double rows_without_tiles() const override { return 4.0; }
};

}  // namespace

const MatmulKernel& cutlass_int8() {
  static const CutlassInt8 kernel(
      {.name = "cutlass_int8", .help = "CUTLASS, int8", .form = kGemmForm, .unexplained = kGemmUnexplained});
  return kernel;
}

}  // namespace roofcast
