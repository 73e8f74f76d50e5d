// hipBLASLt on AMD GPUs. None of its kernels was measured: its tiles are assumed to be Ampere's, its constants
// NVIDIA's.

#include "hw/kernels/gemm/gemm_kernel.h"

namespace roofcast {
namespace {

struct Wide : GemmParameters {
  static std::span<const Parameter<Wide>> fields() {
    static constexpr auto kFields = joined(kTileLoopFields<Wide>, kSplitField<Wide>);
    return kFields;
  }
};
struct Narrow : GemmParameters {
  static std::span<const Parameter<Narrow>> fields() {
    static constexpr auto kFields = joined(kTileLoopFields<Narrow>, kOddRowsField<Narrow>, kOneRowField<Narrow>);
    return kFields;
  }
};

class HipblasLt final : public MatmulKernelOf<Wide> {
 public:
  using MatmulKernelOf::MatmulKernelOf;
  GemmTiling tiling(const GpuSpec& gpu, double m, double, double) const override { return all_tiles(gpu, true, m); }

 private:
  void adjust(GemmParameters&, const GpuSpec&) const override {}
};

class HipblasLtFp8 final : public MatmulKernelOf<Narrow> {
 public:
  using MatmulKernelOf::MatmulKernelOf;
  GemmTiling tiling(const GpuSpec& gpu, double m, double, double) const override { return all_tiles(gpu, false, m); }
};

}  // namespace

const MatmulKernel& hipblaslt() {
  static const HipblasLt kernel({.name = "hipblaslt",
                                 .help = "hipBLASLt, 16 bit",
                                 .form = kGemmForm,
                                 .unexplained = kGemmUnexplained,
                                 .lenders = {&cublaslt()}});
  return kernel;
}
const MatmulKernel& hipblaslt_fp8() {
  static const HipblasLtFp8 kernel({.name = "hipblaslt_fp8",
                                    .help = "hipBLASLt, fp8",
                                    .form = kGemmForm,
                                    .unexplained = kGemmUnexplained,
                                    .lenders = {&cutlass_fp8()}});
  return kernel;
}

}  // namespace roofcast
