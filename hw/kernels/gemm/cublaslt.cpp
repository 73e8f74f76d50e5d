// cuBLASLt: 16-bit GEMMs of every engine through PyTorch's linear layers (aten/src/ATen/cuda/CUDABlas.cpp), and fp8
// GEMMs of TensorRT-LLM (cpp/tensorrt_llm/thop/cublasScaledMM.cpp). It has all tiles, searches for the fastest, and may
// split k.

#include "hw/kernels/gemm/gemm_kernel.h"

namespace roofcast {
namespace {

template <class P>
class CublasLt : public MatmulKernelOf<P> {
 public:
  using MatmulKernelOf<P>::MatmulKernelOf;
  GemmTiling tiling(const GpuSpec& gpu, double m, double, double) const override { return all_tiles(gpu, true, m); }
  bool is_cublaslt() const override { return true; }
};

struct Wide : GemmParameters {
  static std::span<const Parameter<Wide>> fields() {
    static constexpr auto kFields = joined(kTileLoopFields<Wide>, kSplitField<Wide>);
    return kFields;
  }
};
/// cuBLASLt by mma.sync, which has a separate kernel for one row.
struct WideByMmaSync : GemmParameters {
  static std::span<const Parameter<WideByMmaSync>> fields() {
    static constexpr auto kFields = joined(kTileLoopFields<WideByMmaSync>, kPairedTileFields<WideByMmaSync>,
                                           kSplitField<WideByMmaSync>, kOneRowField<WideByMmaSync>);
    return kFields;
  }
};
/// One scale per token or tensor.
struct Narrow : GemmParameters {
  static std::span<const Parameter<Narrow>> fields() {
    static constexpr auto kFields = joined(kTileLoopFields<Narrow>, kSplitField<Narrow>, kOddRowsField<Narrow>);
    return kFields;
  }
};
/// The same pipeline as for 16 bit, at another rate.
struct NarrowByMmaSync : GemmParameters {
  static std::span<const Parameter<NarrowByMmaSync>> fields() {
    static constexpr auto kFields =
        joined(kTileLoopFields<NarrowByMmaSync>, kPairedTileFields<NarrowByMmaSync>, kSplitField<NarrowByMmaSync>);
    return kFields;
  }
};

template <class P>
class Products16Bit final : public CublasLt<P> {
 public:
  using CublasLt<P>::CublasLt;

 private:
  void adjust(GemmParameters&, const GpuSpec&) const override {}
};

/// Each lends its constants to the other if only a GPU of the other kind was measured. The first kernel gets its lender
/// after both are constructed, because a pointer to an unconstructed object must not be converted to its base.
struct Pair {
  Pair() { const_cast<KernelFacts&>(by_warpgroup.facts()).lenders = {&by_mma_sync}; }

  Products16Bit<Wide> by_warpgroup{{.name = "cublaslt",
                                    .help = "cuBLASLt, 16 bit, Hopper and Blackwell",
                                    .form = kGemmForm,
                                    .unexplained = kGemmUnexplained}};
  Products16Bit<WideByMmaSync> by_mma_sync{{.name = "cublaslt_mma_sync",
                                            .help = "cuBLASLt, 16 bit, by mma.sync",
                                            .form = kGemmForm,
                                            .unexplained = kGemmUnexplained,
                                            .lenders = {&by_warpgroup}}};
};

const Pair& pair() {
  static Pair both;  // not const: its first kernel is completed above
  return both;
}

}  // namespace

const MatmulKernel& cublaslt() { return pair().by_warpgroup; }
const MatmulKernel& cublaslt_mma_sync() { return pair().by_mma_sync; }
const MatmulKernel& cublaslt_fp8() {
  static const CublasLt<Narrow> kernel({.name = "cublaslt_fp8",
                                        .help = "cuBLASLt, fp8 under TensorRT-LLM",
                                        .form = kGemmForm,
                                        .unexplained = kGemmUnexplained});
  return kernel;
}
const MatmulKernel& cublaslt_mma_sync_fp8() {
  static const CublasLt<NarrowByMmaSync> kernel({.name = "cublaslt_mma_sync_fp8",
                                                 .help = "cuBLASLt, fp8 under TensorRT-LLM, by mma.sync",
                                                 .form = kGemmForm,
                                                 .unexplained = kGemmUnexplained,
                                                 .lenders = {&cublaslt_fp8()}});
  return kernel;
}

}  // namespace roofcast
