// Block fp8 where DeepGEMM does not run: a Triton kernel under vLLM
// (model_executor/layers/quantization/utils/fp8_utils.py) and on AMD GPUs, CUTLASS for compute capability 8.9 under
// TensorRT-LLM. None of these was measured.

#include "hw/kernels/gemm/gemm_kernel.h"

namespace roofcast {
namespace {

struct Constants : GemmParameters {
  static std::span<const Parameter<Constants>> fields() {
    static constexpr auto kFields = joined(kTileLoopFields<Constants>, kOddRowsField<Constants>);
    return kFields;
  }
};

class BlockwiseFp8 final : public MatmulKernelOf<Constants> {
 public:
  using MatmulKernelOf::MatmulKernelOf;
  GemmTiling tiling(const GpuSpec& gpu, double m, double, double) const override { return all_tiles(gpu, false, m); }
};

}  // namespace

const MatmulKernel& blockwise_fp8() {
  static const BlockwiseFp8 kernel({.name = "blockwise_fp8",
                                    .help = "Triton or CUTLASS, block fp8 where DeepGEMM does not run",
                                    .form = kGemmForm,
                                    .unexplained = kGemmUnexplained,
                                    .lenders = {&deep_gemm(), &deep_gemm_trtllm()}});
  return kernel;
}

}  // namespace roofcast
